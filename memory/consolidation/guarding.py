"""When no call is needed: near-identical, and the polarity guard passes, or nothing in common (B8.4)."""

from django.conf import settings

from memory.domain.common_ground import share_something
from memory.domain.matching import Claim, check_polarity


def supports_by_guard(*, episode: Claim, statement: Claim, similarity: float) -> bool:
    """Tell whether an episode supports a belief without a call; similarity is on the reference scale."""
    above: float = settings.POLICY.consolidation.reinforce_similarity
    return similarity > above and check_polarity(left=episode, right=statement).passed


def may_concern(*, episode: Claim, statement: Claim, similarity: float) -> bool:
    """Tell whether an episode may have anything to say about a belief: far apart, they share a word at least."""
    near: float = settings.POLICY.consolidation.wordless_similarity
    return similarity >= near or share_something(episode=episode, belief=statement)
