"""What a fact changes among beliefs: one is made, reinforced, contradicted, or linked to its neighbours (R2, R3, R4).

`find_similar_beliefs` finds the candidates and `choose_match` decides what is to be done to them. Nothing here asks a
model. The caller holds the workspace's lock; every row names no cycle, as a curator's does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from django.conf import settings

from memory.consolidation.belief_creation import HELD_BEFORE, claim_true_at, find_supported_later, is_overturned
from memory.domain.evidence import Verdict, weigh_evidence
from memory.domain.lifecycle import LIVE, BeliefStatus, Reason
from memory.domain.similarity import FactMatch, FactNeighbour, match_fact
from memory.language.clauses import Mode
from memory.language.facts import FactToRemember
from memory.language.relations import ClaimRelation
from memory.language.subjects import read_context, read_timeframe
from memory.language.words import detect_language
from memory.ledger.beliefs import (
    BeliefDraft,
    BeliefSource,
    CreationResult,
    StatementVector,
    create_belief,
    passes_guard,
    source_of_belief,
)
from memory.ledger.confidence import confidence_policy, read_evidence_rows
from memory.ledger.evidence import CLASH_REASON, EvidenceInput, record_evidence
from memory.ledger.gates import challenge_belief, is_challenged, is_closed
from memory.ledger.transactions import Author, LineageInput, lock_existing_beliefs, record_lineage
from memory.llm.embeddings import embedder_of
from memory.models import (
    Basis,
    Belief,
    Claim,
    Episode,
    Evidence,
    EvidenceKind,
    FactOutcome,
    FactType,
    Lineage,
    LineageKind,
    Link,
    RivalOutcome,
)
from memory.models.beliefs import Timeframe
from memory.models.conversations import REASON_CONTRADICTED
from memory.search.vectors import ComparisonScope, NearBelief, Vectors, nearest_beliefs

REINFORCES_ANOTHER = "It bears out what contradicts this."
_MOST_CANDIDATES = 50


def draft_from_fact(*, episode: Episode, fact: FactToRemember, is_told: bool) -> BeliefDraft:
    """Return the belief that a fact of an episode would be: of its project, and its user's."""
    language = detect_language(fact.text) or episode.language
    return BeliefDraft(
        workspace_id=episode.workspace_id,
        statement=fact.text,
        subject=fact.subject,
        context=read_context(fact.text),
        timeframe=Timeframe(read_timeframe(fact.text, german=language == "de")),
        language=language,
        project_id=episode.project_id,
        user=episode.user,
        fact_type=FactType(fact.fact_type),
        importance=fact.importance,
        is_told=is_told,
    )


def create_from_fact(
    *,
    draft: BeliefDraft,
    episode: Episode,
    claim: Claim | None,
    vector: StatementVector | None,
    call_id: int | None,
    author: Author,
    instead_of: Collection[str] = (),
) -> CreationResult:
    """Make a belief that its episode supports, or let what says the same take its word.

    Where it announces a change, it takes the place of the beliefs that it challenges, from the day that it names.

    Raise EmbeddingUnavailable where the workspace's model is not the vector's any more.
    """
    parents = [belief for belief in lock_existing_beliefs(instead_of) if is_challenged(belief)]
    announces = claim is not None and claim.mode == Mode.CHANGE
    word = EvidenceInput(
        episode_id=episode.pk,
        verdict=Verdict.SUPPORTS,
        kind=EvidenceKind.ANNOUNCED if announces else EvidenceKind.ORDINARY,
        basis=Basis.GUARD if call_id is None else Basis.MODEL,
        call_id=call_id,
        claim_id=claim.pk if claim else None,
    )
    descent = None
    if parents:
        descent = LineageInput(parents=parents, kind=LineageKind.SUPERSESSION, reason=parents[0].status_reason)
    if parents and claim and announces:
        draft = replace(draft, valid_from=claim.begins_at)
    return create_belief(draft=draft, vector=vector, said=[word], author=author, descent=descent)


