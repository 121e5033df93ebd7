"""Lease a cycle's jobs, let them wait, fail them: one worker holds a job, as `leases.py` says.

`leased_job` holds a cluster job, `leased_structural_job` a structural one. `retry_without_broken_members` does a
job's work around the episodes that break our own code (E6); the `blame_` functions mark whose fault a failure was
(B11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Greatest

from memory.consolidation.cycle import budget_policy, database_now, renew_unless_cancelled
from memory.consolidation.leases import Lease, hold, take_lease
from memory.consolidation.sources import EpisodeSource, read_sources
from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, CycleState, JobState, describe_own_error
from memory.domain.time_limits import step_seconds
from memory.ledger.beliefs import says_the_same
from memory.llm.registry import language_model
from memory.llm.requests import SynthesisRequest
from memory.llm.runner import FailedRequest
from memory.llm.types import CallFailed, FailureKind
from memory.models import (
    Blame,
    CallOutcome,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    JobKind,
    ModelCall,
    StructuralJob,
)
from memory.models.leases import LeasedQuerySet

log = structlog.get_logger(__name__)
CLAIMED_TOO_OFTEN = "claimed too often"


def leased_job(*, job_id: int, attempt: int, ready: Q) -> AbstractContextManager[JobLease[ClusterJob] | None]:
    """Hold a cluster job that is `ready` and free; None if it is not, or the attempt is not its cycle's any more."""
    return hold(_claim(job_id, attempt, ready, ClusterJob))


def leased_structural_job(
    *, job_id: int, attempt: int, ready: Q
) -> AbstractContextManager[JobLease[StructuralJob] | None]:
    """Hold a structural job, as `leased_job` does a cluster job."""
    return hold(_claim(job_id, attempt, ready, StructuralJob))


def _claim(job_id: int, attempt: int, ready: Q, table: type[AnyJob]) -> JobLease[AnyJob] | None:
    """Lease a job; one that was claimed too often is poison: the gate will give its episodes back as failed."""
    # Exists, not a join: an UPDATE over a join picks its rows beforehand, and two workers would both pick this one.
    current = Cycle.objects.filter(pk=OuterRef("cycle"), attempt=attempt, state=CycleState.RUNNING)
    owner = take_lease(table._default_manager.filter(ready, Exists(current), pk=job_id))
    if owner is None:
        return None
    lease = JobLease(row=table._default_manager.get(pk=job_id), attempt=attempt, owner=owner)
    if lease.job.claims > budget_policy().job_claims:
        if isinstance(lease.job, ClusterJob):
            blame_members(job_id=job_id)
        fail_job(lease=lease, reason=CLAIMED_TOO_OFTEN)
        return None
    return lease


AnyJob = TypeVar("AnyJob", ClusterJob, StructuralJob)


@dataclass(slots=True, kw_only=True)
class JobLease(Lease[AnyJob]):
    """The right to work on one job of a cycle's attempt; every write of the holder asks `renew` or `mine`."""

    attempt: int

    @property
    def job(self) -> AnyJob:
        """Return the job as it was when it was claimed."""
        return self.row

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
    def mine(self) -> LeasedQuerySet:
        """Select the job while it is this lease's and in the state that its holder knows it in."""
        return self.held.filter(state=self.job.state)

    def seconds_left(self) -> float:
        """Return the seconds that the step has left, so that its last call begins in time (B9)."""
        return step_seconds(budget=budget_policy()) - self.seconds

    def renew(self) -> bool:
        """Show a sign of life of job and cycle; false once either has gone to someone else, or is to end (B22)."""
        # Named, for a dataclass with slots is made a second time, and `super()` would know the first.
        return renew_unless_cancelled(cycle_id=self.cycle_id, attempt=self.attempt) and Lease.renew(self)

    def end(self, **columns: Any) -> None:
        """Write what came of the work and give the lease back, if it still is ours and the job as it was."""
        self.is_over = self.mine.give_back(**columns) == 1


def fail_job(*, lease: JobLease[Any], reason: str) -> None:
    """Mark a job failed and let go of it; its episodes stay pending (B11).

    No pending episode would bring a structural job back: it waits for a later cycle as it is, its claim counted, and
    fails once it was claimed too often.
    """
    can_wait = isinstance(lease.job, StructuralJob) and lease.job.claims < budget_policy().job_claims
    end = {"cycle": None} if can_wait else {"state": JobState.FAILED}
    lease.held.fail(reason=reason, **end)
    log.warning("job_failed", job=lease.job_id, kind=type(lease.job).__name__, reason=reason)


def postpone_job(*, lease: JobLease[Any], seconds: float) -> None:
    """Let a job wait, as a model server asked, and keep its cycle alive meanwhile; the sweeper sends it again.

    The cycle counts as seen until the wait is over: waiting for a server is paid for in working time.
    """
    until = database_now(plus=seconds)
    beyond = database_now(plus=seconds + budget_policy().lease_seconds)
    lease.held.update(not_before=until)
    Cycle.objects.filter(pk=lease.cycle_id, attempt=lease.attempt).update(
        leased_until=Greatest(F("leased_until"), beyond), seen_at=Greatest(F("seen_at"), until)
    )


