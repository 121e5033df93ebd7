"""Run a cycle in this process, from its first step to its last.

Workers send the same steps as tasks; `workers/tasks.py` says in which order and what runs side by side.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.jobs import list_jobs_to_judge
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.restructure import list_jobs_to_restructure, restructure_belief
from memory.models import Cycle, JobKind


def run_cycle(*, cycle: Cycle, before_gate: Callable[[], object] = lambda: None) -> bool:
    """Take an open cycle through its steps; return whether it has ended, so that `open_next_cycle` may follow.

    A step returns at once where the rows show it done. A cycle that has to wait for a model stays open, and the next
    run takes up what is unfinished. `before_gate` runs once all jobs are judged, before any is applied.
    """
    attempt = cycle.attempt
    extract_episodes(cycle_id=cycle.pk, attempt=attempt)
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
