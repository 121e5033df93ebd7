"""What became of a remembered text, as rows that answers are made of, and beliefs that waited for a vector (R2, R4).

`facts_of_reading` and `facts_of_evidence` return the rows; `link_new_beliefs` links new beliefs to their neighbours;
`match_late_vector` compares a belief that was made while no vector could be had. The caller holds the workspace's lock.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
from django.conf import settings

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus
from memory.ledger.beliefs import (
    CreationOutcome,
    check_embedding_model,
    find_equivalent,
    find_suppressed,
    source_of_belief,
)
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.gates import is_challenged, is_closed
from memory.ledger.transactions import Author, LineageInput, change_status, lock_existing_beliefs, record_lineage
from memory.llm.embeddings import embedder_of
from memory.models import (
    Basis,
    Belief,
    Claim,
    Episode,
    Evidence,
    FactOutcome,
    FactType,
    LineageKind,
    Link,
    RememberedFact,
    RememberJob,
    RivalOutcome,
)
from memory.models.conversations import REASON_EQUIVALENT
from memory.reading.apply import AnsweredReading, AppliedReading, FoundedStatement
from memory.search.vectors import (
    ComparisonScope,
    Vectors,
    nearest_beliefs,
    store_belief_vectors,
    store_claim_vectors,
)

PUT_AWAY = "a person put away what says the same"
_MOST_NEIGHBOURS = 50  # that are looked at; the nearest may be too alike to be neighbours
_OUTCOMES = {
    CreationOutcome.CREATED: FactOutcome.CREATED,
    CreationOutcome.JOINED: FactOutcome.REINFORCED,
    CreationOutcome.SUPPRESSED: FactOutcome.SUPPRESSED,
    CreationOutcome.UNFOUNDED: FactOutcome.REFUSED,
}


def facts_of_reading(*, job: RememberJob, answered: AnsweredReading, applied: AppliedReading) -> list[RememberedFact]:
    """Return a row for each statement of a reading, then one for each belief that it bears out or speaks against."""
    rows = [_statement_row(job, statement) for statement in applied.statements]
    said = [verdict for verdict in applied.verdicts if verdict.gained]
    beliefs = Belief.objects.in_bulk([verdict.belief_id for verdict in said])
    rows += [_verdict_row(job, beliefs[verdict.belief_id], verdict.verdict) for verdict in said]
    shown = [belief.id for belief in answered.request.beliefs]
    for number, row in enumerate(rows, start=1):
        row.number, row.call_id, row.asked_about = number, answered.call_id, shown
    return rows


def facts_of_evidence(*, job: RememberJob) -> list[RememberedFact]:
    """Return the rows of a text that somebody else read before, as its evidence tells."""
    said = Evidence.objects.filter(episode=job.episode_id, base_weight__gt=0).select_related("belief").order_by("pk")
    rows = []
    for number, evidence in enumerate(said, start=1):
        row = _verdict_row(job, evidence.belief, Verdict(evidence.verdict))
        row.number, row.call_id = number, evidence.call_id
        if evidence.is_founding and row.outcome == FactOutcome.REINFORCED:
            row.outcome = FactOutcome.CREATED
        rows.append(row)
    return rows


def _statement_row(job: RememberJob, statement: FoundedStatement) -> RememberedFact:
    claim, draft, made = statement.claim, statement.draft, statement.made
    return RememberedFact(
        workspace_id=job.workspace_id,
        remembrance=job,
        text=claim.sentence,
        fact_type=draft.fact_type if draft else FactType.FACTUAL,
        importance=claim.importance or settings.POLICY.remember.importance,
        subject=claim.subject,
        outcome=_OUTCOMES[made.outcome] if made else FactOutcome.HEARD,
        belief=made.belief if made else None,
        is_unmatched=_is_new(statement) and statement.vector is None,
    )


def _is_new(statement: FoundedStatement) -> bool:
    return statement.made is not None and statement.made.outcome is CreationOutcome.CREATED


def _verdict_row(job: RememberJob, belief: Belief, verdict: Verdict) -> RememberedFact:
    """Return the row of what a text says of a belief, as that stands by now."""
    row = RememberedFact(
        workspace_id=job.workspace_id,
        remembrance=job,
        text=belief.statement,
        fact_type=belief.fact_type,
        importance=belief.importance,
        subject=belief.subject,
        outcome=FactOutcome.HEARD,
    )
    if verdict is Verdict.SUPPORTS:
        row.outcome, row.belief = FactOutcome.REINFORCED, belief
    else:
        is_over = verdict is Verdict.CONTRADICTS and (is_challenged(belief) or is_closed(belief))
        row.rival, row.rival_outcome = belief, RivalOutcome.SUPERSEDED if is_over else RivalOutcome.WEAKENED
    return row


def link_new_beliefs(*, job: RememberJob, applied: AppliedReading, now: datetime) -> None:
    """Link the beliefs that a reading founded to their neighbours, but for those that it speaks against (R4)."""
    denied = {one.belief_id for one in applied.verdicts if one.verdict is Verdict.CONTRADICTS}
    for statement in applied.statements:
        if _is_new(statement) and statement.vector is not None and statement.made and statement.made.belief:
            _link_neighbours(job, statement.made.belief, statement.vector, besides=denied, now=now)


def _link_neighbours(job: RememberJob, belief: Belief, vector: Vectors, *, besides: set[str], now: datetime) -> None:
    """Link a belief to active ones of its project and global ones, its user's and nobody's."""
    policy, model = settings.POLICY.remember, embedder_of(job.workspace_id)
    near = nearest_beliefs(
        within=ComparisonScope(
            workspace_id=job.workspace_id,
            project_id=belief.project_id,
            with_global=not job.is_limited,  # who is limited to projects touches nothing that belongs to none (B21)
            users=tuple({"", belief.user}),
            language=None if model.is_multilingual else belief.language,
            said_at=job.episode.occurred_at,
        ),
        model=model.name,
        vector=vector,
        statuses=(BeliefStatus.ACTIVE,),
        least=float(model.profile.raw(policy.link_from)),
        most=_MOST_NEIGHBOURS,
    )
    likeness = model.profile.reference(np.array([one.cosine for one in near], dtype=np.float64))
    links = [
        Link(workspace_id=job.workspace_id, belief=belief, other_id=one.id, similarity=float(value), created_at=now)
        for one, value in zip(near, likeness, strict=True)
        if policy.link_from <= value <= policy.link_to and one.id != belief.pk and one.id not in besides
    ]
    Link.objects.bulk_create(links[: policy.links], ignore_conflicts=True)


# --- Vectors that came late


def list_unmatched_facts(*, job: RememberJob) -> list[RememberedFact]:
    """List the facts of a remembered text whose beliefs wait for a vector."""
    return list(job.facts.filter(is_unmatched=True).select_related("belief"))


def match_late_vector(*, job: RememberJob, fact: RememberedFact, vector: Vectors, model: str, author: Author) -> None:
    """Give a belief its vector and compare it: what says the same as another belief becomes part of that one.

    A text that was forgotten has no word to give. Raise NotFound for a belief that was erased, EmbeddingUnavailable
    where the workspace has moved to another model.
    """
    assert fact.belief_id  # only a belief waits for a vector
    [belief] = lock_existing_beliefs([fact.belief_id])
    check_embedding_model(workspace_id=belief.workspace_id, model=model)
    store_belief_vectors(workspace_id=belief.workspace_id, model=model, vectors={belief.pk: vector})
    claims = Claim.objects.filter(episode=job.episode_id, sentence=fact.text).values_list("pk", flat=True)
    store_claim_vectors(workspace_id=belief.workspace_id, model=model, vectors=dict.fromkeys(claims, vector))
    fact.is_unmatched = False
    if belief.status in LIVE and job.episode.status not in WITHDRAWN_STATUSES:
        _match_late(job, fact, belief, vector, author)
    fact.save()


def _match_late(job: RememberJob, fact: RememberedFact, belief: Belief, vector: Vectors, author: Author) -> None:
    candidate = source_of_belief(belief=belief)
    same_scope = Belief.objects.for_workspace(belief.workspace_id).active().filter(
        project=belief.project_id, user=belief.user, language=belief.language
    )  # fmt: skip
    # Its reading was shown the others, and found that they say something else.
    unseen = same_scope.exclude(pk__in=[belief.pk, *fact.asked_about])
    same = find_equivalent(workspace_id=belief.workspace_id, candidate=candidate, vector=vector, among=unseen)
    if same is not None:
        _merge_into(same, job.episode, fact, belief, author)
    elif find_suppressed(workspace_id=belief.workspace_id, candidate=candidate, vector=vector):
        fact.outcome = FactOutcome.SUPPRESSED
        _close(belief, BeliefStatus.INVALIDATED, PUT_AWAY, author)
    else:
        denied = job.facts.exclude(rival=None).values_list("rival_id", flat=True)
        _link_neighbours(job, belief, vector, besides={key for key in denied if key}, now=author.now)


def _merge_into(target: str, episode: Episode, fact: RememberedFact, belief: Belief, author: Author) -> None:
    """Give a belief's word to the one that was there first, and let it go on in that one."""
    [twin] = lock_existing_beliefs([target])
    word = EvidenceInput(episode_id=episode.pk, verdict=Verdict.SUPPORTS, basis=Basis.MODEL, call_id=fact.call_id)
    record_evidence(said={twin.pk: [word]}, beliefs=[twin], author=author)
    descent = LineageInput(parents=[belief], kind=LineageKind.MERGE, reason=REASON_EQUIVALENT)
    record_lineage(child=twin, descent=descent, author=author)
    _close(belief, BeliefStatus.MERGED, REASON_EQUIVALENT, author)
    fact.outcome, fact.belief = FactOutcome.REINFORCED, twin


def _close(belief: Belief, status: BeliefStatus, reason: str, author: Author) -> None:
    change_status(belief=belief, new=status, reason=reason, actor=author.actor, now=author.now)
