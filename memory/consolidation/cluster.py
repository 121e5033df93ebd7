"""Step 2: group what is alike, and write down the jobs of this cycle.

Groups of three or more become cluster jobs; every other episode near a belief is gathered with those near the same
beliefs; what is near nothing waits in the pool.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db.models import Q, QuerySet
from numpy.typing import NDArray

from memory.consolidation.claims import ClaimPlan, plan_announced, plan_claims, store_claim_jobs
from memory.consolidation.cycle import look_at_step, renew_cycle, step_of_cycle
from memory.consolidation.leases import kept_alive
from memory.consolidation.put_off import NO_ROOM, read_put_off
from memory.consolidation.setting_aside import find_broken, set_aside
from memory.consolidation.settling import PARTLY_ASKED, settle_or_pool
from memory.consolidation.singles import SinglesBatch, gather_singles
from memory.consolidation.sources import EpisodeSource, each_once, hash_members, read_episodes, read_sources
from memory.domain.clustering import centrality, cluster, rank_clusters
from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, JobState
from memory.llm.embeddings import embedder_of
from memory.llm.registry import Embedder, language_model
from memory.models import ClusterJob, ClusterMember, Cycle, Episode, JobKind
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
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
class Plan:
    """What the cycle will do: its cluster jobs, those it has no room for, the singles near a belief, and the rest."""

    groups: list[Group] = field(default_factory=list)
    waiting: list[Group] = field(default_factory=list)
    singles: list[SinglesBatch] = field(default_factory=list)
    told: list[ClaimPlan] = field(default_factory=list)
    put_back: set[str] = field(default_factory=set)
    partly_asked: set[str] = field(default_factory=set)

    def working(self) -> set[str]:
        """Name the episodes that this cycle's jobs are about."""
        of_clusters = {member.id for group in self.groups for member in group.members}
        of_singles = {member.id for batch in self.singles for member in batch.members}
        return of_clusters | of_singles | {plan.source.id for plan in self.told}


def cluster_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Plan the cycle's jobs and store them once; false if the attempt must end here."""
    found = look_at_step(cycle_id=cycle_id, name="cluster")
    if found.is_done or found.cycle.attempt != attempt:
        return renew_cycle(cycle_id=cycle_id, attempt=attempt)
    with kept_alive(lambda: renew_cycle(cycle_id=cycle_id, attempt=attempt)):
        plan = _plan_around(found.cycle)
    with step_of_cycle(cycle_id=cycle_id, attempt=attempt, name="cluster") as step:
        if step is None:
            return False
        if not step.is_done:
            step.began, step.counts = found.began, store_plan(cycle=found.cycle, plan=plan)
    return True


def _plan_around(cycle: Cycle) -> Plan:
    """Plan a cycle, without the episodes that break the planning (E6)."""
    try:
        return plan_cycle(cycle=cycle)
    except OWN_ERRORS:
        log.exception("plan_broke", cycle=cycle.pk, workspace=cycle.workspace_id)
        if not set_aside(cycle=cycle, reasons=find_broken(read_sources(episodes=_taking_part(cycle)))):
            raise
        return plan_cycle(cycle=cycle)


def _taking_part(cycle: Cycle) -> QuerySet[Episode]:
    leased = Episode.objects.for_workspace(cycle.workspace_id).active().filter(leased_by=cycle.pk).exclude(read_at=None)
    return leased | pooled_episodes(workspace_id=cycle.workspace_id, now=cycle.now)


def plan_cycle(*, cycle: Cycle) -> Plan:
    """Cluster the leased and pooled episodes, choose the clusters and the singles; nothing is written."""
    model = embedder_of(cycle.workspace_id)
    sources, vectors = read_episodes(episodes=_taking_part(cycle), model=model.name)
    return plan_work(workspace_id=cycle.workspace_id, now=cycle.now, sources=sources, vectors=vectors, model=model)


