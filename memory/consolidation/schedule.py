"""Open the cycles that are due, and wake those that lost their worker or their message.

Cycles open for enough new episodes, by the schedule, after a pause, and one after another while a backlog lasts (B7,
B9). `sweep` runs every few seconds, anywhere, any number at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import (
    BooleanField,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Now

from memory.consolidation.cycle import (
    begin_attempt,
    budget_policy,
    find_pause,
    find_paused_workspaces,
    is_pause_outdated,
    try_open_cycle,
)
from memory.consolidation.extract import count_waiting_episodes
from memory.consolidation.finish import close_cycle
from memory.domain.lifecycle import LIVE, WORKSPACE_ERRORS, ConsolidationState, CycleState
from memory.domain.time_limits import step_seconds
from memory.llm.call_log import abandon_calls
from memory.models import (
    Belief,
    CallOutcome,
    ClusterJob,
    Cycle,
    Episode,
    Heartbeat,
    ModelCall,
    StructuralJob,
    Trigger,
    Workspace,
    WorkspacePause,
)
from memory.models.cycles import OPEN_CYCLE_STATES
from memory.search.prepared import run_prepared
from memory.signals import cycle_ready

log = structlog.get_logger(__name__)
SWEEP_HEARTBEAT = "sweep"
_POLL_SECONDS = 0.1


def open_cycle_for_new_episodes(*, workspace_id: int, now: datetime) -> Cycle | None:
    """Open a cycle where enough new episodes wait, none is open, nobody holds the workspace and it does not rest."""
    if not _may_open_cycle(workspace_id):
        return None
    enough = settings.POLICY.consolidation.trigger_episodes
    waiting = Episode.objects.for_workspace(workspace_id).pending().filter(state=ConsolidationState.NEW)
    if len(waiting.values_list("pk")[:enough]) < enough:
        return None
    if find_pause(workspace=Workspace.objects.get(pk=workspace_id)):
        return None
    return try_open_cycle(workspace_id=workspace_id, now=now, trigger=Trigger.EPISODES)


def _may_open_cycle(workspace_id: int) -> bool:
    """Tell in one look whether new episodes may start a cycle.

    Every write asks this, and a query set takes longer to write than the statement to run.
    """
    if not settings.ENGRAM_BELIEFS:
        return False
    row = run_prepared(statement=_MAY_OPEN_CYCLE, parameters={"workspace": workspace_id}, keeps_plan=True).fetchone()
    return row is not None


_OPEN_STATES_SQL = ", ".join(f"'{state}'" for state in OPEN_CYCLE_STATES)

_MAY_OPEN_CYCLE = f"""
SELECT FROM memory_workspace w WHERE id = %(workspace)s::bigint AND beliefs_enabled
    AND (next_cycle_held_until > STATEMENT_TIMESTAMP()) IS NOT TRUE
    AND NOT EXISTS (SELECT FROM memory_cycle WHERE workspace_id = w.id AND state IN ({_OPEN_STATES_SQL}))
