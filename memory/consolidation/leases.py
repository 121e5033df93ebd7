"""Leases on jobs: held by one worker at a time, renewed while it works, run out by themselves when it dies."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Greatest

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import budget_policy, renew_cycle
from memory.domain.lifecycle import CycleState, JobState
from memory.models import ClusterJob, Cycle

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLease:
    """The right to work on one job; every write of the holder asks `renew` or filters by `owner`."""

    job_id: int
    cycle_id: str
    attempt: int
    owner: str
    began: float = field(default_factory=time.monotonic)  # a reading of the clock that only ever goes forward

    def seconds_left(self) -> float:
        """Return the seconds that the step has left, so that its last call begins in time (B9)."""
        policy = budget_policy()
        return policy.last_call_seconds + policy.call_seconds - (time.monotonic() - self.began)

    def renew(self) -> bool:
        """Show a sign of life of job and cycle; false once either has gone to someone else."""
        until = database_now(plus=budget_policy().lease_seconds)
        return (
            renew_cycle(cycle_id=self.cycle_id, attempt=self.attempt)
            and ClusterJob.objects.filter(pk=self.job_id, lease_owner=self.owner).update(leased_until=until) == 1
        )


@contextmanager
def leased_job(*, job_id: int, attempt: int, state: JobState) -> Iterator[JobLease | None]:
    """Hold a job that is in `state` and free; None if it is not, or the attempt is not its cycle's any more.

    A job that was claimed too often is taken as poison: the gate will give its episodes back as failed.
    """
    lease = _claim(job_id, attempt, state)
    if lease is None:
        yield None
        return
    try:
        with kept_alive(lease.renew):
            yield lease
    except Exception:
        _let_go(lease, survived=False)
        raise
    _let_go(lease, survived=True)


def _let_go(lease: JobLease, *, survived: bool) -> None:
    """Give a lease back; a claim stays counted only where the job was its holder's end: a death, or an error."""
    ClusterJob.objects.filter(pk=lease.job_id, lease_owner=lease.owner).update(
        lease_owner="", leased_until=None, claims=F("claims") - int(survived)
    )


def _claim(job_id: int, attempt: int, state: JobState) -> JobLease | None:
    owner = uuid.uuid4().hex
    # Exists, not a join: an UPDATE over a join picks its rows beforehand, and two workers would both pick this one.
    current = Cycle.objects.filter(pk=OuterRef("cycle"), attempt=attempt, state=CycleState.RUNNING)
    free = ClusterJob.objects.free().filter(Exists(current), pk=job_id, state=state)
    until = database_now(plus=budget_policy().lease_seconds)
    if not free.update(lease_owner=owner, leased_until=until, not_before=None, claims=F("claims") + 1):
        return None
    job = ClusterJob.objects.defer("candidate_vector").get(pk=job_id)
    if job.claims > budget_policy().job_claims:
        fail_job(job_id=job_id, owner=owner, reason="claimed too often")
        return None
    return JobLease(job_id=job_id, cycle_id=job.cycle_id, attempt=attempt, owner=owner)


def fail_job(*, job_id: int, owner: str, reason: str) -> None:
    """Mark a job failed and let go of it; its episodes stay pending (B11)."""
    ClusterJob.objects.filter(pk=job_id, lease_owner=owner).update(
        state=JobState.FAILED, state_reason=reason[:200], lease_owner="", leased_until=None
    )
    log.warning("job_failed", job=job_id, reason=reason)


def hold_back(*, lease: JobLease, seconds: float) -> None:
    """Let a job wait, as a model server asked, and keep its cycle alive meanwhile; the sweeper sends it again.

    The cycle counts as seen until the wait is over: waiting for a server is paid for in working time.
    """
    until = database_now(plus=seconds)
    beyond = database_now(plus=seconds + budget_policy().lease_seconds)
    ClusterJob.objects.filter(pk=lease.job_id, lease_owner=lease.owner).update(not_before=until)
    Cycle.objects.filter(pk=lease.cycle_id, attempt=lease.attempt).update(
        leased_until=Greatest(F("leased_until"), beyond), seen_at=Greatest(F("seen_at"), until)
    )


@contextmanager
def kept_alive(renew: Callable[[], bool]) -> Iterator[None]:
    """Renew a lease from a timer thread while the body works."""
    done = threading.Event()
    timer = threading.Thread(target=_renew_until, args=(done, renew), daemon=True)
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.join()


def _renew_until(done: threading.Event, renew: Callable[[], bool]) -> None:
    try:
        while not done.wait(budget_policy().renew_seconds):
            if not _renew_once(renew):
                return
    finally:
        connection.close()  # this thread's own


def _renew_once(renew: Callable[[], bool]) -> bool:
    """Renew, and take an outage of the database for no answer rather than for a lost lease."""
    try:
        return renew()
    except DatabaseError:
        log.warning("lease_not_renewed")
        connection.close()
        return True