def plan_work(
    *, workspace_id: int, now: datetime, sources: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> Plan:
    """Choose what a cycle does with these episodes, the new ones of which are leased; nothing is written."""
    put_off = [_cut(central) for central in read_put_off(workspace_id=workspace_id, sources=sources)]
    formed = {member.key for group in put_off for member in group.episodes}
    free = [place for place, source in enumerate(sources) if source.key not in formed]
    groups = find_groups(sources=[sources[i] for i in free], vectors=vectors[free], model=model)
    chosen, waiting = _choose_groups(workspace_id=workspace_id, now=now, groups=[*put_off, *groups])
    taken = {member.key for group in (*chosen, *waiting) for member in group.episodes}
    put_back = {m.id for group in waiting for m in group.episodes if m.state == ConsolidationState.LEASED}
    alone = [place for place, source in enumerate(sources) if source.key not in taken]
    if waiting:  # the pool does too: asked about all that is founded meanwhile at once, it costs fewer calls
        alone = [place for place in alone if sources[place].state == ConsolidationState.LEASED]
    batches, left_out = gather_singles(
        workspace_id=workspace_id, episodes=[sources[i] for i in alone], vectors=vectors[alone], model=model
    )
    deferred = {m.id for batch in left_out for m in batch.members if m.state == ConsolidationState.LEASED}
    taken_up = {member.id for batch in batches for member in batch.members}
    put_back |= deferred - taken_up
    told = plan_claims(workspace_id=workspace_id, sources=sources)
    if not language_model().is_offline:
        told = _asked_first(told, left_out)
        taken_up |= {plan.source.id for plan in told}
    announced = plan_announced(workspace_id=workspace_id, now=now)
    come = {plan.claim.pk for plan in announced}
    told = [plan for plan in told if plan.claim.pk not in come] + announced
    return Plan(
        groups=chosen,
        waiting=waiting,
        singles=batches,
        told=told,
        put_back=put_back - {plan.source.id for plan in told},
        partly_asked=deferred & taken_up,
    )


def _asked_first(told: Sequence[ClaimPlan], left_out: Sequence[SinglesBatch]) -> list[ClaimPlan]:
    """Drop the claims for which the cycle has no call: what says what a belief says would found it once more (E4)."""
    waiting = {member.claim_id for batch in left_out for member in batch.members}
    return [plan for plan in told if plan.claim.pk not in waiting]


def pooled_episodes(*, workspace_id: int, now: datetime) -> QuerySet[Episode]:
    """Select the pool of the last 90 days."""
    since = now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    active = Episode.objects.for_workspace(workspace_id).active()
    return active.filter(state=ConsolidationState.POOLED, pooled_at__gte=since)


def find_groups(*, sources: Sequence[EpisodeSource], vectors: Vectors, model: Embedder) -> list[Group]:
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
        groups += [_group(sources, vectors, places[labels == label]) for label in _large(labels)]
    least = settings.POLICY.consolidation.cluster_min
    return [group for group in groups if len(group.episodes) >= least]  # one episode may say a thing in two claims


def _large(labels: NDArray[np.int32]) -> list[int]:
    values, counts = np.unique(labels, return_counts=True)
    large: list[int] = values[counts >= settings.POLICY.consolidation.cluster_min].tolist()
    return large


def _group(sources: Sequence[EpisodeSource], vectors: Vectors, places: NDArray[np.intp]) -> Group:
    return _cut(each_once(sources[place] for place in places[centrality(vectors=vectors[places])]))


def _cut(central: Sequence[EpisodeSource]) -> Group:
    """Form a group of episodes, most central first."""
    most = settings.POLICY.consolidation.cluster_max
    return Group(members=central[:most], beyond=central[most:])


def _choose_groups(*, workspace_id: int, now: datetime, groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Choose the clusters of this cycle; return them and those that must wait for a later one.

    Clusters that failed before come after those that did not, or ten that always fail would let nothing else pass.
    """
    tried = _tried_sets(workspace_id=workspace_id, hashes=[group.members_hash for group in groups])
    eligible = [group for group in groups if group.members_hash not in tried]
    sound = _rank(now, [group for group in eligible if not group.has_failed])
    failed = _rank(now, [group for group in eligible if group.has_failed])
    chosen = [*sound, *failed][: settings.POLICY.consolidation.clusters]
    return chosen, [group for group in eligible if group not in chosen]


def _rank(now: datetime, groups: Sequence[Group]) -> list[Group]:
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


def _days_waited(now: datetime, group: Group) -> float:
    """Return the days since the longest waiting new member was stored."""
    new = [member.created_at for member in group.members if member.state == ConsolidationState.LEASED]
    return max((now - min(new)) / timedelta(days=1), 0.0) if new else 0.0


def store_plan(*, cycle: Cycle, plan: Plan) -> dict[str, int]:
    """Write the jobs and their members, and say of every leased episode where it goes; return the counts."""
    planned: list[tuple[Sequence[EpisodeSource], dict[str, Any]]] = [
        *((group.members, {"kind": JobKind.CLUSTER}) for group in plan.groups),
        *((batch.members, _singles(batch)) for batch in plan.singles),
        *((group.episodes, _put_off(group)) for group in plan.waiting),
    ]
    jobs = [_job(cycle, number, members, given) for number, (members, given) in enumerate(planned, start=1)]
    ClusterJob.objects.bulk_create(jobs)
    memberships = [
        ClusterMember(
            workspace_id=cycle.workspace_id,
            job=job,
            episode_id=member.id,
            claim_id=member.claim_id or None,
            position=position,
        )
        for job, (members, _) in zip(jobs, planned, strict=True)
        for position, member in enumerate(members)
    ]
    ClusterMember.objects.bulk_create(memberships, batch_size=1000)
    store_claim_jobs(cycle=cycle, plans=plan.told, first_number=len(jobs) + 1)
    _place_episodes(cycle=cycle, plan=plan)
    return {
        "clusters": len(plan.groups),
        "singles": len(plan.singles),
        "claims": len(plan.told),
        "put_back": len(plan.put_back),
    }


def _singles(batch: SinglesBatch) -> dict[str, Any]:
    return {"kind": JobKind.SINGLES, "belief_id": batch.belief_id, "pairs": dict(batch.pairs)}


def _put_off(group: Group) -> dict[str, Any]:
    """Word the row of a cluster without room: the next cycle takes it up as it was."""
    return {
        "kind": JobKind.CLUSTER,
        "members_hash": group.members_hash,
        "state": JobState.DEFERRED,
        "state_reason": NO_ROOM,
    }


def _job(cycle: Cycle, number: int, members: Sequence[EpisodeSource], given: dict[str, Any]) -> ClusterJob:
    named = {"members_hash": hash_members(member.id for member in members)} | given
    return ClusterJob(workspace_id=cycle.workspace_id, cycle=cycle, number=number, **named)


def _place_episodes(*, cycle: Cycle, plan: Plan) -> None:
    """Lease what takes part, put back what must wait, is unread or has no vector yet, pool what is near nothing."""
    working = plan.working()
    mine = Episode.objects.for_workspace(cycle.workspace_id)
    free = mine.filter(Q(leased_by=cycle.pk) | Q(state=ConsolidationState.POOLED))
    as_they_are = Q(leased_by=cycle.pk, state=ConsolidationState.LEASED, state_reason="")
    free.exclude(as_they_are).filter(pk__in=working).update(
        state=ConsolidationState.LEASED, leased_by=cycle.pk, state_reason=""
    )
    mine.filter(pk__in=plan.partly_asked).update(state_reason=PARTLY_ASKED)
    rest = mine.filter(leased_by=cycle.pk).exclude(pk__in=working)
    unread = Q(read_at=None) | ~Q(embedding__model=embedder_of(cycle.workspace_id).name)
    rest.filter(Q(pk__in=plan.put_back) | unread).update(state=ConsolidationState.NEW, leased_by=None)
    settle_or_pool(episodes=rest, cycle=cycle)
