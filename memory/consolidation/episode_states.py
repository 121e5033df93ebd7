"""What consolidation writes on episodes: where they go when their jobs end, and what a new note does to older ones.

An episode is settled, pooled, put back to wait, failed, or a dead letter. `weigh_turns` measures the surprise of new
episodes (D5), counts what they confirm (L15) and supersedes what cannot hold beside them (L18).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from memory.consolidation.notes import Relation, compare_memories
from memory.domain.identity import Actor
from memory.domain.lifecycle import REPLACED, ConsolidationState, EpisodeStatus
from memory.domain.similarity import measure_surprise, move_importance
from memory.ledger.transactions import change_episode_status
from memory.llm.embeddings import embedder_of
from memory.models import Belief, Cycle, Episode, Evidence, Transition
from memory.search.vectors import nearest_older_episodes

log = structlog.get_logger(__name__)
PARTLY_ASKED = "more beliefs to be asked"
NO_BELIEF = "no_belief"
ECHO = "echo"
EVIDENCE = "evidence"
UNREAD = "reading: "  # before the kind of failure
RESTORED_REASON = "what superseded it was forgotten"


def settle_or_pool(*, episodes: QuerySet[Episode], cycle: Cycle) -> None:
    """Settle the episodes that are evidence of something, and let the others wait for company.

    The first time in the pool counts for how long they have waited.
    """
    episodes.update(
        state=_case_evidence(Value(ConsolidationState.SETTLED), Value(ConsolidationState.POOLED)),
        leased_by=None,
        state_reason=_case_evidence(Value(EVIDENCE), Value("")),
        failures=0,
        pooled_at=_case_evidence(F("pooled_at"), Coalesce(F("pooled_at"), Value(cycle.now))),
    )


def settle_evidenced(*, episodes: QuerySet[Episode]) -> int:
    """Settle the episodes that are evidence of something (B1)."""
    return episodes.filter(_is_evidence()).update(
        state=ConsolidationState.SETTLED, leased_by=None, state_reason=EVIDENCE, failures=0
    )


def settle_echoes(*, cycle: Cycle, ids: Collection[str]) -> None:
    """Settle what holds nothing but our own words: there is nothing to learn from it (B4)."""
    _leased_episodes(cycle, ids).update(state=ConsolidationState.SETTLED, leased_by=None, state_reason=ECHO)


def settle_expired(*, cycle: Cycle) -> int:
    """Settle without a belief what has waited in the pool for its time (B1)."""
    since = cycle.now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    expired = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at__lt=since
    )
    settle_evidenced(episodes=expired)
    return expired.update(state=ConsolidationState.SETTLED, state_reason=NO_BELIEF)


def requeue_episodes(*, episodes: QuerySet[Episode]) -> int:
    """Return episodes to the work that waits, as if this cycle had not begun."""
    was_pooled = When(pooled_at__isnull=False, then=Value(ConsolidationState.POOLED))
    return episodes.update(state=Case(was_pooled, default=Value(ConsolidationState.NEW)), leased_by=None)


def pool_orphaned_evidence(*, belief: Belief, now: datetime) -> int:
    """Pool what settled as evidence of a belief and is none of what came in its place; return how many (B12).

    Their time in the pool begins now: they did not wait while they were settled.
    """
    return (
        _evidence_episodes(belief)
        .filter(~_is_evidence(), state=ConsolidationState.SETTLED)
        .update(state=ConsolidationState.POOLED, state_reason="", failures=0, pooled_at=now)
    )


def resettle_after_split(*, belief: Belief) -> int:
    """Settle again what was pooled when a belief was split, and still waits there; return how many."""
    return (
        _evidence_episodes(belief)
        .filter(state=ConsolidationState.POOLED)
        .update(state=ConsolidationState.SETTLED, state_reason=EVIDENCE)
    )


def _evidence_episodes(belief: Belief) -> QuerySet[Episode]:
    """Select what counts as evidence of a belief, and can be evidence of another one."""
    rows = Evidence.objects.filter(belief=belief, base_weight__gt=0)
    told: QuerySet[Episode] = Episode.objects.active().filter(pk__in=rows.values("episode"), is_derived=False)
    return told


def _case_evidence(then: Combinable, otherwise: Combinable) -> Case:
    return Case(When(_is_evidence(), then=then), default=otherwise)


def _is_evidence() -> Exists:
    """Match the episodes that are evidence of a belief in whose place no other has come."""
    return Exists(Evidence.objects.filter(episode=OuterRef("pk")).exclude(belief__status__in=REPLACED))


def fail_unembedded(*, cycle: Cycle, ids: Collection[str], kind: str, is_blamed: bool = False) -> None:
    """Keep episodes pending that could not be embedded, with the reason to be seen (B11)."""
    _fail_leased(cycle, ids, f"embedding: {kind}", is_blamed=is_blamed)
    log.warning("embedding_failed", cycle=cycle.pk, workspace=cycle.workspace_id, kind=kind, episodes=len(ids))


def fail_unread(*, cycle: Cycle, ids: Collection[str], kind: str, is_blamed: bool) -> None:
    """Keep episodes pending that no model could read, with the reason to be seen (E1, B11)."""
    _fail_leased(cycle, ids, f"{UNREAD}{kind}", is_blamed=is_blamed)
    log.warning("reading_failed", cycle=cycle.pk, workspace=cycle.workspace_id, kind=kind, episodes=len(ids))


def _fail_leased(cycle: Cycle, ids: Collection[str], reason: str, *, is_blamed: bool) -> None:
    _leased_episodes(cycle, ids).update(
        state=ConsolidationState.FAILED,
        leased_by=None,
        state_reason=reason,
        failures=F("failures") + int(is_blamed),
    )
    dead_letter_failed(cycle=cycle, ids=ids)


def _leased_episodes(cycle: Cycle, ids: Collection[str]) -> QuerySet[Episode]:
    return Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle.pk, pk__in=ids)


def dead_letter_failed(*, cycle: Cycle, ids: Collection[str]) -> None:
    """Make dead letters of the episodes that failed too often: they wait for a person, and let others pass (B11)."""
    failed = Episode.objects.for_workspace(cycle.workspace_id).filter(pk__in=ids, state=ConsolidationState.FAILED)
    worn_out = failed.filter(failures__gte=settings.POLICY.budget.episode_failures, dead_at=None)
    if buried := worn_out.update(dead_at=cycle.now):
        log.warning("dead_letters", cycle=cycle.pk, workspace=cycle.workspace_id, episodes=buried)


def list_dead_letters(*, workspace_id: int) -> QuerySet[Episode]:
    """Return a workspace's dead letters, the newest first."""
    return Episode.objects.for_workspace(workspace_id).dead().order_by("-dead_at", "pk")


