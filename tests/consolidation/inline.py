"""Open cycles and run them in this process, to their end."""

import time
from collections.abc import Callable
from datetime import datetime

from memory.consolidation.cycle import open_cycle
from memory.consolidation.run import run_cycle as run_steps
from memory.models import ClusterJob, Cycle, Trigger, Workspace

_PATIENCE_SECONDS = 120.0


def run_cycle(workspace: Workspace, now: datetime, *, before_gate: Callable[[], object] = lambda: None) -> Cycle:
    """Open a cycle and take it to its end; something else may happen before its gate."""
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.PERSON)
    run_steps(cycle=cycle, before_gate=before_gate)
    cycle.refresh_from_db()
    return cycle


def run_to_end(cycle_id: str, **_: object) -> Cycle:
    """Stand in for waiting: run the steps, and go on with what left off, as the sweeper would, for a while."""
    ends_by = time.monotonic() + _PATIENCE_SECONDS
    while True:
        cycle = Cycle.objects.get(pk=cycle_id)
        if cycle.finished_at:
            return cycle
        jobs = list(
            ClusterJob.objects.filter(cycle=cycle).unfinished().values("pk", "state", "state_reason", "not_before")
        )
        assert time.monotonic() < ends_by, f"{cycle.pk} does not end, attempt {cycle.attempt}: {jobs}"
        run_steps(cycle=cycle)
