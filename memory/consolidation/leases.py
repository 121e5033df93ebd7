"""Leases on jobs: held by one worker at a time, renewed while it works, run out by themselves when it dies."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest

from memory.consolidation.blame import blame_members
from memory.consolidation.clock import database_now
from memory.consolidation.cycle import FRESH_SECONDS, budget_policy, renew_unless_cancelled
from memory.domain.lifecycle import CycleState, JobState
from memory.domain.policy import step_seconds
from memory.models import ClusterJob, Cycle, StructuralJob

log = structlog.get_logger(__name__)


AnyJob = TypeVar("AnyJob", ClusterJob, StructuralJob)


@dataclass(slots=True, kw_only=True)
class JobLease(Generic[AnyJob]):
    """The right to work on one job as it was when claimed; every write of the holder asks `renew` or `mine`."""

    job: AnyJob
    attempt: int
    owner: str
    began: float = field(default_factory=time.monotonic)  # readings of the clock that only ever goes forward
    renewed: float = field(default_factory=time.monotonic)
    is_over: bool = False

    @property
    def job_id(self) -> int:
        """Return the job's number."""
        job_id: int = self.job.pk
        return job_id

    @property
    def cycle_id(self) -> str:
        """Return the id of the job's cycle."""
        assert self.job.cycle_id  # only a running cycle's job is claimed
        return str(self.job.cycle_id)

    @property
    def is_inherited(self) -> bool:
        """Tell whether an earlier holder never gave the job back: calls of theirs may still stand open."""
        return self.job.claims > 1

    @property
    def held(self) -> QuerySet[Any]:
        """Select the job while it is this lease's."""
        return type(self.job)._default_manager.filter(pk=self.job_id, lease_owner=self.owner)

    @property
    def mine(self) -> QuerySet[Any]:
        """Select the job while it is this lease's and in the state that its holder knows it in."""
        return self.held.filter(state=self.job.state)

    def seconds_left(self) -> float:
        """Return the seconds that the step has left, so that its last call begins in time (B9)."""
        return step_seconds(budget=budget_policy()) - (time.monotonic() - self.began)

    def renew(self) -> bool:
        """Show a sign of life of job and cycle; false once either has gone to someone else, or is to end (B22)."""
        if not renew_unless_cancelled(cycle_id=self.cycle_id, attempt=self.attempt):
            return False
        now = time.monotonic()
        if now - self.renewed > FRESH_SECONDS:
            until = database_now(plus=budget_policy().lease_seconds)
            if not self.held.update(leased_until=until):
                return False
            self.renewed = now
        return True

    def end(self, **columns: Any) -> None:
        """Write what came of the work and give the lease back, if it still is ours and the job as it was."""
        self.is_over = self.mine.update(**columns, **_GIVEN_BACK) == 1


def leased_job(*, job_id: int, attempt: int, ready: Q) -> AbstractContextManager[JobLease[ClusterJob] | None]:
    """Hold a cluster job, as `_leased` says."""
    return _leased(job_id, attempt, ready, ClusterJob)


def leased_change(*, job_id: int, attempt: int, ready: Q) -> AbstractContextManager[JobLease[StructuralJob] | None]:
    """Hold a structural job, as `_leased` says."""
    return _leased(job_id, attempt, ready, StructuralJob)


@contextmanager
def _leased(job_id: int, attempt: int, ready: Q, table: type[AnyJob]) -> Iterator[JobLease[AnyJob] | None]:
    """Hold a job that is `ready` and free; None if it is not, or the attempt is not its cycle's any more.

    A job that was claimed too often is taken as poison: the gate will give its episodes back as failed. A claim stays
    counted only where the job was its holder's end: a death, or an error.
    """
    lease = _claim(job_id, attempt, ready, table)
    if lease is None:
        yield None
        return
    try:
        with kept_alive(lease.renew):
            yield lease
    except Exception:
        lease.held.update(lease_owner="", leased_until=None)
        raise
    if not lease.is_over:
        lease.held.update(**_GIVEN_BACK)


_GIVEN_BACK: dict[str, Any] = {"lease_owner": "", "leased_until": None, "claims": F("claims") - 1}


def _claim(job_id: int, attempt: int, ready: Q, table: type[AnyJob]) -> JobLease[AnyJob] | None:
    owner = uuid.uuid4().hex
    # Exists, not a join: an UPDATE over a join picks its rows beforehand, and two workers would both pick this one.
    current = Cycle.objects.filter(pk=OuterRef("cycle"), attempt=attempt, state=CycleState.RUNNING)
    free = table._default_manager.free().filter(ready, Exists(current), pk=job_id)
    until = database_now(plus=budget_policy().lease_seconds)
    if not free.update(lease_owner=owner, leased_until=until, not_before=None, claims=F("claims") + 1):
        return None
    lease = JobLease(job=table._default_manager.get(pk=job_id), attempt=attempt, owner=owner)
    if lease.job.claims > budget_policy().job_claims:
        if isinstance(lease.job, ClusterJob):
            blame_members(job_id=job_id)
        fail_job(lease=lease, reason="claimed too often")
        return None
    return lease


def fail_job(*, lease: JobLease[Any], reason: str) -> None:
    """Mark a job failed and let go of it; its episodes stay pending (B11).

    No pending episode would bring a structural job back: it waits for a later cycle as it is, its claim counted, and
    fails once it was claimed too often.
    """
    can_wait = isinstance(lease.job, StructuralJob) and lease.job.claims < budget_policy().job_claims
    end = {"cycle": None} if can_wait else {"state": JobState.FAILED}
    lease.held.update(**end, state_reason=reason[:200], lease_owner="", leased_until=None)
    log.warning("job_failed", job=lease.job_id, kind=type(lease.job).__name__, reason=reason)


def hold_back(*, lease: JobLease[Any], seconds: float) -> None:
    """Let a job wait, as a model server asked, and keep its cycle alive meanwhile; the sweeper sends it again.

    The cycle counts as seen until the wait is over: waiting for a server is paid for in working time.
    """
    until = database_now(plus=seconds)
    beyond = database_now(plus=seconds + budget_policy().lease_seconds)
    lease.held.update(not_before=until)
    Cycle.objects.filter(pk=lease.cycle_id, attempt=lease.attempt).update(
        leased_until=Greatest(F("leased_until"), beyond), seen_at=Greatest(F("seen_at"), until)
    )


@contextmanager
def kept_alive(renew: Callable[[], bool]) -> Iterator[None]:
    """Renew a lease from a timer thread while the body works."""
    done = threading.Event()
    context = copy_context()  # so that the thread's log lines say what they are about, too
    timer = threading.Thread(target=context.run, args=(_renew_until, done, renew), daemon=True)
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
