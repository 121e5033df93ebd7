"""A cycle's life: opened once per workspace, taken up by attempts, kept alive by leases.

Its rows are the truth; a message only says which cycle and which attempt. What an older attempt left under way finds
`renew_cycle` false and ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, DateTimeField, DurationField, Exists, ExpressionWrapper, F, OuterRef, Value, When
from django.db.models.functions import Coalesce, Greatest, Least, Now

from memory.consolidation.clock import database_now
from memory.consolidation.pausing import find_pause
from memory.domain.lifecycle import ConsolidationState, CycleState
from memory.domain.policy import BudgetPolicy, holds_a_call
from memory.ledger.transactions import lock_workspace, try_lock_workspace
from memory.models import Cycle, CycleStep, Episode, Trigger, Workspace
from memory.models.cycles import OPEN_CYCLE_STATES
from memory.search.prepared import run_prepared
from memory.signals import cycle_ready

TIME_IS_UP = "working time"

FRESH_SECONDS = 1.0  # for so long a sign of life need not be repeated: all steps would write one row
_LEASE_DOUBLINGS = 3


def budget_policy() -> BudgetPolicy:
    policy: BudgetPolicy = settings.POLICY.budget
    return policy


class BeliefsAreOff(ValueError):
    """The workspace or the whole installation keeps no beliefs, so that no cycle is opened."""


def check_believing(*, workspace_id: int) -> None:
    """Raise BeliefsAreOff where a workspace, or the installation, recalls episodes only (B22)."""
    if not settings.ENGRAM_BELIEFS:
        raise BeliefsAreOff("Beliefs are switched off in this installation (ENGRAM_BELIEFS): it recalls episodes only.")
    if not Workspace.objects.filter(pk=workspace_id, is_believing=True).exists():
        raise BeliefsAreOff("Beliefs are switched off in this workspace: it recalls episodes only.")


@transaction.atomic
def open_cycle(*, workspace_id: int, now: datetime, trigger: Trigger) -> tuple[Cycle, bool]:
    """Open a cycle with `now` as its domain time, or return the workspace's open one; tell which (B7).

    Wait while one is undone or beliefs are rebuilt: they have looked that no cycle is open.
    """
    check_believing(workspace_id=workspace_id)
    lock_workspace(workspace_id)
    return _open(workspace_id, now, trigger)


@transaction.atomic
def open_cycle_unasked(*, workspace_id: int, now: datetime, trigger: Trigger) -> Cycle | None:
    """Open a cycle that no person asked for; None where one is open, or where somebody holds the workspace.

    Nothing waits for that: storing episodes least of all. The sweeper comes back to what was not opened.
    """
    check_believing(workspace_id=workspace_id)
    if not try_lock_workspace(workspace_id):
        return None
    cycle, is_new = _open(workspace_id, now, trigger)
    return cycle if is_new else None


def _open(workspace_id: int, now: datetime, trigger: Trigger) -> tuple[Cycle, bool]:
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


def note_new_episodes(*, workspace_id: int, now: datetime) -> Cycle | None:
    """Open a cycle where enough new episodes wait, none is open, nobody holds the workspace and it does not rest."""
    if not _may_wake(workspace_id):
        return None
    enough = settings.POLICY.consolidation.trigger_episodes
    waiting = Episode.objects.for_workspace(workspace_id).pending().filter(state=ConsolidationState.NEW)
    if len(waiting.values_list("pk")[:enough]) < enough or _rests(workspace_id):
        return None
    return open_cycle_unasked(workspace_id=workspace_id, now=now, trigger=Trigger.EPISODES)


def _may_wake(workspace_id: int) -> bool:
    """Tell in one look whether new episodes may start a cycle.

    Every write asks this, and a query set takes longer to write than the statement to run.
    """
    if not settings.ENGRAM_BELIEFS:
        return False
    row = run_prepared(statement=_MAY_WAKE, parameters={"workspace": workspace_id}, keeps_plan=True).fetchone()
    return row is not None


_OPEN = ", ".join(f"'{state}'" for state in OPEN_CYCLE_STATES)
_MAY_WAKE = f"""
SELECT FROM memory_workspace w WHERE id = %(workspace)s::bigint AND is_believing
    AND (next_cycle_held_until > STATEMENT_TIMESTAMP()) IS NOT TRUE
    AND NOT EXISTS (SELECT FROM memory_cycle WHERE workspace_id = w.id AND state IN ({_OPEN}))
"""  # noqa: S608  (the states are our own)


def _rests(workspace_id: int) -> bool:
    return find_pause(workspace=Workspace.objects.get(pk=workspace_id)) is not None


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


def take_up_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Begin or go on with an attempt's work; false for an attempt that is no longer the cycle's.

    Working time is what counts (B9): the deadline moves by the time in which nobody worked.
    """
    left = Coalesce(
        F("deadline_at") - Least(F("seen_at"), Now()),  # seen in the future: somebody waits, and that counts
        Value(timedelta(seconds=budget_policy().working_seconds)),
        output_field=DurationField(),
    )
    return _renew(
        _running(cycle_id, attempt, states=(CycleState.QUEUED, CycleState.RUNNING)),
        state=CycleState.RUNNING,
        taken_attempt=attempt,
        claims=F("claims") + Case(When(taken_attempt__lt=attempt, then=1), default=0),
        started_at=Coalesce(F("started_at"), Now()),
        deadline_at=ExpressionWrapper(Now() + left, output_field=DateTimeField()),
    )


