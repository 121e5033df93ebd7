"""Whose fault a failed job was, as far as can be told (B11).

An episode that spoils every call it is in must not be asked about for ever, and an outage must not make dead letters
of whatever happened to be asked about.
"""

from collections.abc import Collection, Sequence

from memory.llm.registry import FailureKind
from memory.llm.runner import FailedRequest
from memory.models import Blame, CallOutcome, ClusterMember, ModelCall

_BLAME = {
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
        if blame := _BLAME.get(failure.kind):
            _mark(job_id, blame, [episode.id for episode in failure.request.episodes])


def blame_members(*, job_id: int) -> None:
    """Mark all members of a job that kills its workers, or that cannot be applied."""
    ClusterMember.objects.filter(job=job_id).update(blame=Blame.CONTENT)


def counting_blames(*, cycle_id: str) -> list[Blame]:
    """List which blame counts, once a cycle's calls are made: a failed call's only where the server answered others."""
    answered = ModelCall.objects.filter(cycle=cycle_id, outcome=CallOutcome.OK).about_jobs().exists()
    return [Blame.CONTENT, Blame.CALL] if answered else [Blame.CONTENT]


def is_to_blame(*, cycle_id: str, kind: FailureKind) -> bool:
    """Tell whether a call that was about one episode failed by that episode's fault."""
    return _BLAME.get(kind) in counting_blames(cycle_id=cycle_id)


def _mark(job_id: int, blame: Blame, episodes: Collection[str]) -> None:
    ClusterMember.objects.filter(job=job_id, episode__in=episodes).update(blame=blame)