def reinforce_belief(*, belief_id: str, episode: Episode, author: Author) -> None:
    """Let an episode support a belief that says the same, and stand against what that one is to take the place of.

    An archived belief comes back where that allows it (B14).
    """
    [belief] = lock_existing_beliefs([belief_id])
    support = EvidenceInput(episode_id=episode.pk, verdict=Verdict.SUPPORTS, basis=Basis.GUARD)
    gained = record_evidence(said={belief_id: [support]}, beliefs=[belief], author=author)
    superseded = Lineage.objects.filter(
        child=belief_id,
        kind=LineageKind.SUPERSESSION,
        parent__status__in=LIVE,
        parent__project=belief.project_id,
        parent__user=belief.user,
    )
    rivals = list(superseded.values_list("parent_id", flat=True))
    if not rivals or not gained.get(belief_id):
        return  # what only repeats what it was shown moves nothing
    against = EvidenceInput(
        episode_id=episode.pk, verdict=Verdict.CONTRADICTS, basis=Basis.GUARD, reason=REINFORCES_ANOTHER
    )
    record_evidence(said={key: [against] for key in rivals}, beliefs=lock_existing_beliefs(rivals), author=author)


def contradict_belief(
    *, rival_id: str, belief: Belief, episode: Episode, reason: str, call_id: int | None, author: Author
) -> RivalOutcome:
    """Let an episode stand against a belief, and let the new one supersede it in the lineage (R3).

    What rests on enough supporting episodes lives on beside the new one; so does what is pinned (D9), or belongs to
    another project or user than what was remembered: it may hold elsewhere. Anything else is challenged.
    """
    [rival] = lock_existing_beliefs([rival_id])
    supports = _count_supports(rival)
    word = EvidenceInput(
        episode_id=episode.pk, verdict=Verdict.CONTRADICTS, basis=Basis.MODEL, reason=reason, call_id=call_id
    )
    gained = record_evidence(said={rival_id: [word]}, beliefs=[rival], author=author)
    if Verdict.CONTRADICTS not in gained.get(rival_id, ()):
        return RivalOutcome.WEAKENED  # it only repeats what it was shown, or bears the belief out as well
    descent = LineageInput(parents=[rival], kind=LineageKind.SUPERSESSION, reason=REASON_CONTRADICTED)
    record_lineage(child=belief, descent=descent, author=author)
    is_elsewhere = (rival.project_id, rival.user) != (belief.project_id, belief.user)
    if is_elsewhere or supports >= settings.POLICY.remember.supported_episodes:
        return RivalOutcome.WEAKENED
    said_at = min(episode.occurred_at, author.now)
    is_over = challenge_belief(belief=rival, reason=Reason.DISPUTED, at=said_at, author=author)
    return RivalOutcome.SUPERSEDED if is_over else RivalOutcome.WEAKENED


def apply_claims(
    *,
    belief_id: str,
    relations: Sequence[tuple[Claim, ClaimRelation]],
    episode: Episode,
    author: Author,
    call_id: int | None = None,
) -> str:
    """Let what an episode claims count for or against a belief, once; challenge what it ends, or what is overturned.

    Rules say so, or a model by a call. What was so before something else was says nothing against it: PAST.
    """
    [belief] = lock_existing_beliefs([belief_id])
    was_closed = is_closed(belief)
    claim, relation = _combine_relations(relations)
    if relation.verdict is Verdict.CONTRADICTS and find_supported_later(
        beliefs=[belief.pk], than=claim_true_at(claim=claim)
    ):
        return HELD_BEFORE
    word = EvidenceInput(
        episode_id=episode.pk,
        verdict=relation.verdict,
        kind=EvidenceKind.ANNOUNCED if relation.ends else EvidenceKind.ORDINARY,
        basis=Basis.SLOT if call_id is None else Basis.MODEL,
        reason=relation.reason,
        call_id=call_id,
        claim_id=claim.pk,
    )
    gained = record_evidence(said={belief.pk: [word]}, beliefs=[belief], author=author)
    if not gained.get(belief.pk):
        return _earlier_effect(belief, episode)
    if belief.valid_from and claim_true_at(claim=claim) < belief.valid_from:
        return HELD_BEFORE  # it is from before the belief held, and weighs nothing (C2)
    if relation.verdict is Verdict.SUPPORTS:
        return FactOutcome.REINFORCED
    if was_closed:
        return RivalOutcome.WEAKENED
    reason = Reason.ANNOUNCED if relation.ends else Reason.DISPUTED
    is_here = (belief.project_id, belief.user) == (episode.project_id, episode.user)  # elsewhere it may hold
    is_over = relation.verdict is Verdict.CONTRADICTS and (relation.ends or is_overturned(belief=belief, claim=claim))
    if (
        is_here
        and is_over
        and challenge_belief(belief=belief, reason=reason, at=claim.begins_by(author.now), author=author)
    ):
        return RivalOutcome.SUPERSEDED
    return RivalOutcome.SUPERSEDED if is_challenged(belief) or is_closed(belief) else RivalOutcome.WEAKENED


