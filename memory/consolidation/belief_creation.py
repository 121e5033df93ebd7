"""Turn the verdicts of a judged job into evidence, and into a belief where nothing says it yet (B8.4, B8.5).

`record_job_evidence` serves existing beliefs, `create_from_cluster` makes a cluster's belief. What a reading said is
kept as jobs, too, and `read_descent` and `draft_candidate` tell what those founded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from django.conf import settings
from django.db.models import OuterRef, Subquery

from memory.consolidation.judge import candidate_as_belief, is_novel
from memory.consolidation.sources import EpisodeSource, read_members
from memory.domain.evidence import EvidenceRow, Verdict, weigh_evidence
from memory.ledger.beliefs import BeliefDraft, BeliefSource, CreationOutcome, StatementVector, create_belief
from memory.ledger.confidence import confidence_policy
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.transactions import Author, LineageInput, lock_beliefs
from memory.llm.embeddings import embedder_of
from memory.models import (
    Basis,
    ClusterJob,
    ClusterMember,
    Cycle,
    EvidenceKind,
    FactType,
    JobKind,
    JobVerdict,
    LineageKind,
)
from memory.reading.apply import kind_of_end

NEW_EVIDENCE = "new evidence"
TOO_FEW_SUPPORTS = "too_few_supports"
NOT_CONFIDENT = "not_confident"
CREATION_REASON = "a cluster or a claim said it"


def record_job_evidence(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Turn a job's verdicts on existing beliefs into evidence; return the beliefs that gained some, echoes too."""
    if job.kind == JobKind.READING:
        return _record_in_order(cycle=cycle, job=job)
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


def _record_in_order(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Record what a reading said word by word, as it was applied: one belief may end before another one is ended."""
    author = Author.of_cycle(cycle, reason=NEW_EVIDENCE)
    gained: set[str] = set()
    for row in job.verdicts.exclude(belief=None).select_related("belief", "episode").order_by("pk"):
        word = EvidenceInput(
            episode_id=row.episode_id,
            verdict=Verdict(row.verdict),
            kind=_evidence_kind(row, is_ahead=False),
            basis=Basis(row.basis),
            reason=row.reason,
            call_id=row.call_id,
            valid_at=row.valid_at,
        )
        beliefs = lock_beliefs([row.belief_id])
        if beliefs:
            gained |= record_evidence(said={row.belief_id: [word]}, beliefs=beliefs, author=author).keys()
    return sorted(gained)


def read_job_evidence(*, job: ClusterJob) -> dict[str | None, list[EvidenceInput]]:
    """Read what a job's verdicts say of each belief, and under None of its own candidate, as evidence."""
    took_part = ClusterMember.objects.filter(job=job, episode=OuterRef("episode")).values("claim")[:1]
    judged = job.verdicts.filter(claim=None).exclude(verdict=Verdict.IRRELEVANT).select_related("episode")
    begins = _moment(job, "valid_from")
    said: dict[str | None, list[EvidenceInput]] = defaultdict(list)
    for row in judged.annotate(member_claim=Subquery(took_part)).order_by("belief_id", "episode_id"):
        is_ahead = row.belief_id is None and begins is not None and begins > row.episode.occurred_at
        said[row.belief_id].append(
            EvidenceInput(
                episode_id=row.episode_id,
                verdict=Verdict(row.verdict),
                kind=_evidence_kind(row, is_ahead=is_ahead),
                basis=Basis(row.basis),
                reason=row.reason,
                call_id=row.call_id,
                claim_id=row.member_claim,
                valid_at=row.valid_at,
            )
        )
    return dict(said)


def _evidence_kind(row: JobVerdict, *, is_ahead: bool) -> EvidenceKind:
    """Tell what ends a belief from what founds one that begins later, and both from any other word."""
    if row.ends_belief and row.belief:
        return kind_of_end(belief=row.belief, episode=row.episode)
    return EvidenceKind.ANNOUNCED if is_ahead else EvidenceKind.ORDINARY


def create_from_cluster(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Found a job's belief if it is new and borne out; return the belief that gained the evidence, if any.

    The job takes the outcome; the caller saves it and holds the workspace's lock.
    """
    if job.kind != JobKind.CLUSTER or job.refusal or job.candidate_vector is None or not is_novel(job_id=job.pk):
        return []
    members, _ = read_members(job=job, model=embedder_of(job.workspace_id).name)
    job.refusal = _refuse_unsupported(job=job, members=members)
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
        descent=read_descent(job=job),
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


def read_descent(*, job: ClusterJob) -> LineageInput | None:
    """Return of which beliefs a reading's statement comes, None for none and for a cluster's."""
    written = job.candidate or {}
    parents = lock_beliefs(written.get("parents") or [])
    if not parents:
        return None
    return LineageInput(
        parents=parents, kind=LineageKind(written["lineage"]), reason=written["lineage_reason"]
    )  # fmt: skip


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
        valid_from=_moment(job, "valid_from"),
        valid_until=_moment(job, "valid_until"),
    )


def _moment(job: ClusterJob, name: str) -> datetime | None:
    """Return a moment of a job's candidate, None where it names none."""
    written = (job.candidate or {}).get(name)
    return datetime.fromisoformat(written) if written else None


def _common_fact_type(members: Sequence[EpisodeSource]) -> FactType:
    category, count = Counter(member.category for member in members).most_common(1)[0]
    return _FACT_TYPES.get(category, FactType.FACTUAL) if 2 * count > len(members) else FactType.FACTUAL


# What most of a belief's episodes were filed under says what kind of fact it is.
_FACT_TYPES = {
    "preference": FactType.PREFERENCE,
    "skill": FactType.PROCEDURAL,
    "principle": FactType.PROCEDURAL,
    "decision": FactType.ARCHITECTURAL,
}
