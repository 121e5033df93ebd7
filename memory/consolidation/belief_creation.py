"""Turn the verdicts of a judged job into evidence, and into a belief where nothing says it yet (B8.4, B8.5, E3, E4).

`record_job_evidence` serves existing beliefs, `create_from_cluster` makes a cluster's belief, and `apply_claim` lets
a claim bear out, challenge or make one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, Subquery

from memory.consolidation.judge import candidate_as_belief, is_novel
from memory.consolidation.related_beliefs import BeliefIndex, concerns_closed_belief
from memory.consolidation.sources import EpisodeSource, read_members
from memory.domain.evidence import EvidenceRow, Verdict, find_change_point, weigh_evidence
from memory.domain.lifecycle import LIVE, BeliefStatus, JobState, Reason
from memory.language.clauses import Mode
from memory.language.relations import ClaimRelation
from memory.language.sentences import list_words
from memory.ledger.beliefs import BeliefDraft, BeliefSource, CreationOutcome, StatementVector, create_belief
from memory.ledger.confidence import WITHDRAWN_STATUSES, confidence_policy, read_evidence_rows
from memory.ledger.evidence import EvidenceInput, record_evidence, supporting_rows
from memory.ledger.gates import challenge_belief, is_challenged
from memory.ledger.transactions import Author, LineageInput, lock_beliefs
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
    FactType,
    JobKind,
    JobVerdict,
    LineageKind,
)
from memory.models.fields import insert_new

NEW_EVIDENCE = "new evidence"
HELD_BEFORE = "held_before"  # why what was said founds nothing: it says nothing of now (C2)
NOT_JUDGED_YET = "not_judged_yet"
AGREEING_ORIGINS = 2  # origins that must name another value before it takes the old one's place unannounced
TOO_FEW_SUPPORTS = "too_few_supports"
NOT_CONFIDENT = "not_confident"
CREATION_REASON = "a cluster or a claim said it"


def record_job_evidence(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Turn a job's verdicts on existing beliefs into evidence; return the beliefs that gained some, echoes too."""
    said = {key: items for key, items in read_job_evidence(job=job).items() if key is not None}
    beliefs = lock_beliefs(said)
    known = {belief.pk for belief in beliefs}
    gained = record_evidence(
        said={key: items for key, items in said.items() if key in known},
        beliefs=beliefs,
        author=Author.of_cycle(cycle, reason=NEW_EVIDENCE),
    )
    if gained:
        job.outcome = "matched"
    return sorted(gained)


def read_job_evidence(*, job: ClusterJob) -> dict[str | None, list[EvidenceInput]]:
    """Read what a job's verdicts say of each belief, and under None of its own candidate, as evidence."""
    took_part = ClusterMember.objects.filter(job=job, episode=OuterRef("episode")).values("claim")[:1]
    judged = job.verdicts.filter(claim=None).exclude(verdict=Verdict.IRRELEVANT)
    announces = job.claim is not None and job.claim.mode == Mode.CHANGE
    said: dict[str | None, list[EvidenceInput]] = defaultdict(list)
    for row in judged.annotate(member_claim=Subquery(took_part)).order_by("belief_id", "episode_id"):
        said[row.belief_id].append(
            EvidenceInput(
                episode_id=row.episode_id,
                verdict=Verdict(row.verdict),
                kind=_evidence_kind(row) if announces else EvidenceKind.ORDINARY,
                basis=Basis(row.basis),
                reason=row.reason,
                call_id=row.call_id,
                claim_id=row.member_claim,
            )
        )
    return dict(said)


def _evidence_kind(row: JobVerdict) -> EvidenceKind:
    """Tell of a claim that announces a change what announces it: that a belief ends, or what the claim founds."""
    is_announced = row.ends_belief or row.belief_id is None
    return EvidenceKind.ANNOUNCED if is_announced else EvidenceKind.ORDINARY