def retry_dead_letters(*, letters: QuerySet[Episode]) -> int:
    """Let the dead letters among some episodes take part again as if they had never failed; return how many."""
    dead = Episode.objects.dead().filter(pk__in=letters.order_by().values("pk"))
    return dead.update(state=ConsolidationState.NEW, state_reason="", failures=0, dead_at=None)


_NO_REPEATS: Mapping[str, datetime] = MappingProxyType({})


def weigh_turns(
    *,
    workspace_id: int,
    ids: Sequence[str],
    again: Mapping[str, datetime] = _NO_REPEATS,
    actor: Actor,
    now: datetime,
) -> None:
    """Weigh new episodes of turns once, in the order in which they were stored; those without a vector wait for it.

    `again` are those whose words were said once more in their conversation, by when that was (L15). The reader is asked
    before anything is locked; then all that changes is, in the order of ids, and changes together.
    """
    said = Episode.objects.for_workspace(workspace_id).active().filter(pk__in=ids, confidence__isnull=False)
    fresh = {one.pk: one for one in said.filter(distance=None).defer("search").order_by("number")}
    model = embedder_of(workspace_id)
    count = settings.POLICY.surprise.neighbours
    near = nearest_older_episodes(workspace_id=workspace_id, model=model.name, ids=list(fresh), count=count)
    older = Episode.objects.defer("search").in_bulk({one.id for found in near.values() for one in found})
    met = []
    for key, newer in fresh.items():
        if key in near:
            alike = {one.id: float(model.profile.reference(one.cosine)) for one in near[key]}
            _score_surprise(newer, list(alike.values()))
            met.append(_compare_with_older(newer, {older[one]: alike[one] for one in alike if one in older}))
    with transaction.atomic():
        _lock_episodes({*again, *near}.union(*([*one.confirmed, *one.aside] for one in met)))
        for key, occurred_at in again.items():
            _count_confirmation(key, occurred_at)
        for one in met:
            _apply_effects(one, actor=actor, now=now)
        Episode.objects.bulk_update([fresh[key] for key in near], _SURPRISE_COLUMNS)