"""  # noqa: S608  (the states are our own)


def open_due_cycles(*, now: datetime) -> list[str]:
    """Open a cycle wherever something waits, and daily where time alone may archive.

    Episodes wait, changes of structure, beliefs whose evidence no gates have seen (C3) or that hold until now.

    However few episodes wait: this is the valve of those that never become twenty. Workspaces that rest are left to it.
    """
    pending = Episode.objects.pending().filter(workspace=OuterRef("pk"))
    aging = Belief.objects.filter(status__in=LIVE, is_pinned=False)
    due = aging.filter(workspace=OuterRef("pk"), archive_due_at__lte=now)
    since = now - timedelta(hours=settings.POLICY.consolidation.archive_check_hours)
    recent = Cycle.objects.filter(workspace=OuterRef("pk"), now__gte=since)
    free = Workspace.objects.open_to_cycles()
    unfinished = StructuralJob.objects.carried_over().filter(workspace=OuterRef("pk"))
    unseen = Belief.objects.filter(workspace=OuterRef("pk"), is_due=True)
    unseen = unseen.exclude(lineage_depth__gt=0, updated_at=F("created_at"))  # newly made of others: for any next cycle
    ended = Belief.objects.filter(workspace=OuterRef("pk"), status__in=LIVE, is_pinned=False, valid_until__lte=now)
    wanted = free.filter(
        Q(Exists(pending))
        | Q(Exists(unfinished))
        | Q(Exists(unseen))
        | Q(Exists(ended))
        | Q(Exists(due)) & ~Q(Exists(recent))
    )
    workspaces = list(wanted)
    resting = find_paused_workspaces(workspaces=workspaces)
    return _open_each([workspace.pk for workspace in workspaces if workspace.pk not in resting], now=now)


def open_overdue_cycles(*, now: datetime) -> list[str]:
    """Open a cycle where episodes wait and the schedule has let its time pass, as while nothing ran.

    For a service that starts: the schedule counts from then, and the first cycle would be hours away.
    """
    hours = timedelta(hours=settings.POLICY.consolidation.every_hours)
    pending = Episode.objects.pending().filter(workspace=OuterRef("pk"))
    lately = Cycle.objects.filter(workspace=OuterRef("pk"), opened_at__gt=Now() - hours)
    free = Workspace.objects.open_to_cycles()
    overdue = list(free.filter(Exists(pending), ~Exists(lately)))
    resting = find_paused_workspaces(workspaces=overdue)
    return _open_each([workspace.pk for workspace in overdue if workspace.pk not in resting], now=now)


def open_cycles_after_pause(*, now: datetime) -> list[str]:
    """Open a cycle where a workspace has rested, or need not any longer, and something waits (B9).

    Whatever comes of the cycle ends the pause or moves it on, so that none is tried twice.
    """
    pauses = WorkspacePause.objects.select_related("workspace").filter(workspace__in=Workspace.objects.open_to_cycles())
    pauses = pauses.annotate(is_over=ExpressionWrapper(Q(until__lte=Now()), output_field=BooleanField()))
    pending = Episode.objects.pending().filter(workspace=OuterRef("workspace"))
    unfinished = StructuralJob.objects.carried_over().filter(workspace=OuterRef("workspace"))
    pauses = pauses.filter(Exists(pending) | Exists(unfinished))
    rested = [p.workspace_id for p in pauses if p.is_over or is_pause_outdated(pause=p, workspace=p.workspace)]
    return _open_each(rested, now=now)


def open_missed_cycles(*, now: datetime) -> list[str]:
    """Open a cycle where enough new episodes wait, some of them stored since the last one ended.

    Storing them should have opened it, but somebody held the workspace, or the process died. What a cycle itself left
    behind or gave back is no reason: a cancelled one would begin anew at once.
    """
    last = Cycle.objects.filter(workspace=OuterRef("pk")).order_by("-opened_at").values("finished_at")[:1]
    new = Episode.objects.pending().filter(workspace=OuterRef("pk"), state=ConsolidationState.NEW).values("created_at")
    enough = settings.POLICY.consolidation.trigger_episodes
    # Whether there is a twentieth, not how many there are: a backlog may be of millions, and this is asked every 10 s.
    workspaces = Workspace.objects.annotate(
        ended_at=Coalesce(Subquery(last), Value(_BEFORE_ALL), output_field=DateTimeField()),
        newest_at=Subquery(new.order_by("-created_at")[:1]),
        twentieth_at=Subquery(new.order_by("created_at")[enough - 1 : enough]),
    )
    missed = workspaces.filter(newest_at__gt=F("ended_at"), twentieth_at__isnull=False)
    opened = (
        open_cycle_for_new_episodes(workspace_id=key, now=now) for key in list(missed.values_list("pk", flat=True))
    )
    return [cycle.pk for cycle in opened if cycle]


_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


def _open_each(workspaces: Sequence[int], *, now: datetime) -> list[str]:
    opened = []
    for workspace_id in workspaces:
        try:
            cycle = try_open_cycle(workspace_id=workspace_id, now=now, trigger=Trigger.SCHEDULE)
        except WORKSPACE_ERRORS:  # those that come after it have theirs opened all the same
            log.exception("cycle_not_opened", workspace=workspace_id)
            continue
        opened += [cycle.pk] if cycle else []
    return opened


def open_next_cycle(*, cycle_id: str, now: datetime) -> list[str]:
    """Open the cycle that is to follow one that has just been closed, if any is."""
    return _open_following(_cycles_with_backlog().filter(pk=cycle_id), now=now)


def open_backlog_cycles(*, now: datetime) -> list[str]:
    """Open whatever cycle is to follow another and was not opened when that one ended."""
    return _open_following(_cycles_with_backlog(), now=now)


def _cycles_with_backlog() -> QuerySet[Cycle]:
    """Select the cycles that the next is to follow, in workspaces that may have one."""
    free = Workspace.objects.open_to_cycles()
    return Cycle.objects.filter(has_backlog=True, workspace__in=free).select_related("workspace")


def _open_following(cycles: QuerySet[Cycle], *, now: datetime) -> list[str]:
    workspaces = [cycle.workspace for cycle in cycles]
    resting = find_paused_workspaces(workspaces=workspaces) if workspaces else set()
    opened = []
    for workspace in workspaces:
        if workspace.pk in resting:
            continue
        cycle = try_open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.BACKLOG)
        opened += [cycle.pk] if cycle else []
    if opened:
        log.info("backlog_cycles_opened", cycles=opened)
    return opened


def read_backlog(*, workspace_id: int, now: datetime) -> Backlog:
    """Measure the backlog by the rows of episodes and of the cycles that ended lately."""
    waiting = count_waiting_episodes(workspace_id=workspace_id)
    per_minute = _pace(workspace_id)
    at_it = Cycle.objects.for_workspace(workspace_id)
    is_drained = waiting and per_minute and (at_it.open() | at_it.filter(has_backlog=True)).exists()
    done_at = now + timedelta(minutes=waiting / per_minute) if is_drained and per_minute else None
    return Backlog(waiting=waiting, per_minute=per_minute, done_at=done_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits for cycles, how fast the last ones took it away, and when that comes to an end at this pace."""

    waiting: int
    per_minute: float | None  # of the cycles that ended lately, while they ran; None where none got anything done
    done_at: datetime | None  # None where nothing waits, no cycle is at it, or no pace is known


