"""Open a cycle, keep it alive, know the time it has left; pause a workspace whose cycles get nothing done.

`open_cycle` opens one for a person, `try_open_cycle` one that nobody asked for. Rows are the truth; a message only
names a cycle and an attempt, and `renew_cycle` is false for an attempt that another has overtaken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, DateTimeField, DurationField, Exists, ExpressionWrapper, F, OuterRef, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least, Now, TruncDay

from memory.domain.errors import EngramError
from memory.domain.lifecycle import OWN_ERROR_PREFIX, CycleState, JobState
from memory.domain.policy_consolidation import BudgetPolicy
from memory.domain.time_limits import cooldown, holds_a_call
from memory.ledger.transactions import lock_workspace, try_lock_workspace
from memory.llm.call_log import CAP_REASONS
from memory.llm.registry import fingerprint_models
from memory.models import (
    CallOutcome,
    ClusterJob,
    Cycle,
    CycleStep,
    ModelCall,
    PauseReason,
    Trigger,
    Workspace,
    WorkspacePause,
)
from memory.signals import cycle_ready

log = structlog.get_logger(__name__)
_LEASE_DOUBLINGS = 3
RENEWAL_SECONDS = 1.0  # for so long a sign of life need not be repeated: all steps would write one row
TIME_SPENT = "working time"


@transaction.atomic
def open_cycle(*, workspace_id: int, now: datetime, trigger: Trigger) -> tuple[Cycle, bool]:
    """Open a cycle with `now` as its domain time, or return the workspace's open one; tell which (B7).

    Wait while one is undone or beliefs are rebuilt: they have looked that no cycle is open.
    """
    check_beliefs_enabled(workspace_id=workspace_id)
    lock_workspace(workspace_id)
    return _insert_cycle(workspace_id, now, trigger)


@transaction.atomic
def try_open_cycle(*, workspace_id: int, now: datetime, trigger: Trigger) -> Cycle | None:
    """Open a cycle that no person asked for; None where one is open, or where somebody holds the workspace.

    Nothing waits for that: storing episodes least of all. The sweeper comes back to what was not opened.
    """
    check_beliefs_enabled(workspace_id=workspace_id)
    if not try_lock_workspace(workspace_id):
        return None
    cycle, is_new = _insert_cycle(workspace_id, now, trigger)
    return cycle if is_new else None


def _insert_cycle(workspace_id: int, now: datetime, trigger: Trigger) -> tuple[Cycle, bool]:
    lease = database_now(plus=budget_policy().lease_seconds)
    cycle = None
    while cycle is None:  # one that stood in the way may have ended since, or our id may be taken
        drawn = Cycle(workspace_id=workspace_id, now=now, trigger=trigger, attempt=1, leased_until=lease)
        Cycle.objects.bulk_create([drawn], ignore_conflicts=True)
        cycle = Cycle.objects.open().filter(workspace=workspace_id).first()
    is_new = cycle.id == drawn.id
    if is_new:
        Cycle.objects.for_workspace(workspace_id).filter(has_backlog=True).update(has_backlog=False)
        cycle_ready.send(sender=Cycle, cycle_id=cycle.id, attempt=cycle.attempt)
    return cycle, is_new


def check_beliefs_enabled(*, workspace_id: int) -> None:
    """Raise BeliefsDisabled where a workspace, or the installation, recalls episodes only (B22)."""
    if not settings.ENGRAM_BELIEFS:
        raise BeliefsDisabled(
            "Beliefs are switched off in this installation (ENGRAM_BELIEFS): it recalls episodes only."
        )
    if not Workspace.objects.filter(pk=workspace_id, beliefs_enabled=True).exists():
        raise BeliefsDisabled("Beliefs are switched off in this workspace: it recalls episodes only.")


class BeliefsDisabled(EngramError, ValueError):
    """The workspace or the whole installation keeps no beliefs, so that no cycle is opened."""


@transaction.atomic
def begin_attempt(*, cycle_id: str) -> int | None:
    """Take over an open cycle whose lease has run out; return the new attempt's number.

    Leases double with each attempt up to eightfold, so that a queue that is merely long is not filled with attempts
    that overtake each other. Every attempt has at least its minimum of working time (B9).
    """
    cycle = Cycle.objects.abandoned().select_for_update(skip_locked=True).filter(pk=cycle_id).first()
    if cycle is None:
        return None
    seconds = budget_policy().lease_seconds * 2 ** min(cycle.attempt, _LEASE_DOUBLINGS)
    attempt: int = cycle.attempt + 1
    least = F("seen_at") + Value(timedelta(seconds=budget_policy().attempt_seconds))
    Cycle.objects.filter(pk=cycle_id).update(
        attempt=attempt,
        leased_until=database_now(plus=seconds),
        deadline_at=Case(
            When(deadline_at__isnull=False, cancelled_by="", then=Greatest(F("deadline_at"), least)),
            default=F("deadline_at"),
        ),
    )
    cycle_ready.send(sender=Cycle, cycle_id=cycle_id, attempt=attempt)
    return attempt


def claim_attempt(*, cycle_id: str, attempt: int) -> bool:
    """Begin or go on with an attempt's work; false for an attempt that is no longer the cycle's.

    Working time is what counts (B9): the deadline moves by the time in which nobody worked.
    """
    left = Coalesce(
        F("deadline_at") - Least(F("seen_at"), Now()),  # seen in the future: somebody waits, and that counts
        Value(timedelta(seconds=budget_policy().working_seconds)),
        output_field=DurationField(),
    )
    return _renew(
        _current_cycle(cycle_id, attempt, states=(CycleState.QUEUED, CycleState.RUNNING)),
        state=CycleState.RUNNING,
        taken_attempt=attempt,
        claims=F("claims") + Case(When(taken_attempt__lt=attempt, then=1), default=0),
        started_at=Coalesce(F("started_at"), Now()),
        deadline_at=ExpressionWrapper(Now() + left, output_field=DateTimeField()),
    )


def renew_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Show a sign of life, unless somebody just has; false for an attempt that is no longer the cycle's."""
    return _renew_stale(_current_cycle(cycle_id, attempt))


