"""Run consolidation by hand: open a cycle, or cycle after cycle until nothing is left to do."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.consolidation.cycle import describe_pause, find_first_failure, find_pause, open_cycle
from memory.consolidation.dry_run import DryRun, dry_run_cycle
from memory.consolidation.finish import has_more_since, is_idle_after
from memory.consolidation.schedule import wait_for_cycle
from memory.domain.lifecycle import ConsolidationState, CycleState, JobState
from memory.management.command_line import (
    NoWorkerHint,
    Report,
    WorkspaceCommand,
    exit_on_interrupt,
    pluralize,
    progress_bar,
)
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


class Command(WorkspaceCommand):
    help = "Open a consolidation cycle for a workspace; with --wait, wait for workers to end it."
    json_help = "print one JSON document instead of lines"

    _last: Cycle | None = None

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", action="store_true", help="wait until the cycle has ended")
        parser.add_argument("--until-idle", action="store_true", help="run cycles until nothing is left to do")
        parser.add_argument("--dry-run", action="store_true", help="say what a cycle would do and cost; write nothing")

    def run(
        self,
        *,
        workspace: Workspace,
        wait: bool,
        until_idle: bool,
        dry_run: bool,
        now: datetime,
        as_json: bool,
        **options: Any,
    ) -> Report:
        if dry_run:
            rehearsal = dry_run_cycle(workspace=workspace, now=now)
            return Report(values=_dry_run_as_json(rehearsal), lines=_dry_run_lines(rehearsal))
        if pause := find_pause(workspace=workspace):
            why = f"until {pause.until:%Y-%m-%d %H:%M} UTC: {describe_pause(pause)}"
            self.stderr.write(f"{workspace.name} rests {why}. A cycle is started all the same, since you ask for it.")
        if not (wait or until_idle):
            cycle, _ = open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.PERSON)
            return Report(values=_as_json([cycle]), lines=_in_lines([cycle]))
        with exit_on_interrupt(out=self.stderr, message=lambda: _interrupted(self._last)):
            cycles = self._run(workspace, until_idle=until_idle, as_json=as_json)
        return Report(
            values=_as_json(cycles),
            lines=[*_in_lines(cycles), *_pending_in_words(cycles[-1], until_idle=until_idle)],
            failure=_left_work(cycles[-1], until_idle=until_idle),
        )

    def _run(self, workspace: Workspace, *, until_idle: bool, as_json: bool) -> list[Cycle]:
        cycles: list[Cycle] = []
        while not cycles or (until_idle and not is_idle_after(cycle=cycles[-1])):
            self._last, _ = open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
            cycles.append(self._wait(self._last, as_json=as_json))
        return cycles

    def _wait(self, cycle: Cycle, *, as_json: bool) -> Cycle:
        with progress_bar(of=cycle.pk, unit="job", as_json=as_json) as bar:
            hint = NoWorkerHint(out=self.stderr)

            def look(seen: Cycle) -> None:
                self._last = seen
                hint(seen)
                jobs = ClusterJob.objects.filter(cycle=seen)
                bar.total = jobs.count()
                bar.n = jobs.exclude(state__in=(JobState.QUEUED, JobState.SYNTHESIZED)).count()
                bar.refresh()

            return wait_for_cycle(cycle.pk, on_look=look)


def _as_json(cycles: Sequence[Cycle]) -> dict[str, Any]:
    return {"cycles": [{"id": c.pk, "state": c.state, "reason": c.state_reason, "counts": c.counts} for c in cycles]}


def _in_lines(cycles: Sequence[Cycle]) -> list[str]:
    return [f"{cycle.pk} {cycle.state}: {_in_words(cycle.counts) or 'nothing to do'}" for cycle in cycles]


def _in_words(counts: Mapping[str, int]) -> str:
    """Say what a cycle did to how many, leaving out what it did to none."""
    parts = [
        f"{pluralize(counts[name], noun)} {became}".strip()
        for name, (noun, became) in _COUNTED.items()
        if counts.get(name)
    ]
    return ", ".join(parts)


def _pending_in_words(last: Cycle, *, until_idle: bool) -> Iterator[str]:
    """Say how many episodes wait after a cycle, where any do."""
    if pending := Episode.objects.for_workspace(last.workspace_id).pending().count():
        waiting = f"{pluralize(pending, 'episode')} still {'waits' if pending == 1 else 'wait'}"
        yield f"{waiting} for a cycle{_what_follows(last, until_idle=until_idle)}."


def _what_follows(last: Cycle, *, until_idle: bool) -> str:
    """Say what becomes of the episodes that a cycle left."""
    if last.has_backlog or Cycle.objects.for_workspace(last.workspace_id).open().exists():
        return ", which follows by itself"
    if has_more_since(cycle=last):
        return ", which came meanwhile"
    return "; another one would get no further" if until_idle else "; --until-idle runs as many as it takes"


def _why(last: Cycle) -> str:
    """Say what stood in a cycle's way, as the status does, as far as anybody knows."""
    failed = Episode.objects.for_workspace(last.workspace_id).pending().exclude(state_reason="")
    why = find_first_failure(cycle=last) or failed.order_by("number").values_list("state_reason", flat=True).first()
    return f": {why.rstrip('.')}" if why else ""


