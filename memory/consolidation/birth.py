"""A cluster that says something new founds a belief, or gives its evidence to the twin that came first (B8.4, B8.5)."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from django.conf import settings

from memory.consolidation.classify import as_belief
from memory.consolidation.novelty import is_novel
from memory.consolidation.related import KnownBeliefs, is_of_old
from memory.consolidation.sources import EpisodeSource, read_members
from memory.consolidation.testimony import PAST, find_supported_later, read_job_evidence
from memory.domain.evidence import EvidenceRow, Verdict, weigh_evidence
from memory.domain.lifecycle import Reason
from memory.language.clauses import Mode
from memory.ledger.beliefs import BeliefDraft, BeliefSource, CreationOutcome, StatementVector, create_belief
from memory.ledger.confidence import confidence_policy
from memory.ledger.transactions import Author, LineageInput, lock_beliefs
from memory.llm.embeddings import embedder_of
from memory.models import Claim, ClusterJob, Cycle, FactType, JobKind, JobVerdict, LineageKind

TOO_FEW_SUPPORTS = "too_few_supports"
NOT_CONFIDENT = "not_confident"
FOUNDED = "a cluster or a claim said it"

# What most of a belief's episodes were filed under says what kind of fact it is.
_FACT_TYPES = {
    "preference": FactType.PREFERENCE,
    "skill": FactType.PROCEDURAL,
    "principle": FactType.PROCEDURAL,
    "decision": FactType.ARCHITECTURAL,
}


def give_birth(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Found a job's belief if it is new and borne out; return the belief that gained the evidence, if any.

    The job takes the outcome; the caller saves it and holds the workspace's lock.
    """
    if job.kind != JobKind.CLUSTER or job.refusal or job.candidate_vector is None or not is_novel(job_id=job.pk):
        return []
    members, _ = read_members(job=job, model=embedder_of(job.workspace_id).name)
    job.refusal = _refuse_birth(job=job, members=members) or _refuse_past(job, members)
    return [] if job.refusal else found_candidate(cycle=cycle, job=job, members=members)


def found_candidate(*, cycle: Cycle, job: ClusterJob, members: Sequence[EpisodeSource]) -> list[str]:
    """Make a job's candidate a belief, or let what says the same take its evidence; none where a person put it away."""
    said = read_job_evidence(job=job).get(None, [])
    for_it = {item.episode_id for item in said if item.verdict is Verdict.SUPPORTS}
    founders = [member for member in members if member.id in for_it] or members  # what they agree on is whose it is
    candidate = as_belief(job=job, members=founders)
    made = create_belief(
        draft=draft_of(job=job, candidate=candidate, fact_type=_fact_type(founders)),
        vector=StatementVector(
            model=embedder_of(job.workspace_id).name, numbers=np.asarray(job.candidate_vector, dtype=np.float32)
        ),
        said=said,
        author=Author.of_cycle(cycle, reason=FOUNDED),
        descent=descent_of(job=job),
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


def _refuse_past(job: ClusterJob, members: Sequence[EpisodeSource]) -> str:
    """Return why most of a cluster says nothing of now, else nothing (C2).

    It is about what was closed since it was said, or contradicts what was borne out since.
    """
    claims = Claim.objects.select_related("episode").in_bulk([member.claim_id for member in members])
    if not claims:
        return ""
    oldest = min(member.occurred_at for member in members)
    known = KnownBeliefs(workspace_id=job.workspace_id, user=members[0].user, said_from=oldest)
    against, of_old = Counter[str](), 0
    for member in members:
        if claim := claims.get(member.claim_id):
            found = list(known.related(claim, member))
            against.update(belief.pk for belief, relation in found if relation.verdict is Verdict.CONTRADICTS)
            of_old += is_of_old(found)
    if 2 * of_old > len(members):
        return PAST
    rivals = [key for key, count in against.items() if 2 * count > len(members)]
    newest = max(member.occurred_at for member in members)
    return PAST if find_supported_later(beliefs=rivals, than=newest) else ""


def descent_of(*, job: ClusterJob) -> LineageInput | None:
    """Return which beliefs a claim challenges with what it founds, None for none."""
    parents = lock_beliefs(JobVerdict.objects.filter(job=job, has_challenged=True).values("belief"))
    if not parents:
        return None
    announces = job.claim is not None and job.claim.mode == Mode.CHANGE
    reason = Reason.ANNOUNCED if announces else Reason.DISPUTED
    return LineageInput(parents=parents, kind=LineageKind.SUPERSESSION, reason=reason)


def _refuse_birth(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> str:
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


def draft_of(*, job: ClusterJob, candidate: BeliefSource, fact_type: FactType) -> BeliefDraft:
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
        valid_from=_begin_of(job),
    )


def _begin_of(job: ClusterJob) -> datetime | None:
    """Return since when what an announced change founds holds, None for all else."""
    claim = job.claim
    if claim is None or claim.mode != Mode.CHANGE or descent_of(job=job) is None:
        return None
    return claim.begins_at


def _fact_type(members: Sequence[EpisodeSource]) -> FactType:
    category, count = Counter(member.category for member in members).most_common(1)[0]
    return _FACT_TYPES.get(category, FactType.FACTUAL) if 2 * count > len(members) else FactType.FACTUAL
