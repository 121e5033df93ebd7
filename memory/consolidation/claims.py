"""Claims in a cycle: what is told plainly founds a belief or meets one; what else is said counts there (E3, E4).

A claim has a job of its own, which makes no call: slots, values and words decide, at the gate and under its lock, since
what one claim founds the next may bear out or end.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from memory.consolidation.birth import found_candidate
from memory.consolidation.related import KnownBeliefs, is_of_old
from memory.consolidation.sources import EpisodeSource, canonical_key, hash_members, read_members, source_of
from memory.consolidation.testimony import PAST, find_supported_later, give_evidence
from memory.domain.evidence import Verdict, find_change_point
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, JobState, Reason
from memory.language.clauses import Mode
from memory.language.relations import ClaimRelation
from memory.language.sentences import list_words
from memory.language.subjects import Timeframe
from memory.ledger.beliefs import hash_statement
from memory.ledger.confidence import confidence_policy, read_evidence_rows
from memory.ledger.gates import challenge_belief, is_challenged
from memory.ledger.transactions import Author, lock_beliefs
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.models import (
    Basis,
    Belief,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    Evidence,
    EvidenceKind,
    JobKind,
    JobVerdict,
)
from memory.models.episodes import ClaimQuerySet
from memory.models.fields import insert_new
from memory.search.vectors import read_claim_vectors

UNASKED = "not_judged_yet"

AGREE = 2  # origins that must name another value before it takes the old one's place unannounced


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """A claim that gets a job, and whether it may found a belief."""

    source: EpisodeSource
    claim: Claim
    may_found: bool


def plan_claims(*, workspace_id: int, sources: Sequence[EpisodeSource]) -> list[ClaimPlan]:
    """Choose the claims that get a job, in the order of time: new ones that are told, and what bears on a belief."""
    here = {source.claim_id: source for source in sources if source.claim_id}
    if not here:
        return []
    claims = Claim.objects.filter(pk__in=list(here), is_whole=False)
    known = KnownBeliefs(workspace_id=workspace_id, said_from=min(source.occurred_at for source in here.values()))
    heard = _heard_pairs(workspace_id, [source.id for source in here.values()])
    plans = []
    for claim in claims:
        source = here[claim.pk]
        is_new = source.state != ConsolidationState.POOLED
        may_found = is_new and claim.is_told
        if may_found or any((belief.pk, source.id) not in heard for belief, _ in known.related(claim, source)):
            plans.append(ClaimPlan(source=source, claim=claim, may_found=may_found))
    return sorted(plans, key=lambda plan: canonical_key(plan.source))


def plan_announced(*, workspace_id: int, now: datetime) -> list[ClaimPlan]:
    """Choose the claims that announced what begins on a day that has come: they are heard once more (C1)."""
    claims = announced_claims(workspace_id=workspace_id, now=now).select_related("episode").defer("episode__search")
    plans = [
        ClaimPlan(source=source_of(episode=claim.episode, claim=claim), claim=claim, may_found=claim.is_told)
        for claim in claims
    ]
    return sorted(plans, key=lambda plan: canonical_key(plan.source))


def announced_claims(*, workspace_id: int | OuterRef, now: datetime) -> ClaimQuerySet:
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


def _heard_pairs(workspace_id: int, episodes: Collection[str]) -> set[tuple[str | None, str]]:
    """Find the pairs of belief and episode on which rules have spoken, or that are evidence."""
    said = JobVerdict.objects.for_workspace(workspace_id).filter(basis=Basis.SLOT, episode__in=episodes)
    said = said.filter(job__cycle__undone_at=None)
    counted = Evidence.objects.for_workspace(workspace_id).filter(episode__in=episodes)
    return {*said.values_list("belief_id", "episode_id"), *counted.values_list("belief_id", "episode_id")}


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
            **(_candidate(plan, vector_of[plan.claim.pk]) if plan.may_found and plan.claim.pk in vector_of else {}),
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


def _candidate(plan: ClaimPlan, vector: Any) -> dict[str, Any]:
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


def hear_claim(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Let a claim meet what is believed by now: give its evidence, challenge what it ends, found what is new.

    Return the beliefs that it touched. The caller holds the workspace's lock, and saves the job.
    """
    members, _ = read_members(job=job, model=embedder_of(job.workspace_id).name)
    claim = job.claim
    if claim is None or not members:
        job.refusal = "claim_gone"
        return []
    [source] = members
    known = KnownBeliefs(workspace_id=job.workspace_id, user=source.user, said_from=source.occurred_at)
    found = list(known.related(claim, source))
    found += _ended_by_then(claim, cycle, besides={belief.pk for belief, _ in found})
    against = [belief.pk for belief, relation in found if relation.verdict is Verdict.CONTRADICTS]
    later = find_supported_later(beliefs=against, than=told_at(claim=claim))
    judged = [(belief, _unless_late(belief, relation, later)) for belief, relation in found]
    _store_verdicts(job, source, judged)
    says_the_same = _store_heard(job, source, claim)
    touched = give_evidence(cycle=cycle, job=job)
    alike = [belief.pk for belief, relation in judged if relation.verdict is Verdict.SUPPORTS]
    supported = says_the_same or _is_evidence_for_something(source, claim, alike)
    disputed = [belief for belief, relation in judged if is_disputed(belief, relation)]
    overturned = [belief for belief in disputed if is_overturned(belief=belief, claim=claim)]
    JobVerdict.objects.filter(job=job, belief__in=overturned).update(ends_belief=True)
    touched += end_beliefs(cycle=cycle, job=job)  # evidence or not: what changed something is replayed
    if job.candidate_vector is None or supported or len(overturned) < len(disputed) or _is_ahead(claim, cycle):
        return touched
    if later or is_of_old(judged):  # what was so before something else was founds nothing that holds now (C2)
        job.refusal = PAST
        return touched
    if _is_unasked(cycle, claim):
        job.refusal = UNASKED
        return touched
    insert_new(model=JobVerdict, rows=[_verdict(job, source, None, Verdict.SUPPORTS, "", ends=False)])
    return [*touched, *found_candidate(cycle=cycle, job=job, members=members)]


