"""Which jobs of a cycle want to be sent to a worker."""

from dataclasses import dataclass

from django.db.models import Count, OuterRef, Subquery

from memory.domain.lifecycle import JobState
from memory.models import ClusterJob, Cycle, StructuralJob


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToJudge:
    """A job that wants a worker: the `number`th of so many in its cycle."""

    id: int
    kind: str
    number: int
    of: int


def jobs_to_judge(*, cycle_id: str) -> list[JobToJudge]:
    """List the jobs with calls to make that nobody holds and that need not wait, in their order."""
    everyone = ClusterJob.objects.filter(cycle=OuterRef("cycle")).order_by().values("cycle").annotate(of=Count("*"))
    jobs = ClusterJob.objects.filter(cycle=cycle_id).to_judge().free().order_by("number")
    rows = jobs.annotate(of=Subquery(everyone.values("of"))).values_list("pk", "kind", "number", "of")
    return [JobToJudge(id=key, kind=kind, number=number, of=of) for key, kind, number, of in rows]


def cycle_to_apply(*, job_id: int) -> str | None:
    """Name the cycle of a job that is judged and that no job with calls to make precedes, else None."""
    job = ClusterJob.objects.filter(pk=job_id, state=JobState.CLASSIFIED).only("cycle_id", "number").first()
    if job is None or ClusterJob.objects.filter(cycle=job.cycle_id, number__lt=job.number).to_judge().exists():
        return None
    cycle_id: str = job.cycle_id
    return cycle_id


def place_of(key: str | int | None = None) -> dict[str, str | int]:
    """Name what the lines of a log are about, by the id of a cycle or of a job: cycle, workspace and job."""
    if isinstance(key, str):
        workspace = Cycle.objects.filter(pk=key).values_list("workspace_id", flat=True).first()
        return {"cycle": key} if workspace is None else {"cycle": key, "workspace": workspace}
    job = ClusterJob.objects.filter(pk=key).values("cycle", "workspace").first() if key else None
    return {} if key is None else {"job": key, **(job or {})}


def place_of_change(key: int) -> dict[str, str | int]:
    """Name what the lines of a log are about, by the id of a structural job: cycle, workspace and job."""
    job = StructuralJob.objects.filter(pk=key).values("cycle", "workspace", "belief").first()
    return {"structural_job": key, **(job or {})}
