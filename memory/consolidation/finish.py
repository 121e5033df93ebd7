"""The last step: what is due by time, what is left over, and the counts of the cycle."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Now

from memory.consolidation.backlog import count_done, leaves_backlog
from memory.consolidation.cycle import read_current
from memory.consolidation.pausing import note_outcome
from memory.consolidation.put_off import NO_ROOM
from memory.consolidation.settling import put_back, settle_expired
from memory.consolidation.structural import STEP, carry_over, let_go_of_jobs
from memory.consolidation.walk import walk_gates
from memory.domain.evidence import Verdict
from memory.domain.gates import ArchiveGate
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, CycleState, JobState, Reason
from memory.ledger.transactions import change_status, lock_beliefs, lock_workspace
from memory.models import (
    Belief,
    ClusterJob,
    Cycle,
    CycleStep,
    Episode,
    Evidence,
    GateDecision,
    JobKind,
    StructuralJob,
    StructuralKind,
)

log = structlog.get_logger(__name__)

LAST = "finish"

_BATCH = 50


def finish_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Archive what is due, settle what waited too long, count and close; false for an attempt that is not current.

    A structural job that another worker holds, or that waits for a model server, keeps the cycle open.
    """
    cycle = read_current(cycle_id=cycle_id, attempt=attempt)
    if cycle is None or not let_go_of_jobs(cycle=cycle):
        return False
    _begin(cycle)
    close_expired(cycle=cycle)
    archive_due(cycle=cycle)
    if cycle.cancelled_by:
        return close_cycle(cycle=cycle, attempt=attempt, state=CycleState.CANCELLED, reason=f"by {cycle.cancelled_by}")
    state = CycleState.OVER_BUDGET if cycle.budget_spent else CycleState.FINISHED
    return close_cycle(cycle=cycle, attempt=attempt, state=state, reason=cycle.budget_spent)


def _begin(cycle: Cycle) -> None:
    """Show that the last step has begun."""
    CycleStep.objects.get_or_create(cycle=cycle, name=LAST, defaults={"workspace_id": cycle.workspace_id})


def archive_due(*, cycle: Cycle) -> int:
    """Ask the archive gate about every live belief that time alone may archive; return how many were looked at."""
    due = beliefs_due(workspace_id=cycle.workspace_id, now=cycle.now)
    seen: set[str] = set()
    while batch := list(
        due.exclude(pk__in=seen).order_by("archive_due_at", "pk").values_list("pk", flat=True)[:_BATCH]
    ):
        walk_gates(cycle=cycle, belief_ids=batch, gates=(ArchiveGate(),))
        seen.update(batch)
    return len(seen)


@transaction.atomic
def close_expired(*, cycle: Cycle, among: Collection[str] | None = None) -> int:
    """Close the live beliefs whose time has come and for which nothing was announced (C2); return how many."""
    lock_workspace(cycle.workspace_id)
    live = Belief.objects.for_workspace(cycle.workspace_id).filter(status__in=LIVE, is_pinned=False)
    over = live.filter(valid_until__lte=cycle.now)
    if among is not None:
        over = over.filter(pk__in=among)
    beliefs = lock_beliefs(over.values("pk")) if over.exists() else []
    for belief in beliefs:
        change_status(
            belief=belief,
            new=BeliefStatus.INVALIDATED,
            reason=Reason.CHANGED,
            actor=cycle_actor(cycle.pk),
            now=cycle.now,
        )
    return len(beliefs)


def beliefs_due(*, workspace_id: int, now: datetime) -> QuerySet[Belief]:
    """Select the live beliefs that time alone may archive (B14)."""
    return Belief.objects.for_workspace(workspace_id).filter(status__in=LIVE, archive_due_at__lte=now, is_pinned=False)


@transaction.atomic
def close_cycle(*, cycle: Cycle, attempt: int, state: CycleState, reason: str = "") -> bool:
    """End a cycle once: return its leased episodes, settle expired ones, keep its counts; false if it has ended."""
    ours = Cycle.objects.select_for_update(no_key=True).filter(pk=cycle.pk, attempt=attempt, finished_at=None)
    if not ours.exists():
        return False
    left = ClusterJob.objects.filter(cycle=cycle).unfinished()
    left.update(state=JobState.DEFERRED, state_reason=reason, lease_owner="", leased_until=None, not_before=None)
    carry_over(cycle=cycle)
    put_back(episodes=Episode.objects.filter(leased_by=cycle.pk))
    expired = settle_expired(cycle=cycle)
    steps = CycleStep.objects.filter(cycle=cycle)
    steps.filter(name__in=("gate", STEP), finished_at=None).update(finished_at=Now())
    _begin(cycle)  # where a cycle ends without its last step
    steps.filter(name=LAST).update(finished_at=Now(), counts={"no_belief": expired})
    counts = count_cycle(cycle) | {"done": count_done(cycle=cycle)}
    newest = Episode.objects.for_workspace(cycle.workspace_id).filter(created_at__lte=cycle.now)
    ours.update(
        state=state,
        state_reason=reason,
        finished_at=Now(),
        counts=counts,
        checkpoint_at=newest.aggregate(newest=Max("created_at"))["newest"],
    )
    note_outcome(cycle=cycle, state=state, budget_spent=cycle.budget_spent)
    is_followed = leaves_backlog(cycle=cycle, state=state, done=counts["done"])
    Cycle.objects.filter(pk=cycle.pk).update(has_backlog=is_followed)
    log.info("cycle_closed", cycle=cycle.pk, workspace=cycle.workspace_id, state=state, **counts)
    return True


def count_cycle(cycle: Cycle) -> dict[str, int]:
    """Count what a cycle did, from its rows alone."""
    jobs = ClusterJob.objects.filter(cycle=cycle).aggregate(
        clusters=Count("pk", filter=Q(kind=JobKind.CLUSTER) & ~Q(state_reason=NO_ROOM)),
        created=Count("pk", filter=Q(created_belief__isnull=False)),
        deferred=Count("pk", filter=Q(state=JobState.DEFERRED)),
        failed=Count("pk", filter=Q(state=JobState.FAILED)),
    )
    older = Evidence.objects.filter(cycle=cycle, base_weight__gt=0).exclude(belief__born_in=cycle)
    touched = older.aggregate(
        reinforced=_beliefs(Verdict.SUPPORTS),
        contradicted=_beliefs(Verdict.CONTRADICTS),
        partial=_beliefs(Verdict.PARTIAL),
    )
    extracted = CycleStep.objects.filter(cycle=cycle, name="extract").values_list("counts", flat=True).first() or {}
    return {
        "episodes": extracted.get("episodes", 0),
        "clusters": jobs["clusters"],
        "created": jobs["created"],
        **touched,
        **_count_changes(cycle),
        "archived": GateDecision.objects.filter(cycle=cycle, gate="archive", passed=True).count(),
        "deferred": jobs["deferred"],
        "failed": jobs["failed"],
    }


def _count_changes(cycle: Cycle) -> dict[str, int]:
    """Count the structural changes, by what came of the beliefs that they changed."""
    applied = StructuralJob.objects.filter(cycle=cycle, state=JobState.APPLIED).values_list("kind", flat=True)
    done = Counter(applied)
    return {
        "revised": done[StructuralKind.REVISE],
        "split": done[StructuralKind.SPLIT],
        "merged": done[StructuralKind.MERGE],
    }


def _beliefs(verdict: Verdict) -> Count:
    """Count the beliefs that gained such a verdict."""
    return Count("belief", distinct=True, filter=Q(verdict=verdict))
