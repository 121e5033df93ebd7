"""What a remembered fact changes among beliefs: one is made, borne out, or contradicted (R2, R3).

Nothing here asks a model. The caller holds the workspace's lock; every row names no cycle, as a curator's does.
"""

from dataclasses import replace
from datetime import datetime

from django.conf import settings

from memory.consolidation.birth import store_new_belief
from memory.consolidation.claims import AGREE, ENDED, count_origins_against, find_supported_later
from memory.consolidation.handmade import Hand, NoVector, Word, give_words, trace_by_hand
from memory.consolidation.walk import decide_return
from memory.domain.cards import read_context, read_timeframe
from memory.domain.evidence import weigh_evidence
from memory.domain.ids import IdKind
from memory.domain.language import detect_language
from memory.domain.lifecycle import BeliefStatus
from memory.domain.remembering import Fact
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.language.relations import Relation
from memory.ledger.evidence import confidence_policy, is_echo, read_rows
from memory.ledger.locks import lock_named
from memory.ledger.statements import hash_statement
from memory.ledger.status import change_status
from memory.llm.workspace_model import embedder_of
from memory.models import (
    Basis,
    Belief,
    BeliefAccess,
    Claim,
    Cycle,
    Episode,
    EvidenceKind,
    FactOutcome,
    FactType,
    LineageKind,
    RivalOutcome,
    Scope,
)
from memory.models.beliefs import Timeframe
from memory.models.identifiers import draw_unused_id
from memory.models.remembrances import CONTRADICTED
from memory.models.vectors import Vectors


def conceive(*, episode: Episode, fact: Fact, now: datetime) -> Belief:
    """Return the belief that a fact of an episode would be, not stored yet: of its project, and its user's."""
    language = detect_language(fact.text) or episode.language
    return Belief(
        id=draw_unused_id(IdKind.BELIEF, Belief),
        workspace_id=episode.workspace_id,
        scope=Scope.GLOBAL if episode.project_id is None else Scope.PROJECT,
        project_id=episode.project_id,
        user=episode.user,
        statement=fact.text,
        statement_hash=hash_statement(fact.text, fact.subject),
        subject=fact.subject,
        context=read_context(fact.text),
        timeframe=Timeframe(read_timeframe(fact.text, german=language == "de")),
        fact_type=FactType(fact.fact_type),
        importance=fact.importance,
        language=language,
        created_at=now,
        updated_at=now,
        statement_changed_at=now,
    )


def found(
    *, belief: Belief, episode: Episode, vector: Vectors | None, model: str, call_id: int | None, hand: Hand
) -> None:
    """Store a belief that its episode supports; without a vector it waits for one.

    Raise NoVector where the workspace's model is not the vector's any more.
    """
    attribute_changes(actor=hand.actor, reason=hand.reason)
    if vector is None:
        belief.save(force_insert=True)
        BeliefAccess.objects.create(
            belief=belief, workspace_id=belief.workspace_id, stability=settings.POLICY.retrieval.initial_stability
        )
    else:
        check_model(workspace_id=belief.workspace_id, model=model)
        store_new_belief(belief=belief, vector=vector, model=model)
    word = Word(
        episode_id=episode.pk,
        verdict=Verdict.SUPPORTS,
        basis=Basis.GUARD if call_id is None else Basis.MODEL,
        call_id=call_id,
    )
    give_words(belief=belief, words=[word], now=hand.now, is_founding=True)


def check_model(*, workspace_id: int, model: str) -> None:
    """Raise NoVector where a workspace's vectors are another model's by now."""
    if model != embedder_of(workspace_id).name:
        raise NoVector("The workspace has just moved to another embedding model: ask again.")


def bear_out(*, belief_id: str, episode: Episode, hand: Hand) -> None:
    """Let an episode support a belief that says the same; an archived one comes back where that allows it (B14)."""
    [belief] = lock_named([belief_id])
    attribute_changes(actor=hand.actor, reason=hand.reason)
    word = Word(episode_id=episode.pk, verdict=Verdict.SUPPORTS, basis=Basis.GUARD)
    give_words(belief=belief, words=[_unless_echo(word, belief, episode)], now=hand.now)
    if belief.status == BeliefStatus.ARCHIVED:
        _return(belief, hand)


