"""Live through a history: store each episode at the time at which it happened, with cycles in between."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import open_cycle
from memory.consolidation.waiting import wait_for_cycle
from memory.ingest.arrival import Arrival
from memory.ingest.files import FileLine, ImportReport, store_file_lines
from memory.models import Cycle, Episode, Trigger, Workspace

# Renewed again and again; the hold of a replay that was killed runs out by itself.
_HOLD_SECONDS = 900.0
_RENEW_SECONDS = 60.0


def plan_replay(*, times: Sequence[datetime], every: int, gap: timedelta) -> list[range]:
    """Cut a history, given by its times in order, into batches with a cycle after each.

    A batch ends after `every` episodes, before a longer pause than `gap`, and with the history.
    """
    batches: list[range] = []
    start = 0
    for index in range(1, len(times) + 1):
        is_end = index == len(times)
        if is_end or index - start == every or times[index] - times[index - 1] > gap:
            batches.append(range(start, index))
            start = index
    return batches


def replay_lines(
    *,
    lines: Sequence[FileLine],
    arrival: Arrival,
    report: ImportReport,
    on_batch: Callable[[int], object],
    on_look: Callable[[Cycle], None] | None = None,
) -> None:
    """Store lines in the order of their times and run a cycle after each batch, waiting for it.

    `on_batch` is told how many lines are done, and `on_look` sees a cycle at every look while it is waited for. A batch
    that holds nothing new runs no cycle, so that a history that was broken off goes on where it stopped.
    """
    at = replace(arrival, is_replay=True)
    history = sorted(lines, key=lambda line: (_time_of(line, arrival), line.number))
    batches = plan_replay(
        times=[_time_of(line, arrival) for line in history],
        every=settings.POLICY.consolidation.trigger_episodes,
        gap=timedelta(days=settings.POLICY.ingest.replay_gap_days),
    )
    with _other_cycles_held(arrival.workspace):
        for batch in batches:
            _hold(arrival.workspace)
            part = history[batch.start : batch.stop]
            new = store_file_lines(lines=part, arrival=at, report=report)
            if arrival.workspace.keeps_beliefs and (new or (batch is batches[-1] and _has_pending(arrival.workspace))):
                now = _time_of(part[-1], arrival)
                report.cycles.append(_run_cycle(workspace=arrival.workspace, now=now, on_look=on_look))
            on_batch(len(part))


def _time_of(line: FileLine, arrival: Arrival) -> datetime:
    """Return when a line's episode happened; one that does not say so, or is bad, comes at the end."""
    return line.occurred_at or arrival.now


def _has_pending(workspace: Workspace) -> bool:
    pending: bool = Episode.objects.for_workspace(workspace).pending().exists()
    return pending


def _run_cycle(*, workspace: Workspace, now: datetime, on_look: Callable[[Cycle], None] | None) -> str:
    """Run a cycle to its end at a time of the history, after one that is still open."""
    while True:
        cycle, is_new = open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.REPLAY)
        holder = _Holder(workspace=workspace, on_look=on_look)
        wait_for_cycle(cycle.id, on_look=holder.look)
        if is_new:
            return cycle.id


@contextmanager
def _other_cycles_held(workspace: Workspace) -> Iterator[None]:
    """Keep every other wake-up from starting a cycle."""
    try:
        yield
    finally:
        Workspace.objects.filter(pk=workspace.pk).update(next_cycle_held_until=None)


class _Holder:
    """Renews the hold while a cycle takes its time."""

    def __init__(self, *, workspace: Workspace, on_look: Callable[[Cycle], None] | None) -> None:
        self.workspace, self.on_look, self.held_at = workspace, on_look, time.monotonic()

    def look(self, cycle: Cycle) -> None:
        """Hold anew once a minute, and pass the look on."""
        if self.on_look:
            self.on_look(cycle)
        if time.monotonic() - self.held_at > _RENEW_SECONDS:
            _hold(self.workspace)
            self.held_at = time.monotonic()


def _hold(workspace: Workspace) -> None:
    """Hold for a while, by the database's clock."""
    Workspace.objects.filter(pk=workspace.pk).update(next_cycle_held_until=database_now(plus=_HOLD_SECONDS))