def create_from_cluster(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Found a job's belief if it is new and borne out; return the belief that gained the evidence, if any.

    The job takes the outcome; the caller saves it and holds the workspace's lock.
    """
    if job.kind != JobKind.CLUSTER or job.refusal or job.candidate_vector is None or not is_novel(job_id=job.pk):
        return []
    members, _ = read_members(job=job, model=embedder_of(job.workspace_id).name)
    job.refusal = _refuse_unsupported(job=job, members=members) or _refuse_outdated(job, members)
    return [] if job.refusal else create_or_join_belief(cycle=cycle, job=job, members=members)


def create_or_join_belief(*, cycle: Cycle, job: ClusterJob, members: Sequence[EpisodeSource]) -> list[str]:
    """Make a job's candidate a belief, or let what says the same take its evidence; none where a person put it away."""
    said = read_job_evidence(job=job).get(None, [])
    for_it = {item.episode_id for item in said if item.verdict is Verdict.SUPPORTS}
    founders = [member for member in members if member.id in for_it] or members  # what they agree on is whose it is
    candidate = candidate_as_belief(job=job, members=founders)
    made = create_belief(
        draft=draft_candidate(job=job, candidate=candidate, fact_type=_common_fact_type(founders)),
        vector=StatementVector(
            model=embedder_of(job.workspace_id).name, numbers=np.asarray(job.candidate_vector, dtype=np.float32)
        ),
        said=said,
        author=Author.of_cycle(cycle, reason=CREATION_REASON),
        descent=find_challenged_parents(job=job),
    )
    job.outcome = made.outcome
    if made.belief is None:
        job.refusal = made.outcome
        if made.tombstone:
            job.suppressed_by_id = made.tombstone
        return []
    is_new = made.outcome is CreationOutcome.CREATED
    job.created_belief, job.joined_belief = (made.belief, None) if is_new else (None, made.belief)
    return [made.belief.pk]


def _refuse_unsupported(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> str:
    """Return why the candidate's own verdicts do not bear it out, or nothing."""
    verdicts = dict(JobVerdict.objects.filter(job=job, belief=None).values_list("episode_id", "verdict"))
    rows = [
        EvidenceRow(
            episode_id=member.id,
            verdict=Verdict(verdicts[member.id]),
            base_weight=settings.POLICY.confidence.ordinary_weight,
            origin=member.origin,
            occurred_at=member.occurred_at,
        )
        for member in members
        if verdicts.get(member.id, Verdict.IRRELEVANT) != Verdict.IRRELEVANT
    ]
    weighed = weigh_evidence(rows=rows, policy=confidence_policy(job.workspace))
    if weighed.rows.get(Verdict.SUPPORTS, 0) < settings.POLICY.consolidation.birth_supports:
        return TOO_FEW_SUPPORTS
    return "" if weighed.posterior.mean > settings.POLICY.consolidation.birth_confidence else NOT_CONFIDENT


def _refuse_outdated(job: ClusterJob, members: Sequence[EpisodeSource]) -> str:
    """Return why most of a cluster says nothing of now, else nothing (C2).

    It is about what was closed since it was said, or contradicts what was borne out since.
    """
    claims = Claim.objects.select_related("episode").in_bulk([member.claim_id for member in members])
    if not claims:
        return ""
    oldest = min(member.occurred_at for member in members)
    known = BeliefIndex(workspace_id=job.workspace_id, user=members[0].user, said_from=oldest)
    against, of_old = Counter[str](), 0
    for member in members:
        if claim := claims.get(member.claim_id):
            found = list(known.related(claim, member))
            against.update(belief.pk for belief, relation in found if relation.verdict is Verdict.CONTRADICTS)
            of_old += concerns_closed_belief(found)
    if 2 * of_old > len(members):
        return HELD_BEFORE
    rivals = [key for key, count in against.items() if 2 * count > len(members)]
    newest = max(member.occurred_at for member in members)
    return HELD_BEFORE if find_supported_later(beliefs=rivals, than=newest) else ""


def find_challenged_parents(*, job: ClusterJob) -> LineageInput | None:
    """Return which beliefs a claim challenges with what it founds, None for none."""
    parents = lock_beliefs(JobVerdict.objects.filter(job=job, has_challenged=True).values("belief"))
    if not parents:
        return None
    announces = job.claim is not None and job.claim.mode == Mode.CHANGE
    reason = Reason.ANNOUNCED if announces else Reason.DISPUTED
    return LineageInput(parents=parents, kind=LineageKind.SUPERSESSION, reason=reason)


def draft_candidate(*, job: ClusterJob, candidate: BeliefSource, fact_type: FactType) -> BeliefDraft:
    """Return what a job founds."""
    written = job.candidate or {}
    return BeliefDraft(
        workspace_id=job.workspace_id,
        statement=candidate.statement,
        subject=candidate.subject,
        predicate=written["predicate"],
        context=candidate.context,
        timeframe=written["timeframe"],
        language=candidate.language,
        project_id=candidate.project_id,
        user=candidate.user,
        fact_type=fact_type,
        is_told=job.kind == JobKind.CLAIM,
        valid_from=_valid_from(job),
    )


def _valid_from(job: ClusterJob) -> datetime | None:
    """Return since when what an announced change founds holds, None for all else."""
    claim = job.claim
    if claim is None or claim.mode != Mode.CHANGE or find_challenged_parents(job=job) is None:
        return None
    return claim.begins_at


def _common_fact_type(members: Sequence[EpisodeSource]) -> FactType:
    category, count = Counter(member.category for member in members).most_common(1)[0]
    return _FACT_TYPES.get(category, FactType.FACTUAL) if 2 * count > len(members) else FactType.FACTUAL


def apply_claim(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Let a claim meet what is believed by now: give its evidence, challenge what it ends, found what is new.

    Return the beliefs that it touched. The caller holds the workspace's lock, and saves the job.
    """
    members, _ = read_members(job=job, model=embedder_of(job.workspace_id).name)
    claim = job.claim
    if claim is None or not members:
        job.refusal = "claim_gone"
        return []
    [source] = members
    known = BeliefIndex(workspace_id=job.workspace_id, user=source.user, said_from=source.occurred_at)
    found = list(known.related(claim, source))
    found += _find_announced_ends(claim, cycle, besides={belief.pk for belief, _ in found})
    against = [belief.pk for belief, relation in found if relation.verdict is Verdict.CONTRADICTS]
    later = find_supported_later(beliefs=against, than=claim_true_at(claim=claim))
    late = later - (_find_supported_by_rest(claim, source, known) if later else set())
    judged = [(belief, _ignore_if_late(belief, relation, late)) for belief, relation in found]
    _store_claim_verdicts(job, source, judged)
    says_the_same = _copy_verdicts_on_claims(job, source, claim)
    touched = record_job_evidence(cycle=cycle, job=job)
    alike = [belief.pk for belief, relation in judged if relation.verdict is Verdict.SUPPORTS]
    supported = says_the_same or _is_live_evidence(source, claim, alike)
    disputed = [belief for belief, relation in judged if is_disputed(belief, relation)]
    overturned = [belief for belief in disputed if is_overturned(belief=belief, claim=claim)]
    JobVerdict.objects.filter(job=job, belief__in=overturned).update(ends_belief=True)
    touched += challenge_ended_beliefs(cycle=cycle, job=job)  # evidence or not: what changed something is replayed
    if job.candidate_vector is None or supported or len(overturned) < len(disputed) or _begins_later(claim, cycle):
        return touched
    if later or concerns_closed_belief(
        judged
    ):  # what was so before something else was founds nothing that holds now (C2)
        job.refusal = HELD_BEFORE
        return touched
    if _was_left_unjudged(cycle, claim):
        job.refusal = NOT_JUDGED_YET
        return touched
    insert_new(model=JobVerdict, rows=[_claim_verdict(job, source, None, Verdict.SUPPORTS, "", ends=False)])
    return [*touched, *create_or_join_belief(cycle=cycle, job=job, members=members)]


def challenge_ended_beliefs(*, cycle: Cycle, job: ClusterJob) -> list[str]:
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
    if (
        len({origin for key, origin in against.items() if _may_be_one(claim.value, values.get(key) or "")})
        >= AGREEING_ORIGINS
    ):
        return True
    change = find_change_point(rows=rows, policy=confidence_policy(belief.workspace))
    return change is not None and change.score >= settings.POLICY.gate.overturn_score


def claim_true_at(*, claim: Claim) -> datetime:
    """Return when what a claim says was so at the latest: when it was said, or the day ahead that it names."""
    said_at: datetime = claim.episode.occurred_at
    return max(said_at, claim.begins_at)


def find_supported_later(*, beliefs: Collection[str], than: datetime) -> set[str]:
    """Find the beliefs borne out by something said after a time: what was so before says nothing against them."""
    rows = supporting_rows(rows=Evidence.objects.filter(belief__in=beliefs)).exclude(
        episode__status__in=WITHDRAWN_STATUSES
    )
    return set(rows.filter(episode__occurred_at__gt=than).values_list("belief", flat=True))


def _find_announced_ends(claim: Claim, cycle: Cycle, *, besides: Collection[str]) -> list[tuple[Belief, ClaimRelation]]:
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


def _may_be_one(value: str, other: str) -> bool:
    """Tell whether two values share a word, or one is not known."""
    mine, theirs = set(list_words(value.lower())), set(list_words(other.lower()))
    return not mine or not theirs or bool(mine & theirs)


def _begins_later(claim: Claim, cycle: Cycle) -> bool:
    """Tell whether what a claim announces begins later: its belief waits for the day (C1)."""
    return claim.mode == Mode.CHANGE and claim.begins_by(cycle.now) > cycle.now


def _ignore_if_late(belief: Belief, relation: ClaimRelation, later: Collection[str]) -> ClaimRelation:
    if relation.verdict is Verdict.CONTRADICTS and belief.pk in later:
        return ClaimRelation(verdict=Verdict.IRRELEVANT, reason="It was said before what the belief rests on.")
    return relation


def _find_supported_by_rest(claim: Claim, source: EpisodeSource, known: BeliefIndex) -> set[str]:
    """Find the beliefs that other claims of a claim's episode bear out: a text that says both stays PARTIAL (E1)."""
    rest = Claim.objects.select_related("episode").filter(episode=source.id).exclude(pk=claim.pk)
    found = (pair for other in rest for pair in known.related(other, source))
    return {belief.pk for belief, relation in found if relation.verdict is Verdict.SUPPORTS}


def _store_claim_verdicts(
    job: ClusterJob, source: EpisodeSource, judged: Sequence[tuple[Belief, ClaimRelation]]
) -> None:
    rows = [
        _claim_verdict(job, source, belief, relation.verdict, relation.reason, ends=relation.ends)
        for belief, relation in judged
    ]
    insert_new(model=JobVerdict, rows=rows)


def _copy_verdicts_on_claims(job: ClusterJob, source: EpisodeSource, claim: Claim) -> bool:
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
            {
                **{name: getattr(heard, name) for name in _COPIED_COLUMNS},
                "job_id": job.pk,
                "belief_id": key,
                "claim_id": None,
            }
            for key in came.values_list("belief_id", flat=True)
        ]
    insert_new(model=JobVerdict, rows=rows)
    return any(row["verdict"] == Verdict.SUPPORTS for row in rows)


_COPIED_COLUMNS = (
    "workspace_id", "episode_id", "statement_hash", "verdict", "basis", "reason", "similarity", "model",
    "prompt_version", "call_id",
)  # fmt: skip


def _claim_verdict(
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


def _is_live_evidence(source: EpisodeSource, claim: Claim, alike: Collection[str]) -> bool:
    """Tell whether the claim bears out a live belief, by these rules or by any other road.

    What another claim of its episode bears out already, it bears out too, though an episode is evidence but once.
    """
    rows = Evidence.objects.filter(Q(claim=claim) | Q(belief__in=alike), episode=source.id, verdict=Verdict.SUPPORTS)
    return rows.filter(belief__status__in=LIVE).exists()


def _was_left_unjudged(cycle: Cycle, claim: Claim) -> bool:
    """Tell whether a model was to judge the claim in this cycle and could not: its episode waits, and so does it."""
    if language_model().is_offline:
        return False
    stopped = (JobState.FAILED, JobState.DEFERRED)
    memberships = ClusterMember.objects.filter(claim=claim, job__cycle=cycle, job__kind=JobKind.SINGLES)
    return memberships.filter(job__state__in=stopped).exists()


# What most of a belief's episodes were filed under says what kind of fact it is.
_FACT_TYPES = {
    "preference": FactType.PREFERENCE,
    "skill": FactType.PROCEDURAL,
    "principle": FactType.PROCEDURAL,
    "decision": FactType.ARCHITECTURAL,
}