_SURPRISE_COLUMNS = ("importance", "distance", "surprise", "is_near_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoteEffects:
    """What a new episode says of older ones, by their ids."""

    newer: Episode
    confirmed: Sequence[str]
    aside: Sequence[str]


def _lock_episodes(ids: Collection[str]) -> None:
    locked = Episode.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    list(locked.values_list("pk", flat=True))


def _score_surprise(newer: Episode, similarities: Sequence[float]) -> None:
    policy = settings.POLICY.surprise
    found = measure_surprise(similarities=similarities, policy=policy)
    newer.distance, newer.surprise, newer.is_near_duplicate = found.distance, found.score, found.is_near_duplicate
    newer.importance = move_importance(importance=newer.importance, surprise=found, policy=policy)


def _compare_with_older(newer: Episode, older: Mapping[Episode, float]) -> _NoteEffects:
    """Find what is said again, and what can no longer hold."""
    confirmed, aside = [], []
    for one, similarity in older.items():
        met = compare_memories(newer=newer, older=one, similarity=similarity, policy=settings.POLICY)
        if met.is_borne_out:
            confirmed.append(one.pk)
        elif met.relation is Relation.CONFLICT:
            aside.append(one.pk)
    return _NoteEffects(newer=newer, confirmed=confirmed, aside=aside)


def _apply_effects(met: _NoteEffects, *, actor: Actor, now: datetime) -> None:
    """Confirm what is said again, and put aside what can no longer hold."""
    for key in met.confirmed:
        _count_confirmation(key, met.newer.occurred_at)
    standing = Episode.objects.active().filter(pk__in=met.aside).values_list("pk", flat=True)
    reason = supersession_reason(met.newer.pk)
    change_episode_status(ids=list(standing), new=EpisodeStatus.SUPERSEDED, reason=reason, actor=actor, now=now)


def supersession_reason(key: str) -> str:
    """Word why a note is put aside: another one says otherwise, and is newer, or says all that it says (L18)."""
    return f"superseded by {key}"


def restore_superseded(*, workspace_id: int, by: Collection[str], actor: Actor, now: datetime) -> list[str]:
    """Bring back the notes that were put aside for nothing but some episodes that have left (L18); return them."""
    aside = Episode.objects.for_workspace(workspace_id).filter(status=EpisodeStatus.SUPERSEDED)
    why = Transition.objects.filter(episode=OuterRef("pk")).order_by("-pk").values("reason")[:1]
    left = aside.annotate(why=Subquery(why)).filter(why__in=[supersession_reason(key) for key in by])
    ids = list(left.values_list("pk", flat=True))
    return change_episode_status(ids=ids, new=EpisodeStatus.ACTIVE, reason=RESTORED_REASON, actor=actor, now=now)


def _count_confirmation(key: str, occurred_at: datetime) -> None:
    """Count a confirmation once: what confirms was said later than it, and than what confirmed it last."""
    later = Q(confirmed_at=None) | Q(confirmed_at__lt=occurred_at)
    said = Episode.objects.filter(later, pk=key, confidence__isnull=False, occurred_at__lt=occurred_at)
    said.update(confirmations=F("confirmations") + 1, confirmed_at=occurred_at)
