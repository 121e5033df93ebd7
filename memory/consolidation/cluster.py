"""Step 3: group episodes that are alike, and write down the jobs of the cycle.

`cluster_episodes` is the step. It hears what nobody told: documents and what machines store, and of what people say
that which founded and bore out nothing (F4). Three or more alike become a cluster job, single documents near a belief
share one, and what is near nothing waits in the pool. A cluster without room is taken up by the next cycle as it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from memory.consolidation.cycle import enter_step, has_time_for_call, read_step, renew_cycle
from memory.consolidation.episode_states import PARTLY_ASKED, settle_or_pool
from memory.consolidation.jobs import dead_letter_broken, find_broken_episodes
from memory.consolidation.leases import keep_renewed
from memory.consolidation.read import are_all_read, next_job_number
from memory.consolidation.related_beliefs import UnclusteredBatch, gather_unclustered
from memory.consolidation.sources import (
    EpisodeSource,
    hash_members,
    read_episodes,
    read_sources,
)
from memory.domain.clustering import centrality, cluster, rank_clusters
from memory.domain.lifecycle import OWN_ERRORS, REPLACED, ConsolidationState, JobState
from memory.llm.embeddings import embedder_of
from memory.llm.types import Embedder
from memory.models import (
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    JobKind,
    Source,
)
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)
NO_ROOM = "no room in this cycle"


def cluster_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Plan the cycle's jobs and store them once; false if the attempt must end here.

    While a reading waits for a model server the cycle waits with it: what it tells is nothing to cluster.
    """
    found = read_step(cycle_id=cycle_id, name="cluster")
    if found.is_done or found.cycle.attempt != attempt:
        return renew_cycle(cycle_id=cycle_id, attempt=attempt)
    may_wait = not found.cycle.budget_spent and has_time_for_call(cycle_id=cycle_id)
    if may_wait and not are_all_read(cycle=found.cycle):
        return False
    with keep_renewed(lambda: renew_cycle(cycle_id=cycle_id, attempt=attempt)):
        plan = _plan_without_broken(found.cycle)
    with enter_step(cycle_id=cycle_id, attempt=attempt, name="cluster") as step:
        if step is None:
            return False
        if not step.is_done:
            step.began, step.counts = found.began, store_plan(cycle=found.cycle, plan=plan)
    return True


def _plan_without_broken(cycle: Cycle) -> CyclePlan:
    """Plan a cycle, without the episodes that break the planning (E6)."""
    try:
        return plan_cycle(cycle=cycle)
    except OWN_ERRORS:
        log.exception("plan_broke", cycle=cycle.pk, workspace=cycle.workspace_id)
        if not dead_letter_broken(
            cycle=cycle, reasons=find_broken_episodes(read_sources(episodes=_select_episodes(cycle)))
        ):
            raise
        return plan_cycle(cycle=cycle)


def _select_episodes(cycle: Cycle) -> QuerySet[Episode]:
    """Select what was leased and the pool, but for speech that is evidence or waits to be read.

    A document that is evidence of one belief may wait for a call about another. What an AI says to its user asserts
    nothing (E2); what it does on its own may be learnt from.
    """
    leased = Episode.objects.for_workspace(cycle.workspace_id).active().filter(leased_by=cycle.pk)
    open_to = leased | select_pooled_episodes(workspace_id=cycle.workspace_id, now=cycle.now)
    told = Evidence.objects.filter(episode=OuterRef("pk")).exclude(belief__status__in=REPLACED)
    speech = Q(source=Source.HUMAN, is_derived=False)
    heard = speech & (Q(read_at=None) | Exists(told))
    return open_to.exclude(heard).exclude(Q(source=Source.AI) & ~Q(user=""))


def plan_cycle(*, cycle: Cycle) -> CyclePlan:
    """Cluster the leased and pooled episodes, choose the clusters and the singles; nothing is written."""
    model = embedder_of(cycle.workspace_id)
    sources, vectors = read_episodes(episodes=_select_episodes(cycle), model=model.name)
    return plan_jobs(workspace_id=cycle.workspace_id, now=cycle.now, sources=sources, vectors=vectors, model=model)