def renew_unless_cancelled(*, cycle_id: str, attempt: int) -> bool:
    """Do what `renew_cycle` does; false also for a cycle that somebody wants to end (B22)."""
    return _renew_stale(_current_cycle(cycle_id, attempt).filter(cancelled_by=""))


def renew_and_lock_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Show a sign of life and hold the cycle's row until the transaction ends; false for an attempt overtaken."""
    return _renew(_current_cycle(cycle_id, attempt))


def lock_running_cycle(*, cycle: Cycle) -> bool:
    """Hold the row of a running cycle until the transaction ends; false once it has ended or was overtaken."""
    held: bool = _current_cycle(cycle.pk, cycle.attempt).select_for_update(no_key=True).exists()
    return held


def read_current_cycle(*, cycle_id: str, attempt: int) -> Cycle | None:
    """Read a cycle with its workspace if this attempt is still its own, without touching it."""
    cycle: Cycle | None = _current_cycle(cycle_id, attempt).select_related("workspace").first()
    return cycle


def _current_cycle(cycle_id: str, attempt: int, *, states: tuple[CycleState, ...] = (CycleState.RUNNING,)) -> Any:
    if not settings.ENGRAM_BELIEFS:  # one that was open when beliefs were switched off: the sweeper cancels it
        return Cycle.objects.none()
    return Cycle.objects.filter(pk=cycle_id, attempt=attempt, state__in=states)


def _renew_stale(cycles: Any) -> bool:
    fresh = cycles.filter(
        seen_at__gt=database_now(plus=-RENEWAL_SECONDS),
        leased_until__gt=database_now(plus=budget_policy().lease_seconds - RENEWAL_SECONDS),
    )
    return fresh.exists() or _renew(cycles)


def _renew(cycles: Any, **also: Any) -> bool:
    lease = Greatest(F("leased_until"), database_now(plus=budget_policy().lease_seconds))
    updated: int = cycles.update(leased_until=lease, seen_at=Greatest(F("seen_at"), Now()), **also)
    return updated == 1


def database_now(*, plus: float = 0.0) -> ExpressionWrapper[Any]:
    """Name the moment `plus` seconds from now, by the database's clock."""
    return ExpressionWrapper(Now() + Value(timedelta(seconds=plus)), output_field=DateTimeField())


def budget_policy() -> BudgetPolicy:
    policy: BudgetPolicy = settings.POLICY.budget
    return policy