def _ended_by_then(claim: Claim, cycle: Cycle, *, besides: Collection[str]) -> list[tuple[Belief, ClaimRelation]]:
    """Return what a claim said would end by now, as a model alone may have seen (C1)."""
    rows = Evidence.objects.filter(
        claim=claim,
        kind=EvidenceKind.ANNOUNCED,
        verdict=Verdict.CONTRADICTS,
        belief__status=BeliefStatus.ACTIVE,
        belief__valid_until__lte=cycle.now,
    ).exclude(belief__in=besides)
    return [
        (row.belief, ClaimRelation(verdict=Verdict.CONTRADICTS, reason=row.reason, ends=True))
        for row in rows.select_related("belief")
    ]


def is_disputed(belief: Belief, relation: ClaimRelation) -> bool:
    """Tell whether a claim names another value of what is believed, and announces no change (E4)."""
    is_unannounced = relation.verdict is Verdict.CONTRADICTS and not relation.ends
    return is_unannounced and belief.status == BeliefStatus.ACTIVE


def is_overturned(*, belief: Belief, claim: Claim) -> bool:
    """Tell whether enough speaks for what a claim says to take a belief's place unannounced (E4).

    Another origin that contradicts the belief and names no other value than the claim, or a score of change.
    """
    rows = [row for row in read_evidence_rows(belief_id=belief.pk) if row.base_weight > 0]
    against = {row.episode_id: row.origin for row in rows if row.verdict is Verdict.CONTRADICTS}
    said = Evidence.objects.filter(belief=belief, episode__in=list(against))
    values = dict(said.values_list("episode_id", "claim__value"))
    if len({origin for key, origin in against.items() if _may_be_one(claim.value, values.get(key) or "")}) >= AGREE:
        return True
    change = find_change_point(rows=rows, policy=confidence_policy(belief.workspace))
    return change is not None and change.score >= settings.POLICY.gate.overturn_score


def _may_be_one(value: str, other: str) -> bool:
    """Tell whether two values share a word, or one is not known."""
    mine, theirs = set(list_words(value.lower())), set(list_words(other.lower()))
    return not mine or not theirs or bool(mine & theirs)


def _is_ahead(claim: Claim, cycle: Cycle) -> bool:
    """Tell whether what a claim announces begins later: its belief waits for the day (C1)."""
    return claim.mode == Mode.CHANGE and claim.begins_by(cycle.now) > cycle.now


