"""Run consolidation by hand: open a cycle, or cycle after cycle until nothing is left to do."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.consolidation.cycle import BeliefsAreOff, open_cycle
from memory.consolidation.idle import is_idle_after
from memory.consolidation.pausing import describe_pause, find_pause, first_failure
from memory.consolidation.rehearsal import rehearse_cycle
from memory.consolidation.waiting import wait_for_cycle
from memory.domain.lifecycle import ConsolidationState, CycleState, JobState
from memory.management.failures import named_workspace
from memory.management.rehearsals import write_rehearsal
from memory.management.waiting import WorkerHint, ending_on_interrupt
from memory.management.wording import counted
from memory.models import ClusterJob, Cycle, Episode, Trigger, Workspace

# What a cycle counts, in the order in which it happens: the noun, and what became of it.
_COUNTED = {
    "episodes": ("episode", ""),
    "clusters": ("cluster", ""),
    "created": ("belief", "created"),
    "reinforced": ("belief", "reinforced"),
    "contradicted": ("belief", "contradicted"),
    "partial": ("belief", "supported in part"),
    "revised": ("belief", "revised"),
    "split": ("belief", "split"),
    "merged": ("belief", "merged"),
    "archived": ("belief", "archived"),
    "deferred": ("cluster", "put off"),
    "failed": ("cluster", "failed"),
}


class Command(BaseCommand):
    help = "Open a consolidation cycle for a workspace; with --wait, wait for workers to end it."

    _last: Cycle | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--wait", action="store_true", help="wait until the cycle has ended")
        parser.add_argument("--until-idle", action="store_true", help="run cycles until nothing is left to do")
        parser.add_argument("--dry-run", action="store_true", help="say what a cycle would do and cost; write nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = named_workspace(options["workspace"])
        try:
            self._consolidate(workspace, options)
        except BeliefsAreOff as error:
            raise CommandError(str(error), returncode=1) from None

    def _consolidate(self, workspace: Workspace, options: dict[str, Any]) -> None:
        if options["dry_run"]:
            write_rehearsal(
                rehearse_cycle(workspace=workspace, now=timezone.now()), out=self.stdout, as_json=options["json"]
            )
            return
        if pause := find_pause(workspace=workspace):
            why = f"until {pause.until:%Y-%m-%d %H:%M} UTC: {describe_pause(pause)}"
            self.stderr.write(f"{workspace.name} rests {why}. A cycle is started all the same, since you ask for it.")
        if not (options["wait"] or options["until_idle"]):
            cycle, _ = open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
            self._report([cycle], as_json=options["json"])
            return
        with ending_on_interrupt(out=self.stderr, message=lambda: _interrupted(self._last)):
            cycles = self._run(workspace, until_idle=options["until_idle"], show=not options["json"])
        self._report(cycles, as_json=options["json"])
        pending = Episode.objects.for_workspace(workspace).pending().count()
        if pending and not options["json"]:
            waiting = f"{counted(pending, 'episode')} still {'waits' if pending == 1 else 'wait'}"
            follows = _what_follows(cycles[-1], until_idle=options["until_idle"])
            self.stdout.write(f"{waiting} for a cycle{follows}.")
        if _has_left_work(cycles[-1], until_idle=options["until_idle"]):
            left = "Some episodes could not be consolidated; they stay pending"
            raise CommandError(f"{left}{_why(cycles[-1])}.", returncode=1)

    def _run(self, workspace: Workspace, *, until_idle: bool, show: bool) -> list[Cycle]:
        cycles: list[Cycle] = []
        while not cycles or (until_idle and not is_idle_after(cycle=cycles[-1])):
            self._last, _ = open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
            cycles.append(self._wait(self._last, show=show))
        return cycles

    def _wait(self, cycle: Cycle, *, show: bool) -> Cycle:
        with tqdm(desc=cycle.pk, unit="job", disable=not (show and sys.stderr.isatty()), leave=False) as bar:
            hint = WorkerHint(out=self.stderr)

            def look(seen: Cycle) -> None:
                self._last = seen
                hint(seen)
                jobs = ClusterJob.objects.filter(cycle=seen)
                bar.total = jobs.count()
                bar.n = jobs.exclude(state__in=(JobState.QUEUED, JobState.SYNTHESIZED)).count()
                bar.refresh()

            return wait_for_cycle(cycle.pk, on_look=look)

    def _report(self, cycles: list[Cycle], *, as_json: bool) -> None:
        if as_json:
            rows = [{"id": c.pk, "state": c.state, "reason": c.state_reason, "counts": c.counts} for c in cycles]
            self.stdout.write(json.dumps({"cycles": rows}))
            return
        for cycle in cycles:
            counts = _in_words(cycle.counts)
            self.stdout.write(f"{cycle.pk} {cycle.state}: {counts or 'nothing to do'}")


def _in_words(counts: Mapping[str, int]) -> str:
    """Say what a cycle did to how many, leaving out what it did to none."""
    parts = [
        f"{counted(counts[name], noun)} {became}".strip()
        for name, (noun, became) in _COUNTED.items()
        if counts.get(name)
    ]
    return ", ".join(parts)


def _what_follows(last: Cycle, *, until_idle: bool) -> str:
    """Say what becomes of the episodes that a cycle left."""
    if last.has_backlog or Cycle.objects.for_workspace(last.workspace_id).open().exists():
        return ", which follows by itself"
    return "; another one would get no further" if until_idle else "; --until-idle runs as many as it takes"


def _why(last: Cycle) -> str:
    """Say what stood in a cycle's way, as the status does, as far as anybody knows."""
    failed = Episode.objects.for_workspace(last.workspace_id).pending().exclude(state_reason="")
    why = first_failure(cycle=last) or failed.order_by("number").values_list("state_reason", flat=True).first()
    return f": {why.rstrip('.')}" if why else ""


def _interrupted(last: Cycle | None) -> str:
    """Say what becomes of the cycle that nobody waits for any more."""
    if last is None:
        return "Stopped; no cycle was opened."
    becomes = "waits for a worker" if last.state == CycleState.QUEUED else "goes on in the worker"
    return f"Stopped waiting; cycle {last.pk} {becomes}."


def _has_left_work(last: Cycle, *, until_idle: bool) -> bool:
    """Tell whether work was given up: failed with a cycle or an episode, or stopped by a budget before all was done."""
    failed = Episode.objects.for_workspace(last.workspace_id).pending().filter(state=ConsolidationState.FAILED)
    is_cut_short = until_idle and last.state in (CycleState.OVER_BUDGET, CycleState.CANCELLED)
    return last.state == CycleState.FAILED or is_cut_short or failed.exists()
