"""Which jobs of a cycle want to be sent to a worker."""

from memory.domain.lifecycle import JobState
from memory.models import ClusterJob


def jobs_to_judge(*, cycle_id: str) -> list[tuple[int, str]]:
    """List the jobs with calls to make that nobody holds and that need not wait: (id, kind), in their order."""
    jobs = ClusterJob.objects.filter(cycle=cycle_id).to_judge().free().order_by("number")
    return list(jobs.values_list("pk", "kind"))


def cycle_to_apply(*, job_id: int) -> str | None:
    """Name the cycle of a job that is judged and that no job with calls to make precedes, else None."""
    job = ClusterJob.objects.filter(pk=job_id, state=JobState.CLASSIFIED).only("cycle_id", "number").first()
    if job is None or ClusterJob.objects.filter(cycle=job.cycle_id, number__lt=job.number).to_judge().exists():
        return None
    cycle_id: str = job.cycle_id
    return cycle_id