def _earlier_effect(belief: Belief, episode: Episode) -> str:
    """Return what an episode did to a belief that it speaks on already, whatever brought that; "" for an echo."""
    row = Evidence.objects.filter(belief=belief, episode=episode, base_weight__gt=0).first()
    if row is None:
        return ""
    return FactOutcome.REINFORCED if row.verdict == Verdict.SUPPORTS else RivalOutcome.WEAKENED


def _combine_relations(relations: Sequence[tuple[Claim, ClaimRelation]]) -> tuple[Claim, ClaimRelation]:
    """Return what all claims of an episode come to on a belief: what ends it holds, else two that clash are PARTIAL."""
    ending = [pair for pair in relations if pair[1].ends]
    claim, relation = (ending or list(relations))[-1]
    if not ending and len({one.verdict for _, one in relations}) > 1:
        relation = replace(relation, verdict=Verdict.PARTIAL, reason=CLASH_REASON)
    return claim, relation


def _count_supports(belief: Belief) -> int:
    """Count the episodes that support a belief, echoes left out."""
    rows = read_evidence_rows(belief_id=belief.pk)
    return weigh_evidence(rows=rows, policy=confidence_policy(belief.workspace)).rows.get(Verdict.SUPPORTS, 0)


def link_neighbours(*, belief: Belief, near: Sequence[tuple[NearBelief, float]], now: datetime) -> list[Link]:
    """Link a belief to its nearest neighbours, given with their similarity and the nearest first."""
    policy = settings.POLICY.remember
    chosen = [
        (one.id, likeness)
        for one, likeness in near
        if policy.link_from <= likeness <= policy.link_to and one.status == BeliefStatus.ACTIVE and one.id != belief.pk
    ][: policy.links]
    links = [
        Link(workspace_id=belief.workspace_id, belief=belief, other_id=key, similarity=likeness, created_at=now)
        for key, likeness in chosen
    ]
    return Link.objects.bulk_create(links, ignore_conflicts=True)


SimilarBeliefs = Sequence[tuple[NearBelief, float]]  # with the similarity on the reference scale, the nearest first

# What is archived can be borne out, and comes back (B14), as can what was closed since (C2); what is challenged is
# still judged.
_CANDIDATE_STATUSES = (BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED, BeliefStatus.ARCHIVED, BeliefStatus.INVALIDATED)


def candidate_scope(*, belief: BeliefDraft | Belief, episode: Episode, is_limited: bool) -> ComparisonScope:
    """Say where a belief's like is looked for: in its project and among global ones, its user's and nobody's.

    Who is limited to projects changes nothing that belongs to none (B21).
    """
    is_multilingual = embedder_of(belief.workspace_id).is_multilingual
    return ComparisonScope(
        workspace_id=belief.workspace_id,
        project_id=belief.project_id,
        with_global=not is_limited,
        users=tuple({"", belief.user}),
        language=None if is_multilingual else belief.language,
        said_at=episode.occurred_at,
    )


def find_similar_beliefs(*, within: ComparisonScope, vector: Vectors, besides: str = "") -> SimilarBeliefs:
    """Return the beliefs from the similarity on at which two are linked, another one left out."""
    model = embedder_of(within.workspace_id)
    least = float(model.profile.raw(settings.POLICY.remember.link_from))
    found = [
        one
        for one in nearest_beliefs(
            within=within,
            model=model.name,
            vector=vector,
            statuses=_CANDIDATE_STATUSES,
            least=least,
            most=_MOST_CANDIDATES,
        )
        if one.id != besides
    ]
    likeness = model.profile.reference(np.array([one.cosine for one in found], dtype=np.float64))
    return list(zip(found, [float(value) for value in likeness], strict=True))


def choose_match(*, candidate: BeliefSource, near: SimilarBeliefs, settled: Collection[str] = ()) -> FactMatch:
    """Decide what a statement does to those near it; what is `settled` is contradicted no more (R2)."""
    policy = settings.POLICY.remember
    close = [(one, likeness) for one, likeness in near if likeness >= policy.contradiction_similarity]
    named = Belief.objects.filter(pk__in=[one.id for one, _ in close])
    beliefs = {known.pk: source_of_belief(belief=known) for known in named}
    held = [
        FactNeighbour(
            id=one.id,
            similarity=likeness,
            passes_guard=passes_guard(left=candidate.claim, right=beliefs[one.id].claim),
            is_live=one.status in LIVE and one.id not in settled,
        )
        for one, likeness in close
    ]
    return match_fact(near=held, policy=policy)
