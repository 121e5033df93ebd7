"""Who runs after whom. Messages carry ids; what has been done is read from the rows.

    extract → cluster → [ synthesize → classify ] per job → gate → finish

Headers never raise and results are never read, so a chord's body always runs; where a message is lost all the same, the
sweeper begins another attempt at what the rows show unfinished.
"""

from celery import Signature, chain, chord

from memory.consolidation.jobs import jobs_to_judge
from memory.models import JobKind
from workers import tasks


def start(*, cycle_id: str, attempt: int) -> None:
    """Send a cycle's first steps; those already done return at once."""
    chain(
        tasks.extract.si(cycle_id, attempt), tasks.cluster.si(cycle_id, attempt), tasks.judge.si(cycle_id, attempt)
    ).delay()


def judge_jobs(*, cycle_id: str, attempt: int) -> None:
    """Send every job that still has calls to make, and the gate once all have come back."""
    gate = tasks.gate.si(cycle_id, attempt)
    headers = [_judging(job_id, kind, attempt) for job_id, kind in jobs_to_judge(cycle_id=cycle_id)]
    if headers:
        chord(headers, gate).delay()
    else:
        gate.delay()


def _judging(job_id: int, kind: str, attempt: int) -> Signature[None]:
    classify = tasks.classify.si(job_id, attempt)
    return classify if kind == JobKind.SINGLES else chain(tasks.synthesize.si(job_id, attempt), classify)
