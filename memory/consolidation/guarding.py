"""When no call is needed: near-identical, and the polarity guard passes (B8.4)."""

from django.conf import settings

from memory.domain.matching import Claim, check_polarity


def supports_by_guard(*, episode: Claim, statement: Claim, similarity: float) -> bool:
    """Tell whether an episode supports a belief without a call; similarity is on the reference scale."""
    above: float = settings.POLICY.consolidation.reinforce_similarity
    return similarity > above and check_polarity(left=episode, right=statement).passed