def end_beliefs(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Challenge the active beliefs of which a job's claim says that they hold no longer; return them.

    Those of another project or user than the claim's may hold there: it counts against them, and no more.
    """
    rows = JobVerdict.objects.filter(job=job, ends_belief=True, verdict=Verdict.CONTRADICTS)
    claim = job.claim
    if claim is None:
        return []
    reason = Reason.ANNOUNCED if claim.mode == Mode.CHANGE else Reason.DISPUTED
    author = Author.of_cycle(cycle, reason=reason)
    here = {"belief__project": claim.episode.project_id, "belief__user": claim.episode.user}
    beliefs = lock_beliefs(rows.filter(**here).values("belief"))
    challenged = [
        belief.pk
        for belief in beliefs
        if challenge_belief(belief=belief, reason=reason, at=claim.begins_by(cycle.now), author=author)
    ]
    rows.filter(belief__in=[belief.pk for belief in beliefs if is_challenged(belief)]).update(has_challenged=True)
    return challenged


def told_at(*, claim: Claim) -> datetime:
    """Return when what a claim says was so at the latest: when it was said, or the day ahead that it names."""
    said_at: datetime = claim.episode.occurred_at
    return max(said_at, claim.begins_at)


def _unless_late(belief: Belief, relation: ClaimRelation, later: Collection[str]) -> ClaimRelation:
    if relation.verdict is Verdict.CONTRADICTS and belief.pk in later:
        return ClaimRelation(verdict=Verdict.IRRELEVANT, reason="It was said before what the belief rests on.")
    return relation


def _store_verdicts(job: ClusterJob, source: EpisodeSource, judged: Sequence[tuple[Belief, ClaimRelation]]) -> None:
    rows = [
        _verdict(job, source, belief, relation.verdict, relation.reason, ends=relation.ends)
        for belief, relation in judged
    ]
    insert_new(model=JobVerdict, rows=rows)


def _store_heard(job: ClusterJob, source: EpisodeSource, claim: Claim) -> bool:
    """Let what a model said of the claim and those told before it count for what came of those in this cycle.

    Tell whether it says the same as one of them; it counts where that one is evidence, be it of an older belief.
    """
    took_part = ClusterMember.objects.filter(job=OuterRef("job"), episode=source.id, claim=claim)
    said = JobVerdict.objects.filter(Exists(took_part), job__cycle=job.cycle_id, episode=source.id)
    rows = []
    for heard in said.exclude(claim=None).exclude(verdict=Verdict.IRRELEVANT):
        supports = heard.verdict == Verdict.SUPPORTS
        came = Evidence.objects.filter(claim=heard.claim_id, cycle=job.cycle_id, verdict=Verdict.SUPPORTS)
        came = came.filter(belief__status=BeliefStatus.ACTIVE, **({} if supports else {"is_founding": True}))
        rows += [
            {**{name: getattr(heard, name) for name in _HEARD}, "job_id": job.pk, "belief_id": key, "claim_id": None}
            for key in came.values_list("belief_id", flat=True)
        ]
    insert_new(model=JobVerdict, rows=rows)
    return any(row["verdict"] == Verdict.SUPPORTS for row in rows)


_HEARD = (
    "workspace_id", "episode_id", "statement_hash", "verdict", "basis", "reason", "similarity", "model",
    "prompt_version", "call_id",
)  # fmt: skip


def _verdict(
    job: ClusterJob, source: EpisodeSource, belief: Belief | None, verdict: Verdict, reason: str, *, ends: bool
) -> dict[str, Any]:
    return {
        "workspace_id": job.workspace_id,
        "job_id": job.pk,
        "belief_id": belief.pk if belief else None,
        "episode_id": source.id,
        "statement_hash": belief.statement_hash if belief else job.candidate_hash,
        "verdict": verdict,
        "basis": Basis.SLOT,
        "reason": reason,
        "ends_belief": ends,
        "model": "",
        "prompt_version": "",
    }


def _is_evidence_for_something(source: EpisodeSource, claim: Claim, alike: Collection[str]) -> bool:
    """Tell whether the claim bears out a live belief, by these rules or by any other road.

    What another claim of its episode bears out already, it bears out too, though an episode is evidence but once.
    """
    rows = Evidence.objects.filter(Q(claim=claim) | Q(belief__in=alike), episode=source.id, verdict=Verdict.SUPPORTS)
    return rows.filter(belief__status__in=LIVE).exists()


def _is_unasked(cycle: Cycle, claim: Claim) -> bool:
    """Tell whether a model was to judge the claim in this cycle and could not: its episode waits, and so does it."""
    if language_model().is_offline:
        return False
    stopped = (JobState.FAILED, JobState.DEFERRED)
    memberships = ClusterMember.objects.filter(claim=claim, job__cycle=cycle, job__kind=JobKind.SINGLES)
    return memberships.filter(job__state__in=stopped).exists()
