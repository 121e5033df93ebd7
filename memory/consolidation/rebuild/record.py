"""What there is to replay: the cycles that count, what they made, and what of it cannot be founded again."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from memory.consolidation.sources import hash_members
from memory.domain.lifecycle import JobState
from memory.models import Belief, BeliefEvent, ClusterJob, ClusterMember, Cycle, StructuralChild, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The recorded cycles in their order, and what they made, as it stands before anything is replayed."""

    workspace: Workspace
    cycles: Sequence[Cycle]
    made: Mapping[str, Belief]  # by id
    unfounded: Collection[str]  # made of a cluster that has lost a member since
    by_hand: Mapping[str, Any]  # those of them that no cycle made, with the event of their making
    others: Collection[str]  # beliefs that are not made again

    @property
    def foundable(self) -> set[str]:
        """Return what a cluster may found again."""
        return {key for key in self.made if key not in self.unfounded}

    @property
    def places(self) -> dict[str, int]:
        """Return where each cycle stands in the order."""
        return {cycle.pk: place for place, cycle in enumerate(self.cycles)}


def read_record(*, workspace: Workspace) -> Record:
    """Read what is recorded; the caller holds the workspace and its beliefs."""
    cycles = recorded_cycles(workspace=workspace)
    beliefs = Belief.objects.for_workspace(workspace.pk)
    makers = [cycle.pk for cycle in cycles]
    founded = _founding_jobs(makers)
    born_of_change = StructuralChild.objects.filter(
        job__cycle__in=makers, job__state=JobState.APPLIED, belief__isnull=False, is_joined=False
    )
    by_hand = _made_by_hand(beliefs)
    made = {*founded, *born_of_change.values_list("belief_id", flat=True), *by_hand}
    return Record(
        workspace=workspace,
        cycles=cycles,
        made={belief.pk: belief for belief in beliefs.filter(pk__in=made)},
        unfounded=_without_a_member(founded),
        by_hand=by_hand,
        others=set(beliefs.exclude(pk__in=made).values_list("pk", flat=True)),
    )


def recorded_cycles(*, workspace: Workspace) -> list[Cycle]:
    """List the cycles that have ended and were not undone, in their order."""
    ended = Cycle.objects.for_workspace(workspace.pk).filter(finished_at__isnull=False, undone_at=None)
    return list(ended.select_related("workspace").order_by("opened_at", "finished_at"))


def _made_by_hand(beliefs: QuerySet[Belief]) -> dict[str, Any]:
    """Read how beliefs stood when somebody who is no cycle made them; of older ones than the history nobody can."""
    events = BeliefEvent.objects.filter(pgh_obj__in=beliefs.filter(born_in=None).values("pk"), pgh_label="created")
    return {event.pgh_obj_id: event for event in events.order_by("pgh_id")}


def _founding_jobs(cycles: Collection[str]) -> dict[str, ClusterJob]:
    """Read the jobs that founded a belief, by the belief's id."""
    founding = ClusterJob.objects.filter(cycle__in=cycles, state=JobState.APPLIED, created_belief__isnull=False)
    return {job.created_belief_id: job for job in founding.only("pk", "created_belief", "members_hash")}


def _without_a_member(founded: Mapping[str, ClusterJob]) -> set[str]:
    """Find the beliefs whose cluster lost a member for good: their statement may tell what that one said."""
    jobs = [job.pk for job in founded.values()]
    left: dict[int, list[str]] = defaultdict(list)
    for job, episode in ClusterMember.objects.filter(job__in=jobs).values_list("job_id", "episode_id"):
        left[job].append(episode)
    return {key for key, job in founded.items() if hash_members(left[job.pk]) != job.members_hash}
