"""The last step: close and archive what is due by time, settle what is left over, count, and end the cycle.

`finish_cycle` is the step, `close_cycle` ends a cycle however it ends, `cancel_cycle` as a person asks (B22).
`is_idle_after` and `needs_next_cycle` say whether another would find anything to do (B7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.db.models.functions import Now

from memory.consolidation.cluster import NO_ROOM
from memory.consolidation.cycle import find_pause, read_current_cycle, update_pause_after_cycle
from memory.consolidation.episode_states import requeue_episodes, settle_expired
from memory.consolidation.gates import run_gates
from memory.consolidation.jobs import counting_blames
from memory.consolidation.restructure import RESTRUCTURE_STEP, carry_over_jobs, release_structural_jobs
from memory.domain.errors import EngramError
from memory.domain.evidence import Verdict
from memory.domain.gates import ArchiveGate
from memory.domain.identity import Actor
from memory.domain.lifecycle import LIVE, ConsolidationState, CycleState, JobState, Reason
from memory.ledger.gates import close_belief
from memory.ledger.transactions import Author, lock_beliefs, lock_workspace
from memory.models import (
    Belief,
    CallOutcome,
    ClusterJob,
    ClusterMember,
    Cycle,
    CycleStep,
    Episode,
    Evidence,
    GateDecision,
    JobKind,
    ModelCall,
    StructuralJob,
    StructuralKind,
)
from memory.models.cycles import OPEN_CYCLE_STATES

log = structlog.get_logger(__name__)
FINISH_STEP = "finish"
_BATCH = 50
CANCELLED = "cancelled"


def finish_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Archive what is due, settle what waited too long, count and close; false for an attempt that is not current.

    A structural job that another worker holds, or that waits for a model server, keeps the cycle open.
    """
    cycle = read_current_cycle(cycle_id=cycle_id, attempt=attempt)
    if cycle is None or not release_structural_jobs(cycle=cycle):
        return False
    _begin_last_step(cycle)
    close_expired_beliefs(cycle=cycle)
    archive_due_beliefs(cycle=cycle)
    if cycle.cancelled_by:
        return close_cycle(cycle=cycle, attempt=attempt, state=CycleState.CANCELLED, reason=f"by {cycle.cancelled_by}")
    state = CycleState.OVER_BUDGET if cycle.budget_spent else CycleState.FINISHED
    return close_cycle(cycle=cycle, attempt=attempt, state=state, reason=cycle.budget_spent)


def _begin_last_step(cycle: Cycle) -> None:
    """Show that the last step has begun."""
    CycleStep.objects.get_or_create(cycle=cycle, name=FINISH_STEP, defaults={"workspace_id": cycle.workspace_id})


@transaction.atomic
def close_expired_beliefs(*, cycle: Cycle, among: Collection[str] | None = None) -> int:
    """Close the live beliefs whose time has come and for which nothing was announced (C2); return how many."""
    lock_workspace(cycle.workspace_id)
    live = Belief.objects.for_workspace(cycle.workspace_id).filter(status__in=LIVE, is_pinned=False)
    over = live.filter(valid_until__lte=cycle.now)
    if among is not None:
        over = over.filter(pk__in=among)
    beliefs = lock_beliefs(over.values("pk")) if over.exists() else []
    author = Author.of_cycle(cycle, reason=Reason.CHANGED)
    for belief in beliefs:
        assert belief.valid_until  # the query asked for it
        close_belief(belief=belief, at=belief.valid_until, author=author)
    return len(beliefs)


def archive_due_beliefs(*, cycle: Cycle) -> int:
    """Ask the archive gate about every live belief that time alone may archive; return how many were looked at."""
    due = select_beliefs_due(workspace_id=cycle.workspace_id, now=cycle.now)
    seen: set[str] = set()
    while batch := list(
        due.exclude(pk__in=seen).order_by("archive_due_at", "pk").values_list("pk", flat=True)[:_BATCH]
    ):
        run_gates(cycle=cycle, belief_ids=batch, gates=(ArchiveGate(),))
        seen.update(batch)
    return len(seen)


def select_beliefs_due(*, workspace_id: int, now: datetime) -> QuerySet[Belief]:
    """Select the live beliefs that time alone may archive (B14)."""
    return Belief.objects.for_workspace(workspace_id).filter(status__in=LIVE, archive_due_at__lte=now, is_pinned=False)


