"""Where an episode goes when its jobs have ended: settled, pooled, or back to where it waits."""

from collections.abc import Collection
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import Case, Exists, F, OuterRef, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from memory.domain.lifecycle import BeliefStatus, ConsolidationState
from memory.models import Belief, Cycle, Episode, Evidence

log = structlog.get_logger(__name__)

PARTLY_ASKED = "more beliefs to be asked"
NO_BELIEF = "no_belief"
ECHO = "echo"
EVIDENCE = "evidence"
UNREAD = "reading: "  # before the kind of failure

# Beliefs whose evidence counts for those that came in their place: it settles nothing any more.
REPLACED = (BeliefStatus.REVISED, BeliefStatus.SPLIT, BeliefStatus.MERGED)


def put_back(*, episodes: QuerySet[Episode]) -> int:
    """Return episodes to the work that waits, as if this cycle had not begun."""
    was_pooled = When(pooled_at__isnull=False, then=Value(ConsolidationState.POOLED))
    return episodes.update(state=Case(was_pooled, default=Value(ConsolidationState.NEW)), leased_by=None)


def bury(*, cycle: Cycle, ids: Collection[str]) -> None:
    """Make dead letters of the episodes that failed too often: they wait for a person, and let others pass (B11)."""
    failed = Episode.objects.for_workspace(cycle.workspace_id).filter(pk__in=ids, state=ConsolidationState.FAILED)
    worn_out = failed.filter(failures__gte=settings.POLICY.budget.episode_failures, dead_at=None)
    if buried := worn_out.update(dead_at=cycle.now):
        log.warning("dead_letters", cycle=cycle.pk, workspace=cycle.workspace_id, episodes=buried)


def settle_or_pool(*, episodes: QuerySet[Episode], cycle: Cycle) -> None:
    """Settle the episodes that are evidence of something, and let the others wait for company.

    The first time in the pool counts for how long they have waited.
    """
    episodes.update(
        state=_if_evidence(Value(ConsolidationState.SETTLED), Value(ConsolidationState.POOLED)),
        leased_by=None,
        state_reason=_if_evidence(Value(EVIDENCE), Value("")),
        failures=0,
        pooled_at=_if_evidence(F("pooled_at"), Coalesce(F("pooled_at"), Value(cycle.now))),
    )


def _if_evidence(then: Combinable, otherwise: Combinable) -> Case:
    return Case(When(_is_evidence(), then=then), default=otherwise)


def _is_evidence() -> Exists:
    """Match the episodes that are evidence of a belief in whose place no other has come."""
    return Exists(Evidence.objects.filter(episode=OuterRef("pk")).exclude(belief__status__in=REPLACED))


def pool_left_over(*, belief: Belief, now: datetime) -> int:
    """Pool what settled as evidence of a belief and is none of what came in its place; return how many (B12).

    Their time in the pool begins now: they did not wait while they were settled.
    """
    return (
        _told(belief)
        .filter(~_is_evidence(), state=ConsolidationState.SETTLED)
        .update(state=ConsolidationState.POOLED, state_reason="", failures=0, pooled_at=now)
    )


def settle_left_over(*, belief: Belief) -> int:
    """Settle again what was pooled when a belief was split, and still waits there; return how many."""
    return (
        _told(belief)
        .filter(state=ConsolidationState.POOLED)
        .update(state=ConsolidationState.SETTLED, state_reason=EVIDENCE)
    )


def _told(belief: Belief) -> QuerySet[Episode]:
    """Select what counts as evidence of a belief, and can be evidence of another one."""
    rows = Evidence.objects.filter(belief=belief, base_weight__gt=0)
    told: QuerySet[Episode] = Episode.objects.active().filter(pk__in=rows.values("episode"), is_derived=False)
    return told


def settle_evidenced(*, episodes: QuerySet[Episode]) -> int:
    """Settle the episodes that are evidence of something (B1)."""
    return episodes.filter(_is_evidence()).update(
        state=ConsolidationState.SETTLED, leased_by=None, state_reason=EVIDENCE, failures=0
    )


def settle_echoes(*, cycle: Cycle, ids: Collection[str]) -> None:
    """Settle what holds nothing but our own words: there is nothing to learn from it (B4)."""
    _leased(cycle, ids).update(state=ConsolidationState.SETTLED, leased_by=None, state_reason=ECHO)


def fail_unembedded(*, cycle: Cycle, ids: Collection[str], kind: str, is_blamed: bool = False) -> None:
    """Keep episodes pending that could not be embedded, with the reason to be seen (B11)."""
    _fail(cycle, ids, f"embedding: {kind}", is_blamed=is_blamed)
    log.warning("embedding_failed", cycle=cycle.pk, workspace=cycle.workspace_id, kind=kind, episodes=len(ids))


def fail_unread(*, cycle: Cycle, ids: Collection[str], kind: str, is_blamed: bool) -> None:
    """Keep episodes pending that no model could read, with the reason to be seen (E1, B11)."""
    _fail(cycle, ids, f"{UNREAD}{kind}", is_blamed=is_blamed)
    log.warning("reading_failed", cycle=cycle.pk, workspace=cycle.workspace_id, kind=kind, episodes=len(ids))


def _fail(cycle: Cycle, ids: Collection[str], reason: str, *, is_blamed: bool) -> None:
    _leased(cycle, ids).update(
        state=ConsolidationState.FAILED,
        leased_by=None,
        state_reason=reason,
        failures=F("failures") + int(is_blamed),
    )
    bury(cycle=cycle, ids=ids)


def _leased(cycle: Cycle, ids: Collection[str]) -> QuerySet[Episode]:
    return Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle.pk, pk__in=ids)


def settle_expired(*, cycle: Cycle) -> int:
    """Settle without a belief what has waited in the pool for its time (B1)."""
    since = cycle.now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    expired = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at__lt=since
    )
    settle_evidenced(episodes=expired)
    return expired.update(state=ConsolidationState.SETTLED, state_reason=NO_BELIEF)
