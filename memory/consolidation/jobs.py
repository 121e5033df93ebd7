"""Which jobs of a cycle want to be sent to a worker."""

from memory.models import ClusterJob


def jobs_to_judge(*, cycle_id: str) -> list[tuple[int, str]]:
    """List the jobs with calls to make that nobody holds and that need not wait: (id, kind), in their order."""
    jobs = ClusterJob.objects.filter(cycle=cycle_id).to_judge().free().order_by("number")
    return list(jobs.values_list("pk", "kind"))