@transaction.atomic
def close_cycle(*, cycle: Cycle, attempt: int, state: CycleState, reason: str = "") -> bool:
    """End a cycle once: return its leased episodes, settle expired ones, keep its counts; false if it has ended."""
    ours = Cycle.objects.select_for_update(no_key=True).filter(pk=cycle.pk, attempt=attempt, finished_at=None)
    if not ours.exists():
        return False
    left = ClusterJob.objects.filter(cycle=cycle).open()
    left.revoke(state=JobState.DEFERRED, state_reason=reason)
    carry_over_jobs(cycle=cycle)
    requeue_episodes(episodes=Episode.objects.filter(leased_by=cycle.pk))
    expired = settle_expired(cycle=cycle)
    steps = CycleStep.objects.filter(cycle=cycle)
    steps.filter(name__in=("gate", RESTRUCTURE_STEP), finished_at=None).update(finished_at=Now())
    _begin_last_step(cycle)  # where a cycle ends without its last step
    steps.filter(name=FINISH_STEP).update(finished_at=Now(), counts={"no_belief": expired})
    counts = count_cycle(cycle) | {"done": count_consolidated(cycle=cycle)}
    newest = Episode.objects.for_workspace(cycle.workspace_id).filter(created_at__lte=cycle.now)
    ours.update(
        state=state,
        state_reason=reason,
        finished_at=Now(),
        counts=counts,
        checkpoint_at=newest.aggregate(newest=Max("created_at"))["newest"],
    )
    update_pause_after_cycle(cycle=cycle, state=state, budget_spent=cycle.budget_spent)
    is_followed = needs_next_cycle(cycle=cycle, state=state, done=counts["done"])
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
    older = Evidence.objects.filter(cycle=cycle, base_weight__gt=0).exclude(belief__created_in=cycle)
    touched = older.aggregate(
        reinforced=_count_beliefs(Verdict.SUPPORTS),
        contradicted=_count_beliefs(Verdict.CONTRADICTS),
        partial=_count_beliefs(Verdict.PARTIAL),
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


def _count_beliefs(verdict: Verdict) -> Count:
    """Count the beliefs that gained such a verdict."""
    return Count("belief", distinct=True, filter=Q(verdict=verdict))


def count_consolidated(*, cycle: Cycle) -> int:
    """Count the episodes that waited when a cycle took up its own, and wait no longer; called as it is closed."""
    extracted = CycleStep.objects.filter(cycle=cycle, name="extract").first()
    if extracted is None:
        return 0
    pending = Episode.objects.for_workspace(cycle.workspace_id).pending()
    still_waiting: int = pending.filter(created_at__lte=extracted.started_at).count()
    done: int = max(extracted.counts.get("waiting", 0) - still_waiting, 0)
    return done


def needs_next_cycle(*, cycle: Cycle, state: CycleState, done: int) -> bool:
    """Tell whether the next cycle is to follow at once; called as a cycle is closed, its rest written down.

    One that got nothing out of the way is followed by none: whatever stopped it would stop the next one, too.
    """
    if state in _LAST_STATES or find_pause(workspace=cycle.workspace) is not None:
        return False
    put_off = ClusterJob.objects.filter(cycle=cycle, state=JobState.DEFERRED)  # of episodes in the pool, perhaps
    waits = Episode.objects.for_workspace(cycle.workspace_id).pending()
    return (waits.exists() or put_off.exists()) and (done > 0 or made_progress(cycle=cycle))


_LAST_STATES = (CycleState.CANCELLED, CycleState.FAILED)


def is_idle_after(*, cycle: Cycle) -> bool:
    """Tell whether another cycle would find nothing to do, or nothing that the last one could do either.

    Episodes stay pending without end where a model keeps failing: a cycle that applied nothing is the last, unless
    more has come since.
    """
    if cycle.state in (CycleState.FAILED, CycleState.CANCELLED):
        return True
    return not _has_work(cycle) or not (made_progress(cycle=cycle) or has_more_since(cycle=cycle))


def has_more_since(*, cycle: Cycle) -> bool:
    """Tell whether episodes wait that came after a cycle was opened, so that it may not have seen them."""
    waiting = Episode.objects.for_workspace(cycle.workspace_id).pending()
    return waiting.filter(state=ConsolidationState.NEW, created_at__gt=cycle.opened_at).exists()


def _has_work(cycle: Cycle) -> bool:
    """Tell whether anything waits, or the cycle had something to judge, which may have made more to judge."""
    return (
        Episode.objects.for_workspace(cycle.workspace_id).pending().exists()
        or ClusterJob.objects.filter(cycle=cycle).exists()
        or StructuralJob.objects.for_workspace(cycle.workspace_id).open().exists()
    )


def made_progress(*, cycle: Cycle) -> bool:
    """Tell whether a cycle got anything out of the way, or paid for something that the next need not pay for.

    A job judged, an episode pooled for want of company or a step nearer to the dead letters, an answer stored.
    """
    if ModelCall.objects.filter(cycle=cycle, outcome=CallOutcome.OK).exists():
        return True
    if CycleStep.objects.filter(cycle=cycle, name="extract", counts__blamed__gt=0).exists():
        return True
    blamed = ClusterMember.objects.filter(job__cycle=cycle, job__state=JobState.FAILED)
    if blamed.filter(blame__in=counting_blames(cycle_id=cycle.pk)).exists():
        return True
    judged = ClusterJob.objects.filter(cycle=cycle).judged().exists()
    pooled = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at=cycle.now
    )
    return judged or pooled.exists() or StructuralJob.objects.filter(cycle=cycle).exists()


class CycleEnded(EngramError, ValueError):
    """A cycle that is over cannot be cancelled."""


@transaction.atomic
def cancel_cycle(*, cycle_id: str, actor: Actor) -> Cycle:
    """Let a cycle start no more work; one that nobody has taken up ends at once, a running one within a call's time.

    Calls that are under way are waited for and stay in the ledger, so that the next cycle does not pay them again.
    """
    cycle: Cycle = Cycle.objects.select_for_update().get(pk=cycle_id)
    if cycle.state not in OPEN_CYCLE_STATES:
        raise CycleEnded(f"Cycle {cycle.pk} has ended as {cycle.state}.")
    if not cycle.cancelled_by:
        _stop_cycle(cycle, str(actor))
    cycle.refresh_from_db()
    return cycle


def _stop_cycle(cycle: Cycle, actor: str) -> None:
    # No working time is left from where it was seen last, so that an attempt that takes it over has none either.
    Cycle.objects.filter(pk=cycle.pk).update(cancelled_by=actor, budget_spent=CANCELLED, deadline_at=F("seen_at"))
    if cycle.state == CycleState.QUEUED:
        close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.CANCELLED, reason=f"by {actor}")
        return
    # A job that waits for a model server would keep the cycle open for as long.
    for jobs in (ClusterJob.objects, StructuralJob.objects):
        jobs.filter(cycle=cycle, not_before__gt=Now()).update(not_before=Now())
