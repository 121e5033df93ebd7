"""When no call is needed: near-identical, and the polarity guard passes, or nothing in common (B8.4)."""

import structlog
from django.conf import settings

from memory.domain.breaking import OWN_ERRORS
from memory.domain.common_ground import share_something
from memory.domain.matching import Claim, check_polarity

log = structlog.get_logger(__name__)


def supports_by_guard(*, episode: Claim, statement: Claim, similarity: float) -> bool:
    """Tell whether an episode supports a belief without a call; similarity is on the reference scale."""
    above: float = settings.POLICY.consolidation.reinforce_similarity
    return similarity > above and passes_guard(left=episode, right=statement)


def passes_guard(*, left: Claim, right: Claim) -> bool:
    """Tell whether no check finds a difference; two texts that break a check are not taken for one claim (E6)."""
    try:
        return check_polarity(left=left, right=right).passed
    except OWN_ERRORS:
        log.exception("guard_broke")
        return False


def can_be_read(statement: Claim) -> bool:
    """Tell whether the checks read a statement at all: one that breaks them is nothing to hold episodes against."""
    try:
        check_polarity(left=statement, right=statement)
    except OWN_ERRORS:
        log.exception("statement_unreadable")
        return False
    return True


def may_concern(*, episode: Claim, statement: Claim, similarity: float) -> bool:
    """Tell whether an episode may have anything to say about a belief: far apart, they share a word at least."""
    near: float = settings.POLICY.consolidation.wordless_similarity
    return similarity >= near or share_something(episode=episode, belief=statement)