def plan_jobs(
    *, workspace_id: int, now: datetime, sources: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> CyclePlan:
    """Choose what a cycle does with these episodes, the new ones of which are leased; nothing is written."""
    put_off = [_cut_to_size(central) for central in read_deferred_clusters(workspace_id=workspace_id, sources=sources)]
    formed = {member.id for group in put_off for member in group.episodes}
    free = [place for place, source in enumerate(sources) if source.id not in formed]
    groups = find_clusters(sources=[sources[i] for i in free], vectors=vectors[free], model=model)
    chosen, waiting = _choose_clusters(workspace_id=workspace_id, now=now, groups=[*put_off, *groups])
    taken = {member.id for group in (*chosen, *waiting) for member in group.episodes}
    put_back = {m.id for group in waiting for m in group.episodes if m.state == ConsolidationState.LEASED}
    alone = [place for place, source in enumerate(sources) if source.id not in taken and source.source != Source.HUMAN]
    if waiting:  # the pool does too: asked about all that is founded meanwhile at once, it costs fewer calls
        alone = [place for place in alone if sources[place].state == ConsolidationState.LEASED]
    batches, left_out = gather_unclustered(
        workspace_id=workspace_id, episodes=[sources[i] for i in alone], vectors=vectors[alone], model=model
    )
    deferred = {m.id for batch in left_out for m in batch.members if m.state == ConsolidationState.LEASED}
    taken_up = {member.id for batch in batches for member in batch.members}
    return CyclePlan(
        groups=chosen,
        waiting=waiting,
        singles=batches,
        put_back=put_back | (deferred - taken_up),
        partly_asked=deferred & taken_up,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeCluster:
    """Alike episodes, most central first, at most as many as a job takes."""

    members: Sequence[EpisodeSource]
    beyond: Sequence[EpisodeSource] = ()  # what a job has no room for

    @property
    def episodes(self) -> Sequence[EpisodeSource]:
        """Return all its episodes, most central first."""
        return [*self.members, *self.beyond]

    @property
    def members_hash(self) -> str:
        """Name the set: one that was tried once waits until it changes."""
        return hash_members(member.id for member in self.members)

    @property
    def has_failed(self) -> bool:
        """Tell whether a member's last job failed."""
        return any(member.failures for member in self.members)


@dataclass(slots=True, kw_only=True)
class CyclePlan:
    """What the cycle will do: its cluster jobs, those it has no room for, the singles near a belief, and the rest."""

    groups: list[EpisodeCluster] = field(default_factory=list)
    waiting: list[EpisodeCluster] = field(default_factory=list)
    singles: list[UnclusteredBatch] = field(default_factory=list)
    put_back: set[str] = field(default_factory=set)
    partly_asked: set[str] = field(default_factory=set)

    def working(self) -> set[str]:
        """Name the episodes that this cycle's jobs are about."""
        of_clusters = {member.id for group in self.groups for member in group.members}
        of_singles = {member.id for batch in self.singles for member in batch.members}
        return of_clusters | of_singles


def read_deferred_clusters(*, workspace_id: int, sources: Sequence[EpisodeSource]) -> list[list[EpisodeSource]]:
    """Return the clusters that the last cycle put off, most central first, without those that lost an episode."""
    last = Cycle.objects.for_workspace(workspace_id).filter(finished_at__isnull=False).order_by("-opened_at").first()
    members = ClusterMember.objects.filter(job__cycle=last, job__kind=JobKind.CLUSTER, job__state=JobState.DEFERRED)
    ids: dict[int, list[str]] = defaultdict(list)
    for job_id, episode_id in members.order_by("job__number", "position").values_list("job_id", "episode_id"):
        ids[job_id].append(episode_id)
    here = {source.id: source for source in sources}
    return [[here[key] for key in keys] for keys in ids.values() if all(key in here for key in keys)]


def find_clusters(*, sources: Sequence[EpisodeSource], vectors: Vectors, model: Embedder) -> list[EpisodeCluster]:
    """Cluster episodes at the calibrated threshold, each company by itself; groups of fewer than three are dropped."""
    threshold = model.profile.raw(settings.POLICY.consolidation.cluster_similarity)
    companies: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        user, language, speaker = source.company
        companies[user, "" if model.is_multilingual else language, speaker].append(place)
    groups = []
    for company in companies.values():
        places = np.asarray(company, dtype=np.intp)
        labels = cluster(vectors=vectors[places], threshold=threshold, policy=settings.POLICY.clustering)
        groups += [_make_cluster(sources, vectors, places[labels == label]) for label in _large_labels(labels)]
    return groups


def _large_labels(labels: NDArray[np.int32]) -> list[int]:
    values, counts = np.unique(labels, return_counts=True)
    large: list[int] = values[counts >= settings.POLICY.consolidation.cluster_min].tolist()
    return large


def _make_cluster(sources: Sequence[EpisodeSource], vectors: Vectors, places: NDArray[np.intp]) -> EpisodeCluster:
    return _cut_to_size([sources[place] for place in places[centrality(vectors=vectors[places])]])


def _cut_to_size(central: Sequence[EpisodeSource]) -> EpisodeCluster:
    """Form a group of episodes, most central first."""
    most = settings.POLICY.consolidation.cluster_max
    return EpisodeCluster(members=central[:most], beyond=central[most:])


def _choose_clusters(
    *, workspace_id: int, now: datetime, groups: Sequence[EpisodeCluster]
) -> tuple[list[EpisodeCluster], list[EpisodeCluster]]:
    """Choose the clusters of this cycle; return them and those that must wait for a later one.

    Clusters that failed before come after those that did not, or ten that always fail would let nothing else pass.
    """
    tried = _tried_sets(workspace_id=workspace_id, hashes=[group.members_hash for group in groups])
    eligible = [group for group in groups if group.members_hash not in tried]
    sound = _rank_clusters(now, [group for group in eligible if not group.has_failed])
    failed = _rank_clusters(now, [group for group in eligible if group.has_failed])
    chosen = [*sound, *failed][: settings.POLICY.consolidation.clusters]
    return chosen, [group for group in eligible if group not in chosen]


def _rank_clusters(now: datetime, groups: Sequence[EpisodeCluster]) -> list[EpisodeCluster]:
    ranked = rank_clusters(
        sizes=[len(group.members) for group in groups],
        days_waited=[_days_waited(now, group) for group in groups],
        policy=settings.POLICY.consolidation,
    )
    return [groups[place] for place in ranked]


def _tried_sets(*, workspace_id: int, hashes: Sequence[str]) -> set[str]:
    """Find the sets that were tried, with or without success; what was undone counts as never done (B22)."""
    jobs = ClusterJob.objects.for_workspace(workspace_id).filter(
        Q(state=JobState.REFUSED) | Q(state=JobState.APPLIED, cycle__undone_at=None),
        kind=JobKind.CLUSTER,
        members_hash__in=hashes,
    )
    return set(jobs.values_list("members_hash", flat=True))


def _days_waited(now: datetime, group: EpisodeCluster) -> float:
    """Return the days since the longest waiting new member was stored."""
    new = [member.created_at for member in group.members if member.state == ConsolidationState.LEASED]
    return max((now - min(new)) / timedelta(days=1), 0.0) if new else 0.0


def select_pooled_episodes(*, workspace_id: int, now: datetime) -> QuerySet[Episode]:
    """Select the pool of the last 90 days."""
    since = now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    active = Episode.objects.for_workspace(workspace_id).active()
    return active.filter(state=ConsolidationState.POOLED, pooled_at__gte=since)


def store_plan(*, cycle: Cycle, plan: CyclePlan) -> dict[str, int]:
    """Write the jobs and their members, and say of every leased episode where it goes; return the counts."""
    planned: list[tuple[Sequence[EpisodeSource], dict[str, Any]]] = [
        *((group.members, {"kind": JobKind.CLUSTER}) for group in plan.groups),
        *((batch.members, _unclustered_job(batch)) for batch in plan.singles),
        *((group.episodes, _deferred_job(group)) for group in plan.waiting),
    ]
    first = next_job_number(cycle=cycle)
    jobs = [_cluster_job(cycle, number, members, given) for number, (members, given) in enumerate(planned, start=first)]
    ClusterJob.objects.bulk_create(jobs)
    memberships = [
        ClusterMember(
            workspace_id=cycle.workspace_id,
            job=job,
            episode_id=member.id,
            position=position,
        )
        for job, (members, _) in zip(jobs, planned, strict=True)
        for position, member in enumerate(members)
    ]
    ClusterMember.objects.bulk_create(memberships, batch_size=1000)
    _set_episode_states(cycle=cycle, plan=plan)
    return {
        "clusters": len(plan.groups),
        "singles": len(plan.singles),
        "put_back": len(plan.put_back),
    }


def _unclustered_job(batch: UnclusteredBatch) -> dict[str, Any]:
    return {"kind": JobKind.SINGLES, "belief_id": batch.belief_id, "pairs": dict(batch.pairs)}


def _deferred_job(group: EpisodeCluster) -> dict[str, Any]:
    """Word the row of a cluster without room: the next cycle takes it up as it was."""
    return {
        "kind": JobKind.CLUSTER,
        "members_hash": group.members_hash,
        "state": JobState.DEFERRED,
        "state_reason": NO_ROOM,
    }


def _cluster_job(cycle: Cycle, number: int, members: Sequence[EpisodeSource], given: dict[str, Any]) -> ClusterJob:
    named = {"members_hash": hash_members(member.id for member in members)} | given
    return ClusterJob(workspace_id=cycle.workspace_id, cycle=cycle, number=number, **named)


def _set_episode_states(*, cycle: Cycle, plan: CyclePlan) -> None:
    """Lease what takes part, put back what must wait, is unread or has no vector yet, pool what is near nothing.

    What a failed reading left unread stays leased: the gate sets it aside with the reason.
    """
    working = plan.working()
    mine = Episode.objects.for_workspace(cycle.workspace_id)
    free = mine.filter(Q(leased_by=cycle.pk) | Q(state=ConsolidationState.POOLED))
    as_they_are = Q(leased_by=cycle.pk, state=ConsolidationState.LEASED, state_reason="")
    free.exclude(as_they_are).filter(pk__in=working).update(
        state=ConsolidationState.LEASED, leased_by=cycle.pk, state_reason=""
    )
    mine.filter(pk__in=plan.partly_asked).update(state_reason=PARTLY_ASKED)
    rest = mine.filter(leased_by=cycle.pk).exclude(pk__in=working)
    unread = Q(source=Source.HUMAN, is_derived=False, read_at=None)
    unread |= ~Q(embedding__model=embedder_of(cycle.workspace_id).name)
    failed = ClusterMember.objects.filter(job__cycle=cycle, job__kind=JobKind.READING, job__state=JobState.FAILED)
    rest = rest.exclude(pk__in=failed.values("episode"), read_at=None)
    rest.filter(Q(pk__in=plan.put_back) | unread).update(state=ConsolidationState.NEW, leased_by=None)
    settle_or_pool(episodes=rest, cycle=cycle)