def renew_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Show a sign of life, unless somebody just has; false for an attempt that is no longer the cycle's."""
    return _renew_stale(_running(cycle_id, attempt))


def renew_unless_cancelled(*, cycle_id: str, attempt: int) -> bool:
    """Do what `renew_cycle` does; false also for a cycle that somebody wants to end (B22)."""
    return _renew_stale(_running(cycle_id, attempt).filter(cancelled_by=""))


def hold_cycle(*, cycle_id: str, attempt: int) -> bool:
    """Show a sign of life and hold the cycle's row until the transaction ends; false for an attempt overtaken."""
    return _renew(_running(cycle_id, attempt))


def keep_running(*, cycle: Cycle) -> bool:
    """Hold the row of a running cycle until the transaction ends; false once it has ended or was overtaken."""
    held: bool = _running(cycle.pk, cycle.attempt).select_for_update(no_key=True).exists()
    return held


def read_current(*, cycle_id: str, attempt: int) -> Cycle | None:
    """Read a cycle with its workspace if this attempt is still its own, without touching it."""
    cycle: Cycle | None = _running(cycle_id, attempt).select_related("workspace").first()
    return cycle


def _running(cycle_id: str, attempt: int, *, states: tuple[CycleState, ...] = (CycleState.RUNNING,)) -> Any:
    if not settings.ENGRAM_BELIEFS:  # one that was open when beliefs were switched off: the sweeper cancels it
        return Cycle.objects.none()
    return Cycle.objects.filter(pk=cycle_id, attempt=attempt, state__in=states)


def _renew_stale(cycles: Any) -> bool:
    fresh = cycles.filter(
        seen_at__gt=database_now(plus=-FRESH_SECONDS),
        leased_until__gt=database_now(plus=budget_policy().lease_seconds - FRESH_SECONDS),
    )
    return fresh.exists() or _renew(cycles)


def _renew(cycles: Any, **also: Any) -> bool:
    lease = Greatest(F("leased_until"), database_now(plus=budget_policy().lease_seconds))
    updated: int = cycles.update(leased_until=lease, seen_at=Greatest(F("seen_at"), Now()), **also)
    return updated == 1


def seconds_left(*, cycle_id: str) -> float:
    """Return the working time that the running attempt has left, by the database's clock; none over budget."""
    cycle = Cycle.objects.filter(pk=cycle_id)
    deadline, clock, spent = cycle.values_list("deadline_at", Now(), "budget_spent").get()
    if spent:
        return 0.0
    return (deadline - clock).total_seconds() if deadline else budget_policy().working_seconds


def has_time_for_a_call(*, cycle_id: str, after: float = 0.0) -> bool:
    """Tell whether a model call begun after so many seconds would end before the deadline, with the margin (B9)."""
    return holds_a_call(seconds=seconds_left(cycle_id=cycle_id) - after, budget=budget_policy())


def spend_budget(*, cycle_id: str, reason: str) -> None:
    """Note why no more work is started in this cycle; the first reason stays."""
    Cycle.objects.filter(pk=cycle_id, budget_spent="").update(budget_spent=reason[:100])


@dataclass(slots=True, kw_only=True)
class OnceStep:
    """A step that happens once a cycle, as one finds it when entering; `counts` is what it did."""

    cycle: Cycle
    is_done: bool
    began: datetime
    counts: dict[str, int] = field(default_factory=dict)


@contextmanager
def step_of_cycle(
    *, cycle_id: str, attempt: int, name: str, enter: Callable[..., bool] = hold_cycle
) -> Iterator[OnceStep | None]:
    """Enter a step that happens once a cycle; None if the attempt is not the cycle's.

    The body runs in the transaction whose first statement shows the sign of life: it holds the cycle's row, so that
    nobody overtakes. The caller sets `step.counts`; leaving without an error writes down a step that was not done.
    """
    with transaction.atomic():
        step = look_at_step(cycle_id=cycle_id, name=name) if enter(cycle_id=cycle_id, attempt=attempt) else None
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


def look_at_step(*, cycle_id: str, name: str) -> OnceStep:
    """Read a cycle, the database's clock, and whether this step of it has been done."""
    done = CycleStep.objects.filter(cycle=OuterRef("pk"), name=name, finished_at__isnull=False)
    cycle = Cycle.objects.annotate(clock=Now(), is_done=Exists(done)).get(pk=cycle_id)
    return OnceStep(cycle=cycle, is_done=cycle.is_done, began=cycle.clock)
