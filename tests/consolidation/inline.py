"""Open cycles and run them in this process, to their end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.jobs import list_jobs_to_judge
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.read import plan_readings, read_messages
from memory.consolidation.restructure import list_jobs_to_restructure, restructure_belief
from memory.models import ClusterJob, Cycle, JobKind, Trigger, Workspace

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
        jobs = list(ClusterJob.objects.filter(cycle=cycle).open().values("pk", "state", "state_reason", "not_before"))
        assert time.monotonic() < ends_by, f"{cycle.pk} does not end, attempt {cycle.attempt}: {jobs}"
        run_steps(cycle=cycle)


def run_steps(*, cycle: Cycle, before_gate: Callable[[], object] = lambda: None) -> bool:
    """Take an open cycle through its steps; return whether it has ended, so that `open_next_cycle` may follow.

    A step returns at once where the rows show it done. A cycle that has to wait for a model stays open, and the next
    run takes up what is unfinished. `before_gate` runs once all jobs are judged, before any is applied.
    """
    attempt = cycle.attempt
    extract_episodes(cycle_id=cycle.pk, attempt=attempt)
    for jobs in plan_readings(cycle_id=cycle.pk, attempt=attempt):
        for job_id in jobs:
            read_messages(job_id=job_id, attempt=attempt)
    cluster_episodes(cycle_id=cycle.pk, attempt=attempt)
    for job in list_jobs_to_judge(cycle_id=cycle.pk):
        if job.kind == JobKind.CLUSTER:
            synthesize_cluster(job_id=job.id, attempt=attempt)
        classify_cluster(job_id=job.id, attempt=attempt)
    before_gate()
    if not apply_jobs(cycle_id=cycle.pk, attempt=attempt):
        return False
    for job_id in list_jobs_to_restructure(cycle_id=cycle.pk):
        restructure_belief(job_id=job_id, attempt=attempt)
    return finish_cycle(cycle_id=cycle.pk, attempt=attempt)
