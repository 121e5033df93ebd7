"""The steps of a cycle as the canvas orders them, one by one, so that tests can stop between any two."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.read import plan_readings, read_messages
from memory.consolidation.restructure import list_jobs_to_restructure, restructure_belief
from memory.models import ClusterJob, Cycle, JobKind

NAMES = ("extract", "read", "cluster", "synthesize", "classify", "gate", "finish")  # of every cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One message's worth of work, to be done for any attempt."""

    name: str
    run: Callable[[int], object]


def steps_of(cycle: Cycle) -> Iterator[Step]:
    """Yield the cycle's steps in order; the jobs are read when it is their turn."""
    yield Step(name="extract", run=lambda attempt: extract_episodes(cycle_id=cycle.pk, attempt=attempt))
    yield Step(name="read", run=lambda attempt: plan_readings(cycle_id=cycle.pk, attempt=attempt))
    for job_id in ClusterJob.objects.filter(cycle=cycle).readings().values_list("pk", flat=True):
        yield _of_job("read_messages", read_messages, job_id)
    yield Step(name="cluster", run=lambda attempt: cluster_episodes(cycle_id=cycle.pk, attempt=attempt))
    judged = ClusterJob.objects.filter(cycle=cycle, kind__in=(JobKind.CLUSTER, JobKind.SINGLES))
    for job_id, kind in judged.order_by("number").values_list("pk", "kind"):
        if kind == JobKind.CLUSTER:
            yield _of_job("synthesize", synthesize_cluster, job_id)
        yield _of_job("classify", classify_cluster, job_id)
    yield Step(name="gate", run=lambda attempt: apply_jobs(cycle_id=cycle.pk, attempt=attempt))
    for job_id in list_jobs_to_restructure(cycle_id=cycle.pk):
        yield _of_job("restructure", restructure_belief, job_id)
    yield Step(name="finish", run=lambda attempt: finish_cycle(cycle_id=cycle.pk, attempt=attempt))


def _of_job(name: str, service: Callable[..., None], job_id: int) -> Step:
    return Step(name=name, run=lambda attempt: service(job_id=job_id, attempt=attempt))