def retry_without_broken_members(*, lease: JobLease[ClusterJob], work: Callable[[], None]) -> None:
    """Do the work of a job, and again without the members that break it.

    Where none does alone, the job fails if rules broke over them together; any other error is its step's, as ever.
    """
    while True:
        try:
            return work()
        except (BrokenEpisodes, *OWN_ERRORS) as error:
            log.exception("job_broke", job=lease.job_id, cycle=lease.cycle_id)
            assert lease.job.cycle  # only a running cycle's job is held
            known = error.reasons if isinstance(error, BrokenEpisodes) else {}
            if dead_letter_broken(cycle=lease.job.cycle, reasons=known) or dead_letter_broken_members(job=lease.job):
                continue
            if not isinstance(error, BrokenEpisodes):
                raise
            blame_members(job_id=lease.job_id)
            return fail_job(lease=lease, reason=describe_own_error(str(error)))


class BrokenEpisodes(Exception):
    """Our own rules broke over episodes: why, by their ids, where it is known which they are."""

    def __init__(self, told: str, *, reasons: Mapping[str, str]) -> None:
        super().__init__(told)
        self.reasons = reasons


def dead_letter_broken_members(*, job: ClusterJob) -> int:
    """Set those members of a job aside that break our code alone; return how many."""
    ids = job.members.values("episode")
    members = read_sources(episodes=Episode.objects.active().filter(pk__in=ids, dead_at=None))
    assert job.cycle
    return dead_letter_broken(cycle=job.cycle, reasons=find_broken_episodes(members))


def find_broken_episodes(episodes: Iterable[EpisodeSource]) -> dict[str, str]:
    """Try each episode alone: return what it breaks, by its id."""
    tried = {episode.id: _why_broken(episode) for episode in episodes}
    return {key: reason for key, reason in tried.items() if reason}


def _why_broken(episode: EpisodeSource) -> str:
    try:
        _check_alone(episode)
    except OWN_ERRORS as error:
        return describe_own_error(error)
    return ""


def _check_alone(episode: EpisodeSource) -> None:
    """Do with an episode what the steps do: tell its company, compare it, state it where that is done here."""
    assert episode.company
    model = language_model()
    says_the_same(left=episode.claim, right=episode.claim)
    if model.is_offline:
        try:
            model.complete(request=SynthesisRequest(episodes=(episode.as_text(),)), timeout=1.0)
        except CallFailed:  # the model's, and so not ours
            return


def dead_letter_broken(*, cycle: Cycle, reasons: Mapping[str, str]) -> int:
    """Make dead letters of episodes that broke our code, whatever they were before; return how many."""
    living = Episode.objects.for_workspace(cycle.workspace_id).filter(dead_at=None)
    buried = sum(
        living.filter(pk=key).update(
            state=ConsolidationState.FAILED,
            leased_by=None,
            state_reason=reason,
            failures=F("failures") + 1,
            dead_at=cycle.now,
        )
        for key, reason in sorted(reasons.items())
    )
    if buried:
        log.warning("dead_letters", cycle=cycle.pk, workspace=cycle.workspace_id, episodes=buried)
    return buried


_BLAME_OF_FAILURE = {
    FailureKind.MALFORMED: Blame.CONTENT,
    FailureKind.BAD_REQUEST: Blame.CALL,
    FailureKind.TIMEOUT: Blame.CALL,
    FailureKind.SERVER: Blame.CALL,
    FailureKind.CONNECTION: Blame.CALL,
    FailureKind.OWN_ERROR: Blame.CALL,  # of what stands between us and a server; that of rules is the text's alone
}


def blame_episodes(*, job_id: int, failures: Sequence[FailedRequest]) -> None:
    """Mark the episodes of the calls that failed for good; a refused key or a rate limit is nobody's fault."""
    for failure in failures:
        if blame := _BLAME_OF_FAILURE.get(failure.kind):
            episodes = [episode.id for episode in failure.request.episodes]
            ClusterMember.objects.filter(job=job_id, episode__in=episodes).update(blame=blame)


def blame_members(*, job_id: int) -> None:
    """Mark all members of a job that kills its workers, or that cannot be applied."""
    ClusterMember.objects.filter(job=job_id).update(blame=Blame.CONTENT)


def counting_blames(*, cycle_id: str) -> list[Blame]:
    """List which blame counts, once a cycle's calls are made: a failed call's only where the server answered others."""
    answered = ModelCall.objects.filter(cycle=cycle_id, outcome=CallOutcome.OK).about_jobs().exists()
    return [Blame.CONTENT, Blame.CALL] if answered else [Blame.CONTENT]


def is_to_blame(*, cycle_id: str, kind: FailureKind) -> bool:
    """Tell whether a call that was about one episode failed by that episode's fault."""
    return _BLAME_OF_FAILURE.get(kind) in counting_blames(cycle_id=cycle_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobToJudge:
    """A job that wants a worker: the `number`th of so many in its cycle."""

    id: int
    kind: str
    number: int
    of: int


def list_jobs_to_judge(*, cycle_id: str) -> list[JobToJudge]:
    """List the jobs with calls to make that nobody holds and that need not wait, in their order."""
    everyone = ClusterJob.objects.filter(cycle=OuterRef("cycle")).order_by().values("cycle").annotate(of=Count("*"))
    jobs = ClusterJob.objects.filter(cycle=cycle_id).exclude(kind=JobKind.READING).to_judge().free().order_by("number")
    rows = jobs.annotate(of=Subquery(everyone.values("of"))).values_list("pk", "kind", "number", "of")
    return [JobToJudge(id=key, kind=kind, number=number, of=of) for key, kind, number, of in rows]


def find_cycle_to_apply(*, job_id: int) -> str | None:
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
