"""A look at all beliefs of a workspace: which may say the same, and which have faded (R7, R7d)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Max

from memory.domain.actor import Actor
from memory.domain.fading import effective_confidence
from memory.domain.lifecycle import BeliefStatus
from memory.ledger.confidence import WITHDRAWN_STATUSES, chosen_confidence
from memory.ledger.transactions import change_status, lock_beliefs, lock_workspace, scan_lock
from memory.models import Belief, Evidence, Link, LinkKind, Workspace
from memory.remembering.pairing import Alike, Band, Pair, most_alike, passes_guard, still_active

log = structlog.get_logger(__name__)

_BATCH = 50  # beliefs that are pruned in one transaction
FADED = "faded"  # why a belief is pruned


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Two beliefs that may say the same: similarity on the reference scale, and whether the guard passes."""

    ids: tuple[str, str]
    statements: tuple[str, str]
    similarity: float
    passes_guard: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded:
    """A belief of which nothing was said for so long that little of its confidence is left."""

    id: str
    statement: str
    effective_confidence: float
    is_prunable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """What a look at all beliefs found: counts, and the first of each kind; nothing is changed by it."""

    beliefs: int
    duplicate_count: int
    duplicates: Sequence[Duplicate]
    faded_count: int
    faded: Sequence[Faded]


def reflect(*, workspace: Workspace, now: datetime, most: int) -> Reflection:
    """Look through a workspace's active beliefs; tell of so many pairs, and of so many that have faded.

    Raises Occupied where somebody does so already.
    """
    active = Belief.objects.for_workspace(workspace.pk).active()
    alike = _find_alike(workspace, from_similarity=settings.POLICY.reflection.duplicate_similarity, most=most)
    faded = sorted(find_faded(workspace=workspace, now=now), key=lambda one: (one.effective_confidence, one.id))
    return Reflection(
        beliefs=active.count(),
        duplicate_count=alike.count,
        duplicates=[_as_duplicate(pair) for pair in alike.pairs],
        faded_count=len(faded),
        faded=faded[:most],
    )


def _find_alike(workspace: Workspace, *, from_similarity: float, most: int) -> Alike:
    with scan_lock(workspace.pk):
        return most_alike(workspace=workspace, band=Band(low=from_similarity), most=most)


def _as_duplicate(pair: Pair) -> Duplicate:
    return Duplicate(
        ids=pair.ids,
        statements=(pair.one.statement, pair.other.statement),
        similarity=pair.similarity,
        passes_guard=passes_guard(pair=pair),
    )


def find_faded(*, workspace: Workspace, now: datetime, among: Collection[str] | None = None) -> Iterator[Faded]:
    """Yield the active beliefs whose effective confidence is low; what is kept by others is never prunable (R7d).

    `among` names those that are looked at, None all.
    """
    policy = settings.POLICY.reflection
    active = Belief.objects.for_workspace(workspace.pk).active().select_related("workspace", "access").defer("search")
    counting = Evidence.objects.for_workspace(workspace.pk).exclude(episode__status__in=WITHDRAWN_STATUSES)
    if among is not None:
        active, counting = active.filter(pk__in=among), counting.filter(belief__in=among)
    said = dict(counting.filter(base_weight__gt=0).values_list("belief").annotate(Max("created_at")))
    for belief in active.iterator(chunk_size=1000):
        left = effective_confidence(
            confidence=chosen_confidence(belief),
            since_evidence=now - said.get(belief.pk, belief.created_at),
            stability=_stability(belief),
            policy=policy,
        )
        if left < policy.stale_confidence:
            is_prunable = left < policy.prune_confidence and not _is_kept(belief, now)
            yield Faded(id=belief.pk, statement=belief.statement, effective_confidence=left, is_prunable=is_prunable)


def _stability(belief: Belief) -> float:
    access = getattr(belief, "access", None)
    initial: float = settings.POLICY.retrieval.initial_stability
    return access.stability if access else initial


def _is_kept(belief: Belief, now: datetime) -> bool:
    """Tell whether a belief is pinned, published, well evidenced, or was restored by a person not long ago (B14)."""
    is_published = belief.promoted_at is not None or belief.published_confidence is not None
    restored_at, rest = belief.restored_by_person_at, timedelta(days=settings.POLICY.gate.archive_restored_days)
    is_restored = restored_at is not None and now - restored_at < rest
    is_evidenced = belief.evidence_count >= settings.POLICY.reflection.prune_evidence
    return belief.is_pinned or is_published or is_restored or is_evidenced


def list_prunable(*, workspace: Workspace, now: datetime, among: Collection[str] | None = None) -> list[Faded]:
    """List the beliefs that pruning would take."""
    faded = find_faded(workspace=workspace, now=now, among=among)
    return sorted((one for one in faded if one.is_prunable), key=lambda one: one.id)


def prune(*, workspace: Workspace, actor: Actor, now: datetime) -> list[Faded]:
    """Take out of recall what has faded, and return it; a curator can restore it.

    A few at a time, so that gates and people need not wait for all of them; what was said meanwhile counts.
    """
    ids = [one.id for one in list_prunable(workspace=workspace, now=now)]
    pruned: list[Faded] = []
    for start in range(0, len(ids), _BATCH):
        pruned += _prune(workspace, ids[start : start + _BATCH], actor, now)
    log.info("beliefs_pruned", workspace=workspace.pk, beliefs=len(pruned))
    return pruned


@transaction.atomic
def _prune(workspace: Workspace, ids: Sequence[str], actor: Actor, now: datetime) -> list[Faded]:
    """Prune those of the named beliefs that are still to be."""
    lock_workspace(workspace.pk)
    pruned = list_prunable(workspace=workspace, now=now, among=ids)
    for belief in lock_beliefs([one.id for one in pruned]):
        change_status(belief=belief, new=BeliefStatus.PRUNED, reason=FADED, actor=actor, now=now)
    return pruned


def propose_merges(*, workspace: Workspace, now: datetime) -> list[Duplicate]:
    """Have the next cycle's merge gate (B13) look at the pairs that may say the same; return those that it may merge.

    The gate asks for more than a reflection does, and a model agrees or not. Of very many the most similar have their
    turn, the others once those are merged. Raises Occupied.
    """
    least = settings.POLICY.gate.merge_similarity
    alike = _find_alike(workspace, from_similarity=least, most=settings.POLICY.reflection.pairs)
    nearest = [_as_duplicate(pair) for pair in alike.pairs if pair.similarity > least]
    proposed = _propose(workspace, [pair for pair in nearest if pair.passes_guard], now)
    log.info("merges_proposed", workspace=workspace.pk, pairs=len(proposed))
    return proposed


@transaction.atomic
def _propose(workspace: Workspace, pairs: Sequence[Duplicate], now: datetime) -> list[Duplicate]:
    """Store pairs, but for those of which one was erased since, or is believed no more; return the stored ones."""
    lock_workspace(workspace.pk)
    proposed = still_active(pairs)
    rows = [
        Link(
            workspace=workspace,
            belief_id=pair.ids[0],
            other_id=pair.ids[1],
            kind=LinkKind.DUPLICATE,
            similarity=pair.similarity,
            created_at=now,
        )
        for pair in proposed
    ]
    Link.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["belief", "other", "kind"], update_fields=["created_at"]
    )
    return proposed
