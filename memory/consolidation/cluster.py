"""Step 2: group episodes that are alike, and write down the jobs of the cycle.

`cluster_episodes` is the step. Three or more alike become a cluster job, single episodes near a belief share one, a
told claim gets its own, and what is near nothing waits in the pool. A cluster without room is taken up by the next
cycle as it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from memory.consolidation.cycle import enter_step, read_step, renew_cycle
from memory.consolidation.episode_states import PARTLY_ASKED, settle_or_pool
from memory.consolidation.jobs import dead_letter_broken, find_broken_episodes
from memory.consolidation.leases import keep_renewed
from memory.consolidation.related_beliefs import BeliefIndex, UnclusteredBatch, gather_unclustered
from memory.consolidation.sources import (
    NO_CLAIM,
    EpisodeSource,
    canonical_order,
    first_of_each_episode,
    hash_members,
    read_episodes,
    read_sources,
    source_of_claim,
)
from memory.domain.clustering import centrality, cluster, rank_clusters
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import OWN_ERRORS, BeliefStatus, ConsolidationState, JobState
from memory.language.subjects import Timeframe
from memory.ledger.beliefs import hash_statement
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.llm.types import Embedder
from memory.models import (
    Basis,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    EvidenceKind,
    JobKind,
    JobVerdict,
)
from memory.models.episodes import ClaimQuerySet
from memory.search.vectors import Vectors, read_claim_vectors

log = structlog.get_logger(__name__)
NO_ROOM = "no room in this cycle"


def cluster_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Plan the cycle's jobs and store them once; false if the attempt must end here."""
    found = read_step(cycle_id=cycle_id, name="cluster")
    if found.is_done or found.cycle.attempt != attempt:
        return renew_cycle(cycle_id=cycle_id, attempt=attempt)
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
    leased = Episode.objects.for_workspace(cycle.workspace_id).active().filter(leased_by=cycle.pk).exclude(read_at=None)
    return leased | select_pooled_episodes(workspace_id=cycle.workspace_id, now=cycle.now)


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
    formed = {member.key for group in put_off for member in group.episodes}
    free = [place for place, source in enumerate(sources) if source.key not in formed]
    groups = find_clusters(sources=[sources[i] for i in free], vectors=vectors[free], model=model)
    chosen, waiting = _choose_clusters(workspace_id=workspace_id, now=now, groups=[*put_off, *groups])
    taken = {member.key for group in (*chosen, *waiting) for member in group.episodes}
    put_back = {m.id for group in waiting for m in group.episodes if m.state == ConsolidationState.LEASED}
    alone = [place for place, source in enumerate(sources) if source.key not in taken]
    if waiting:  # the pool does too: asked about all that is founded meanwhile at once, it costs fewer calls
        alone = [place for place in alone if sources[place].state == ConsolidationState.LEASED]
    batches, left_out = gather_unclustered(
        workspace_id=workspace_id, episodes=[sources[i] for i in alone], vectors=vectors[alone], model=model
    )
    deferred = {m.id for batch in left_out for m in batch.members if m.state == ConsolidationState.LEASED}
    taken_up = {member.id for batch in batches for member in batch.members}
    put_back |= deferred - taken_up
    told = plan_claims(workspace_id=workspace_id, sources=sources)
    if not language_model().is_offline:
        told = _drop_unasked_claims(told, left_out)
        taken_up |= {plan.source.id for plan in told}
    announced = plan_announced(workspace_id=workspace_id, now=now)
    come = {plan.claim.pk for plan in announced}
    told = [plan for plan in told if plan.claim.pk not in come] + announced
    return CyclePlan(
        groups=chosen,
        waiting=waiting,
        singles=batches,
        told=told,
        put_back=put_back - {plan.source.id for plan in told},
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """A claim that gets a job, and whether it may found a belief."""

    source: EpisodeSource
    claim: Claim
    may_found: bool


@dataclass(slots=True, kw_only=True)
class CyclePlan:
    """What the cycle will do: its cluster jobs, those it has no room for, the singles near a belief, and the rest."""

    groups: list[EpisodeCluster] = field(default_factory=list)
    waiting: list[EpisodeCluster] = field(default_factory=list)
    singles: list[UnclusteredBatch] = field(default_factory=list)
    told: list[ClaimPlan] = field(default_factory=list)
    put_back: set[str] = field(default_factory=set)
    partly_asked: set[str] = field(default_factory=set)

    def working(self) -> set[str]:
        """Name the episodes that this cycle's jobs are about."""
        of_clusters = {member.id for group in self.groups for member in group.members}
        of_singles = {member.id for batch in self.singles for member in batch.members}
        return of_clusters | of_singles | {plan.source.id for plan in self.told}


def read_deferred_clusters(*, workspace_id: int, sources: Sequence[EpisodeSource]) -> list[list[EpisodeSource]]:
    """Return the clusters that the last cycle put off, most central first, without those that lost an episode."""
    last = Cycle.objects.for_workspace(workspace_id).filter(finished_at__isnull=False).order_by("-opened_at").first()
    members = ClusterMember.objects.filter(job__cycle=last, job__kind=JobKind.CLUSTER, job__state=JobState.DEFERRED)
    ids: dict[int, list[tuple[str, int]]] = defaultdict(list)
    rows = members.order_by("job__number", "position").values_list("job_id", "episode_id", "claim_id")
    for job_id, episode_id, claim_id in rows:
        ids[job_id].append((episode_id, claim_id or NO_CLAIM))
    here = {source.key: source for source in sources}
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
    least = settings.POLICY.consolidation.cluster_min
    return [group for group in groups if len(group.episodes) >= least]  # one episode may say a thing in two claims


def _large_labels(labels: NDArray[np.int32]) -> list[int]:
    values, counts = np.unique(labels, return_counts=True)
    large: list[int] = values[counts >= settings.POLICY.consolidation.cluster_min].tolist()
    return large


def _make_cluster(sources: Sequence[EpisodeSource], vectors: Vectors, places: NDArray[np.intp]) -> EpisodeCluster:
    return _cut_to_size(first_of_each_episode(sources[place] for place in places[centrality(vectors=vectors[places])]))


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


def _drop_unasked_claims(told: Sequence[ClaimPlan], left_out: Sequence[UnclusteredBatch]) -> list[ClaimPlan]:
    """Drop the claims for which the cycle has no call: what says what a belief says would found it once more (E4)."""
    waiting = {member.claim_id for batch in left_out for member in batch.members}
    return [plan for plan in told if plan.claim.pk not in waiting]


def select_pooled_episodes(*, workspace_id: int, now: datetime) -> QuerySet[Episode]:
    """Select the pool of the last 90 days."""
    since = now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    active = Episode.objects.for_workspace(workspace_id).active()
    return active.filter(state=ConsolidationState.POOLED, pooled_at__gte=since)


def plan_claims(*, workspace_id: int, sources: Sequence[EpisodeSource]) -> list[ClaimPlan]:
    """Choose the claims that get a job, in the order of time: new ones that are told, and what bears on a belief."""
    here = {source.claim_id: source for source in sources if source.claim_id}
    if not here:
        return []
    claims = Claim.objects.filter(pk__in=list(here), is_whole=False)
    known = BeliefIndex(workspace_id=workspace_id, said_from=min(source.occurred_at for source in here.values()))
    heard = _read_judged_claims(workspace_id, [source.id for source in here.values()])
    plans = []
    for claim in claims:
        source = here[claim.pk]
        is_new = source.state != ConsolidationState.POOLED
        may_found = is_new and claim.is_told
        if may_found or any((belief.pk, source.id) not in heard for belief, _ in known.related(claim, source)):
            plans.append(ClaimPlan(source=source, claim=claim, may_found=may_found))
    return sorted(plans, key=lambda plan: canonical_order(plan.source))


def plan_announced(*, workspace_id: int, now: datetime) -> list[ClaimPlan]:
    """Choose the claims that announced what begins on a day that has come: they are heard once more (C1)."""
    claims = (
        select_announced_claims(workspace_id=workspace_id, now=now).select_related("episode").defer("episode__search")
    )
    plans = [
        ClaimPlan(source=source_of_claim(episode=claim.episode, claim=claim), claim=claim, may_found=claim.is_told)
        for claim in claims
    ]
    return sorted(plans, key=lambda plan: canonical_order(plan.source))


def select_announced_claims(*, workspace_id: int | OuterRef, now: datetime) -> ClaimQuerySet:
    """Select the claims whose day has come since they were said, and that no cycle has heard since then (C1)."""
    heard = ClusterJob.objects.filter(
        claim=OuterRef("pk"), kind=JobKind.CLAIM, cycle__now__date__gte=OuterRef("holds_from"), cycle__undone_at=None
    )
    ended = Evidence.objects.filter(
        claim=OuterRef("pk"),
        kind=EvidenceKind.ANNOUNCED,
        verdict=Verdict.CONTRADICTS,
        belief__status=BeliefStatus.ACTIVE,
        belief__valid_until__lte=now,
    )
    borne_out = Evidence.objects.filter(claim=OuterRef("pk"), verdict=Verdict.SUPPORTS)
    claims: ClaimQuerySet = Claim.objects.filter(workspace=workspace_id).active().announced(by=now)
    return claims.filter(Exists(ended) | Q(is_told=True) & ~Exists(borne_out)).exclude(Exists(heard))


def _read_judged_claims(workspace_id: int, episodes: Collection[str]) -> set[tuple[str | None, str]]:
    """Find the pairs of belief and episode on which rules have spoken, or that are evidence."""
    said = JobVerdict.objects.for_workspace(workspace_id).filter(basis=Basis.SLOT, episode__in=episodes)
    said = said.filter(job__cycle__undone_at=None)
    counted = Evidence.objects.for_workspace(workspace_id).filter(episode__in=episodes)
    return {*said.values_list("belief_id", "episode_id"), *counted.values_list("belief_id", "episode_id")}


def store_plan(*, cycle: Cycle, plan: CyclePlan) -> dict[str, int]:
    """Write the jobs and their members, and say of every leased episode where it goes; return the counts."""
    planned: list[tuple[Sequence[EpisodeSource], dict[str, Any]]] = [
        *((group.members, {"kind": JobKind.CLUSTER}) for group in plan.groups),
        *((batch.members, _unclustered_job(batch)) for batch in plan.singles),
        *((group.episodes, _deferred_job(group)) for group in plan.waiting),
    ]
    jobs = [_cluster_job(cycle, number, members, given) for number, (members, given) in enumerate(planned, start=1)]
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
    _set_episode_states(cycle=cycle, plan=plan)
    return {
        "clusters": len(plan.groups),
        "singles": len(plan.singles),
        "claims": len(plan.told),
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


def store_claim_jobs(*, cycle: Cycle, plans: Sequence[ClaimPlan], first_number: int) -> None:
    """Write a job for each claim, ready for the gate: what it might found is the claim itself."""
    model = embedder_of(cycle.workspace_id).name
    keys, vectors = read_claim_vectors(model=model, ids=[plan.claim.pk for plan in plans])
    vector_of = dict(zip(keys, vectors, strict=True))
    jobs = [
        ClusterJob(
            workspace_id=cycle.workspace_id,
            cycle=cycle,
            number=number,
            kind=JobKind.CLAIM,
            state=JobState.CLASSIFIED,
            claim=plan.claim,
            members_hash=hash_members([plan.source.id]),
            **(
                _claim_candidate(plan, vector_of[plan.claim.pk])
                if plan.may_found and plan.claim.pk in vector_of
                else {}
            ),
        )
        for number, plan in enumerate(plans, start=first_number)
    ]
    ClusterJob.objects.bulk_create(jobs, batch_size=500)
    ClusterMember.objects.bulk_create(
        [
            ClusterMember(
                workspace_id=cycle.workspace_id, job=job, episode_id=plan.source.id, claim=plan.claim, position=0
            )
            for job, plan in zip(jobs, plans, strict=True)
        ],
        batch_size=1000,
    )


def _claim_candidate(plan: ClaimPlan, vector: Any) -> dict[str, Any]:
    claim = plan.claim
    written = {
        "statement": claim.sentence,
        "subject": claim.subject,
        "predicate": claim.slot,
        "context": claim.context,
        "timeframe": Timeframe.CURRENT,
    }
    return {
        "candidate": written,
        "candidate_hash": hash_statement(claim.sentence, claim.subject, claim.context),
        "candidate_language": claim.language,
        "candidate_vector": np.asarray(vector, dtype=np.float32).tolist(),
    }