def seconds_left(*, cycle_id: str) -> float:
    """Return the working time that the running attempt has left, by the database's clock; none over budget."""
    cycle = Cycle.objects.filter(pk=cycle_id)
    deadline, clock, spent = cycle.values_list("deadline_at", Now(), "budget_spent").get()
    if spent:
        return 0.0
    return (deadline - clock).total_seconds() if deadline else budget_policy().working_seconds


def has_time_for_call(*, cycle_id: str, after: float = 0.0) -> bool:
    """Tell whether a model call begun after so many seconds would end before the deadline, with the margin (B9)."""
    return holds_a_call(seconds=seconds_left(cycle_id=cycle_id) - after, budget=budget_policy())


def mark_budget_spent(*, cycle_id: str, reason: str) -> None:
    """Note why no more work is started in this cycle; the first reason stays."""
    Cycle.objects.filter(pk=cycle_id, budget_spent="").update(budget_spent=reason[:100])


@contextmanager
def enter_step(
    *, cycle_id: str, attempt: int, name: str, enter: Callable[..., bool] = renew_and_lock_cycle
) -> Iterator[StepRun | None]:
    """Enter a step that happens once a cycle; None if the attempt is not the cycle's.

    The body runs in the transaction whose first statement shows the sign of life: it holds the cycle's row, so that
    nobody overtakes. The caller sets `step.counts`; leaving without an error writes down a step that was not done.
    """
    with transaction.atomic():
        step = read_step(cycle_id=cycle_id, name=name) if enter(cycle_id=cycle_id, attempt=attempt) else None
        yield step
        if step and not step.is_done:
            CycleStep.objects.create(
                workspace_id=step.cycle.workspace_id,
                cycle=step.cycle,
                name=name,
                started_at=step.began,
                finished_at=Now(),
                counts=step.counts,
            )


def read_step(*, cycle_id: str, name: str) -> StepRun:
    """Read a cycle, the database's clock, and whether this step of it has been done."""
    done = CycleStep.objects.filter(cycle=OuterRef("pk"), name=name, finished_at__isnull=False)
    cycle = Cycle.objects.annotate(clock=Now(), is_done=Exists(done)).get(pk=cycle_id)
    return StepRun(cycle=cycle, is_done=cycle.is_done, began=cycle.clock)


@dataclass(slots=True, kw_only=True)
class StepRun:
    """A step that happens once a cycle, as one finds it when entering; `counts` is what it did."""

    cycle: Cycle
    is_done: bool
    began: datetime
    counts: dict[str, int] = field(default_factory=dict)


def find_pause(*, workspace: Workspace) -> WorkspacePause | None:
    """Return why a workspace rests, None if it does not; changed settings or caps end a pause at once."""
    pause: WorkspacePause | None = WorkspacePause.objects.in_force().filter(workspace=workspace).first()
    return pause if pause and not is_pause_outdated(pause=pause, workspace=workspace) else None


def is_pause_outdated(*, pause: WorkspacePause, workspace: Workspace) -> bool:
    """Tell whether what led to a pause has been changed since."""
    return pause.fingerprint != _pause_fingerprint(PauseReason(pause.reason), workspace)


def find_paused_workspaces(*, workspaces: Iterable[Workspace]) -> set[int]:
    """Return which of some workspaces rest, by their numbers."""
    by_id = {workspace.pk: workspace for workspace in workspaces}
    pauses = WorkspacePause.objects.in_force().filter(workspace__in=by_id)
    return {
        pause.workspace_id
        for pause in pauses
        if not is_pause_outdated(pause=pause, workspace=by_id[pause.workspace_id])
    }


def end_pause(*, workspace_id: int) -> bool:
    """End a workspace's pause, as a person asks; false if it did not rest."""
    deleted, _ = WorkspacePause.objects.for_workspace(workspace_id).delete()
    return deleted > 0


def describe_pause(pause: WorkspacePause) -> str:
    """Say in one line why a workspace rests."""
    return f"{pause.get_reason_display()}{f' ({pause.detail})' if pause.detail else ''}"