def _interrupted(last: Cycle | None) -> str:
    """Say what becomes of the cycle that nobody waits for any more."""
    if last is None:
        return "Stopped; no cycle was opened."
    becomes = "waits for a worker" if last.state == CycleState.QUEUED else "goes on in the worker"
    return f"Stopped waiting; cycle {last.pk} {becomes}."


def _left_work(last: Cycle, *, until_idle: bool) -> str:
    """Say why work was given up: failed with a cycle or an episode, or stopped by a budget before all was done."""
    failed = Episode.objects.for_workspace(last.workspace_id).pending().filter(state=ConsolidationState.FAILED)
    is_cut_short = until_idle and last.state in (CycleState.OVER_BUDGET, CycleState.CANCELLED)
    if last.state == CycleState.FAILED or is_cut_short or failed.exists():
        return f"Some episodes could not be consolidated; they stay pending{_why(last)}."
    return ""


def _dry_run_as_json(rehearsal: DryRun) -> dict[str, Any]:
    shown = {"dry_run": True, **asdict(rehearsal)}
    shown["estimate"]["cost_usd"] = float(rehearsal.estimate.cost_usd)
    return shown


def _dry_run_lines(rehearsal: DryRun) -> list[str]:
    estimate = rehearsal.estimate
    calls = ", ".join(f"{number} to {purpose}" for purpose, number in estimate.calls.items() if number) or "none"
    lines = [f"A cycle would take up {pluralize(rehearsal.episodes, 'episode')}."]
    for job in rehearsal.jobs:
        about = f"near {_beliefs_in_words(job.beliefs)}" if job.beliefs else "alike"
        lines.append(f"  {pluralize(len(job.episodes), 'episode')} {about}: about {pluralize(job.calls, 'call')}")
    if rehearsal.unembedded:
        lines.append(f"{pluralize(rehearsal.unembedded, 'episode')} had no vector yet.")
    if rehearsal.put_back:
        lines.append(f"{pluralize(rehearsal.put_back, 'episode')} would wait for a later cycle.")
    if rehearsal.archive_due:
        lines.append(f"{pluralize(rehearsal.archive_due, 'belief')} may be archived for age.")
    lines.append(f"Calls: about {calls}; about {estimate.tokens:,} tokens, ${estimate.cost_usd:.4f}.")
    return lines


def _beliefs_in_words(beliefs: Sequence[str]) -> str:
    return f"belief {beliefs[0]}" if len(beliefs) == 1 else f"beliefs {', '.join(beliefs)}"
