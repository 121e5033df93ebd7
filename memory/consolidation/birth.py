"""A cluster that says something new founds a belief, or gives its evidence to the twin that came first (B8.4, B8.5)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from django.conf import settings

from memory.consolidation.classify import as_belief
from memory.consolidation.novelty import is_novel
from memory.consolidation.sources import EpisodeSource, read_members
from memory.domain.actor import cycle_actor
from memory.domain.evidence import EvidenceRow, weigh_evidence
from memory.domain.ids import IdKind
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.ledger.equivalents import find_same, find_tombstone, was_erased
from memory.ledger.evidence import confidence_policy, insert_evidence, recompute_beliefs
from memory.ledger.locks import lock_beliefs
from memory.ledger.statements import BeliefSource
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, BeliefAccess, ClusterJob, Cycle, FactType, JobKind, JobVerdict, Scope
from memory.models.identifiers import draw_unused_id
from memory.models.vectors import Vectors, store_belief_vectors

TOO_FEW_SUPPORTS = "too_few_supports"
NOT_CONFIDENT = "not_confident"
SUPPRESSED = "suppressed"

# What became of a job's candidate.
CREATED = "created"
JOINED_TWIN = "joined"

BORN = "a cluster said something new"
JOINED = "a cluster said the same"

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
    job.refusal = _refuse_birth(job=job, members=members)
    return [] if job.refusal else found_candidate(cycle=cycle, job=job, members=members)


def found_candidate(*, cycle: Cycle, job: ClusterJob, members: Sequence[EpisodeSource]) -> list[str]:
    """Make a job's candidate a belief, or let what says the same take its evidence; none where a person put it away."""
    candidate = as_belief(job=job, members=members)
    vector = np.asarray(job.candidate_vector, dtype=np.float32)
    twin = _find_twin(job=job, candidate=candidate, vector=vector)
    if twin is None and was_erased(workspace_id=job.workspace_id, candidate=candidate):
        job.refusal = job.outcome = SUPPRESSED
        return []
    if twin is None and (tombstone := _tombstone_of(job, candidate, vector)):
        job.refusal = job.outcome = SUPPRESSED
        job.suppressed_by_id = tombstone
        return []
    job.outcome = JOINED_TWIN if twin else CREATED
    attribute_changes(actor=cycle_actor(cycle.pk), reason=JOINED if twin else BORN)
    belief = twin or _create(cycle=cycle, job=job, candidate=candidate, members=members, vector=vector)
    job.created_belief, job.joined_belief = (None, belief) if twin else (belief, None)
    take_testimony(cycle=cycle, job=job, belief=belief, is_birth=twin is None)
    return [belief.pk]


def take_testimony(*, cycle: Cycle, job: ClusterJob, belief: Belief, is_birth: bool) -> None:
    """Give a belief what a job's episodes said of the job's own candidate; the caller holds the belief's lock."""
    gained = insert_evidence(job_id=job.pk, founded=belief.pk, is_birth=is_birth, cycle=cycle)
    recompute_beliefs(beliefs=[belief], now=cycle.now, gained=gained)


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


def _tombstone_of(job: ClusterJob, candidate: BeliefSource, vector: Vectors) -> str | None:
    return find_tombstone(workspace_id=job.workspace_id, candidate=candidate, vector=vector)


def _find_twin(*, job: ClusterJob, candidate: BeliefSource, vector: Vectors) -> Belief | None:
    """Find the live belief of the same scope that says the same already, made in this cycle or before, and lock it.

    A near-twin that fails the guard is no twin: the candidate is created beside it.
    """
    alike = (
        Belief.objects.for_workspace(job.workspace_id)
        .active()
        .filter(project=candidate.project_id, user=candidate.user, language=candidate.language)
    )
    found = find_same(workspace_id=job.workspace_id, candidate=candidate, vector=vector, among=alike)
    return lock_beliefs([found])[0] if found else None


def _create(
    *, cycle: Cycle, job: ClusterJob, candidate: BeliefSource, members: Sequence[EpisodeSource], vector: Vectors
) -> Belief:
    belief = conceive(
        belief_id=draw_unused_id(IdKind.BELIEF, Belief),
        cycle=cycle,
        job=job,
        candidate=candidate,
        fact_type=_fact_type(members),
    )
    store_new_belief(belief=belief, vector=vector, model=embedder_of(job.workspace_id).name)
    return belief


def conceive(*, belief_id: str, cycle: Cycle, job: ClusterJob, candidate: BeliefSource, fact_type: FactType) -> Belief:
    """Return the belief that a job founds, not stored yet."""
    written = job.candidate or {}
    return Belief(
        id=belief_id,
        workspace=job.workspace,
        scope=Scope.GLOBAL if candidate.project_id is None else Scope.PROJECT,
        project_id=candidate.project_id,
        user=candidate.user,
        statement=candidate.statement,
        statement_hash=candidate.statement_hash,
        subject=candidate.subject[:200],
        predicate=written["predicate"],
        context=candidate.context,
        timeframe=written["timeframe"],
        fact_type=fact_type,
        language=candidate.language,
        is_told=job.kind == JobKind.CLAIM,
        created_at=cycle.now,
        updated_at=cycle.now,
        statement_changed_at=cycle.now,
        born_in=cycle,
    )


def store_new_belief(*, belief: Belief, vector: Vectors, model: str) -> None:
    """Store a belief with its vector (768) under a model, and the row that counts its recalls."""
    belief.save(force_insert=True)
    store_belief_vectors(workspace_id=belief.workspace_id, model=model, vectors={belief.pk: vector})
    BeliefAccess.objects.create(
        belief=belief, workspace_id=belief.workspace_id, stability=settings.POLICY.retrieval.initial_stability
    )


def _fact_type(members: Sequence[EpisodeSource]) -> FactType:
    category, count = Counter(member.category for member in members).most_common(1)[0]
    return _FACT_TYPES.get(category, FactType.FACTUAL) if 2 * count > len(members) else FactType.FACTUAL