def update_pause_after_cycle(*, cycle: Cycle, state: CycleState, budget_spent: str) -> None:
    """Let the workspace rest, or end its rest, by what came of a cycle; called as the cycle is closed."""
    if state == CycleState.CANCELLED:
        return
    refusal = _find_refusal(cycle)
    if refusal is not None:
        _pause_after_cycle(cycle, _PAUSE_REASONS[CallOutcome(refusal.outcome)], refusal.error)
    elif budget_spent in CAP_REASONS:
        _pause_after_cycle(cycle, PauseReason.CAP, budget_spent)
    elif _got_nothing_done(cycle, state):
        _pause_after_cycle(cycle, PauseReason.FAILURES, budget_spent or find_first_failure(cycle=cycle))
    else:
        end_pause(workspace_id=cycle.workspace_id)


_PAUSE_REASONS = {CallOutcome.AUTH: PauseReason.AUTH, CallOutcome.BILLING: PauseReason.BILLING}


def _find_refusal(cycle: Cycle) -> ModelCall | None:
    refused: ModelCall | None = (
        ModelCall.objects.filter(cycle=cycle, outcome__in=_PAUSE_REASONS).order_by("-id").first()
    )
    return refused


def _got_nothing_done(cycle: Cycle, state: CycleState) -> bool:
    """Tell whether a cycle had something to do, and no job came to an end or at least nearer to it.

    Vectors are something where that is as far as the cycle came, and nothing where its jobs then got no answer. What
    our own code broke on is no reason to rest: it would break on it at any hour (E6).
    """
    jobs = ClusterJob.objects.filter(cycle=cycle).exclude(
        state=JobState.FAILED, state_reason__startswith=OWN_ERROR_PREFIX
    )
    calls = ModelCall.objects.filter(cycle=cycle).exclude(outcome=CallOutcome.OWN_ERROR)
    has_jobs = jobs.exists()
    answered = calls.about_jobs() if has_jobs else calls
    if jobs.judged().exists() or answered.filter(outcome=CallOutcome.OK).exists():
        return False
    return state != CycleState.FINISHED or has_jobs or calls.exists()


def find_first_failure(*, cycle: Cycle) -> str:
    """Say what first kept a cycle's work from being done: a job's reason, a call's error, its own; "" for nothing."""
    reasons = ClusterJob.objects.filter(cycle=cycle).exclude(state_reason="").order_by("number")
    errors = ModelCall.objects.filter(cycle=cycle).exclude(error="").order_by("id")
    found = reasons.values_list("state_reason", flat=True).first() or errors.values_list("error", flat=True).first()
    return found or cycle.state_reason


def _pause_after_cycle(cycle: Cycle, reason: PauseReason, detail: str) -> None:
    pause_workspace(workspace_id=cycle.workspace_id, reason=reason, detail=detail, cycle=cycle.pk)


def pause_workspace(*, workspace_id: int, reason: PauseReason, detail: str, **about: object) -> None:
    """Write down that a workspace rests, and for how long by the database's clock; `about` is for the log."""
    before = WorkspacePause.objects.select_for_update().filter(workspace=workspace_id).first()
    failures = (before.failures if before else 0) + int(reason != PauseReason.CAP)
    WorkspacePause.objects.update_or_create(
        workspace_id=workspace_id,
        defaults={
            "reason": reason,
            "detail": detail[:200],
            "failures": failures,
            "since": before.since if before and before.reason == reason else Now(),
            "until": _pause_end(reason, failures),
            "fingerprint": _pause_fingerprint(reason, Workspace.objects.get(pk=workspace_id)),
        },
    )
    log.warning("workspace_rests", workspace=workspace_id, reason=reason, failures=failures, **about)


def _pause_end(reason: PauseReason, failures: int) -> ExpressionWrapper[Combinable]:
    policy = settings.POLICY.budget
    match reason:
        case PauseReason.CAP:
            today = TruncDay(Now(), tzinfo=UTC, output_field=DateTimeField())
            return _moment_after(today, timedelta(days=1))
        case PauseReason.AUTH | PauseReason.BILLING:
            return _moment_after(Now(), timedelta(hours=policy.probe_hours))
    return _moment_after(Now(), cooldown(failures=failures - 1, budget=policy))


def _moment_after(moment: Now | TruncDay, span: timedelta) -> ExpressionWrapper[Combinable]:
    return ExpressionWrapper(moment + Value(span), output_field=DateTimeField())


def _pause_fingerprint(reason: PauseReason, workspace: Workspace) -> str:
    if reason == PauseReason.CAP:
        return f"{workspace.daily_token_cap}/{workspace.daily_cost_cap_usd}"
    return fingerprint_models()
