"""What breaks our own code is set aside alone, at once, and everything else goes on without it (E6).

The rules answer the same at any hour: an episode over which they raise would raise again. So it is a dead letter after
one failure of its own, with the error as its reason, and a person may have it tried again once the error is mended.
"""

from collections.abc import Callable, Iterable, Mapping

import structlog
from django.db.models import F

from memory.consolidation.blame import blame_members
from memory.consolidation.leases import JobLease, fail_job
from memory.consolidation.sources import EpisodeSource, read_sources
from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, describe_own_error
from memory.ledger.beliefs import passes_guard
from memory.llm.registry import CallFailed, language_model
from memory.llm.requests import SynthesisRequest
from memory.models import ClusterJob, Cycle, Episode

log = structlog.get_logger(__name__)


class BrokenBy(Exception):
    """Our own rules broke over episodes: why, by their ids, where it is known which they are."""

    def __init__(self, told: str, *, reasons: Mapping[str, str]) -> None:
        super().__init__(told)
        self.reasons = reasons


def work_around(*, lease: JobLease[ClusterJob], work: Callable[[], None]) -> None:
    """Do the work of a job, and again without the members that break it.

    Where none does alone, the job fails if rules broke over them together; any other error is its step's, as ever.
    """
    while True:
        try:
            return work()
        except (BrokenBy, *OWN_ERRORS) as error:
            log.exception("job_broke", job=lease.job_id, cycle=lease.cycle_id)
            assert lease.job.cycle  # only a running cycle's job is held
            known = error.reasons if isinstance(error, BrokenBy) else {}
            if set_aside(cycle=lease.job.cycle, reasons=known) or set_members_aside(job=lease.job):
                continue
            if not isinstance(error, BrokenBy):
                raise
            blame_members(job_id=lease.job_id)
            return fail_job(lease=lease, reason=describe_own_error(str(error)))


def set_members_aside(*, job: ClusterJob) -> int:
    """Set those members of a job aside that break our code alone; return how many."""
    ids = job.members.values("episode")
    members = read_sources(episodes=Episode.objects.active().filter(pk__in=ids, dead_at=None))
    assert job.cycle
    return set_aside(cycle=job.cycle, reasons=find_broken(members))


def find_broken(episodes: Iterable[EpisodeSource]) -> dict[str, str]:
    """Try each episode alone: return what it breaks, by its id."""
    tried = {episode.id: _why_broken(episode) for episode in episodes}
    return {key: reason for key, reason in tried.items() if reason}


def _why_broken(episode: EpisodeSource) -> str:
    try:
        _read_alone(episode)
    except OWN_ERRORS as error:
        return describe_own_error(error)
    return ""


def _read_alone(episode: EpisodeSource) -> None:
    """Do with an episode what the steps do: tell its company, whether it says anything, what rules make of it."""
    assert episode.company
    model, said = language_model(), episode.is_saying
    passes_guard(left=episode.claim, right=episode.claim)
    if said and model.is_offline:
        try:
            model.complete(request=SynthesisRequest(episodes=(episode.as_text(),)), timeout=1.0)
        except CallFailed:  # the model's, and so not ours
            return


def set_aside(*, cycle: Cycle, reasons: Mapping[str, str]) -> int:
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