def _return(belief: Belief, hand: Hand) -> None:
    """Bring a belief back by somebody's word, which protects it as any other restoring does."""
    belief.refresh_from_db()
    moment = Cycle(workspace_id=belief.workspace_id, now=hand.now)  # of no cycle: the time alone is asked for
    decision = decide_return(belief=belief, cycle=moment)
    if decision.passed:
        change_status(belief=belief, new=BeliefStatus.ACTIVE, reason=decision.reason, actor=hand.actor, now=hand.now)
        belief.restored_by_person_at = hand.now
        belief.save(update_fields=["restored_by_person_at"])


def contradict(
    *, rival_id: str, belief: Belief, episode: Episode, reason: str, call_id: int | None, hand: Hand
) -> RivalOutcome:
    """Let an episode stand against a belief, and let the new one supersede it in the lineage (R3).

    What rests on enough supporting episodes lives on beside the new one; so does what is pinned (D9), or belongs to
    another project or user than what was remembered: it may hold elsewhere. Anything else is invalidated.
    """
    [rival] = lock_named([rival_id])
    supports = _count_supports(rival)
    attribute_changes(actor=hand.actor, reason=hand.reason)
    word = Word(episode_id=episode.pk, verdict=Verdict.CONTRADICTS, basis=Basis.MODEL, reason=reason, call_id=call_id)
    give_words(belief=rival, words=[_unless_echo(word, rival, episode)], now=hand.now)
    trace_by_hand(child=belief, parents=[rival], kind=LineageKind.SUPERSESSION, hand=replace(hand, reason=CONTRADICTED))
    is_elsewhere = (rival.project_id, rival.user) != (belief.project_id, belief.user)
    if supports >= settings.POLICY.remember.supported_episodes or rival.is_pinned or is_elsewhere:
        return RivalOutcome.WEAKENED
    change_status(belief=rival, new=BeliefStatus.INVALIDATED, reason=CONTRADICTED, actor=hand.actor, now=hand.now)
    return RivalOutcome.SUPERSEDED


def hear(*, belief_id: str, relation: Relation, claim: Claim, episode: Episode, hand: Hand) -> str:
    """Let a claim count for or against a belief, and challenge what it ends, or what two origins deny; say which."""
    [belief] = lock_named([belief_id])
    if relation.verdict is Verdict.CONTRADICTS and find_supported_later(beliefs=[belief.pk], than=episode.occurred_at):
        return ""
    attribute_changes(actor=hand.actor, reason=hand.reason)
    word = Word(
        episode_id=episode.pk, verdict=relation.verdict, basis=Basis.SLOT, reason=relation.reason, claim_id=claim.pk
    )
    give_words(belief=belief, words=[_unless_echo(word, belief, episode)], now=hand.now)
    if relation.verdict is not Verdict.CONTRADICTS:
        return FactOutcome.REINFORCED
    is_over = relation.ends or count_origins_against(belief) >= AGREE
    if not is_over or belief.is_pinned or belief.status != BeliefStatus.ACTIVE:
        return RivalOutcome.WEAKENED
    belief.refresh_from_db()
    change_status(belief=belief, new=BeliefStatus.CHALLENGED, reason=ENDED, actor=hand.actor, now=hand.now)
    return RivalOutcome.SUPERSEDED


def _count_supports(belief: Belief) -> int:
    """Count the episodes that support a belief, echoes left out."""
    rows = read_rows(belief_id=belief.pk)
    return weigh_evidence(rows=rows, policy=confidence_policy(belief.workspace)).rows.get(Verdict.SUPPORTS, 0)


def _unless_echo(word: Word, belief: Belief, episode: Episode) -> Word:
    """Let what an AI says in a session count nothing for what that session was shown (Echo)."""
    if not is_echo(episode=episode, belief_id=belief.pk):
        return word
    return replace(word, kind=EvidenceKind.ECHO, base_weight=0.0)