def describe_backlog(backlog: Backlog) -> str:
    """Say in one line how the backlog stands."""
    said = [f"{backlog.waiting:,} wait" if backlog.waiting else "nothing waits"]
    if backlog.per_minute:
        said.append(f"{backlog.per_minute:,.1f} a minute lately")
    if backlog.done_at:
        said.append(f"done about {backlog.done_at:%Y-%m-%d %H:%M} UTC")
    return ", ".join(said)


def _pace(workspace_id: int) -> float | None:
    """Return how many episodes a minute of cycles took away lately."""
    since = Now() - timedelta(minutes=settings.POLICY.consolidation.pace_minutes)
    lately = Cycle.objects.for_workspace(workspace_id).filter(finished_at__gt=since, counts__has_key="done")
    sums = lately.aggregate(
        done=Sum(Cast(KT("counts__done"), IntegerField())), spent=Sum(F("finished_at") - F("opened_at"))
    )
    if not sums["done"] or not sums["spent"]:
        return None
    return round(float(sums["done"] / (sums["spent"] / timedelta(minutes=1))), 1)


def sweep() -> int:
    """Wake every abandoned cycle and every job whose wait is over; return how many cycles were woken."""
    woken = {cycle.pk for cycle in Cycle.objects.abandoned() if _try_take_over(cycle)}
    woken |= _wake_waiting()
    _close_lost_calls()
    if woken:
        log.info("cycles_woken", cycles=sorted(woken))
    Heartbeat.objects.update_or_create(name=SWEEP_HEARTBEAT, defaults={"seen_at": Now()})
    return len(woken)


def _try_take_over(cycle: Cycle) -> bool:
    """Take a cycle over, or log why not: those of other workspaces are taken over all the same (E6)."""
    try:
        return _take_over(cycle)
    except WORKSPACE_ERRORS:
        log.exception("cycle_not_taken_over", cycle=cycle.pk, workspace=cycle.workspace_id)
        return False


def _take_over(cycle: Cycle) -> bool:
    """Begin another attempt; a cycle that has had them all is closed as failed, its episodes given back.

    Attempts that no worker took up do not count: a queue may be long, and workers away, for as long as it takes. Where
    the installation keeps no beliefs (B22) it is cancelled.
    """
    if not settings.ENGRAM_BELIEFS:
        close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.CANCELLED, reason="beliefs are off")
        return False
    if cycle.claims < budget_policy().cycle_attempts:
        return begin_attempt(cycle_id=cycle.pk) is not None
    close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.FAILED, reason="too many attempts")
    return False


def _close_lost_calls() -> None:
    """Say of calls that nobody can be waiting for any more that they are lost; what they cost stays counted."""
    seconds = step_seconds(budget=budget_policy())
    lost = ModelCall.objects.filter(outcome=CallOutcome.OPEN, started_at__lt=Now() - timedelta(seconds=seconds))
    for workspace_id in set(lost.values_list("workspace_id", flat=True)):
        abandon_calls(workspace_id=workspace_id, older_than_seconds=seconds)


@transaction.atomic
def _wake_waiting() -> set[str]:
    """Clear the waits that are over, each once however many sweep, and send their cycles again (no new attempt)."""
    cycles = _clear_ended_waits(ClusterJob.objects.to_judge()) | _clear_ended_waits(StructuralJob.objects.open())
    for cycle_id, attempt in cycles:
        cycle_ready.send(sender=Cycle, cycle_id=cycle_id, attempt=attempt)
    return {cycle_id for cycle_id, _ in cycles}


def _clear_ended_waits(jobs: QuerySet[Any]) -> set[tuple[str, int]]:
    """Clear the waits that are over; return the cycles that they kept, with their attempts."""
    waiting = jobs.filter(not_before__lte=Now(), cycle__state=CycleState.RUNNING)
    over = list(
        waiting.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "cycle_id", "cycle__attempt")
    )
    jobs.model._default_manager.filter(pk__in=[job for job, _, _ in over]).update(not_before=None)
    return {(cycle_id, attempt) for _, cycle_id, attempt in over}


def wait_for_cycle(cycle_id: str, *, on_look: Callable[[Cycle], None] | None = None) -> Cycle:
    """Return the cycle once it has ended; `on_look` sees it at every look, for progress."""
    swept_at = time.monotonic()
    while True:
        cycle = Cycle.objects.get(pk=cycle_id)
        if on_look:
            on_look(cycle)
        if cycle.finished_at:
            return cycle
        if time.monotonic() - swept_at > budget_policy().sweep_seconds:
            sweep()
            swept_at = time.monotonic()
        time.sleep(_POLL_SECONDS)
