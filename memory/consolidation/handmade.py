"""Beliefs in a curator's own words: what such a belief is made of, and how it is stored (R7, B12, B13)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memory.consolidation.birth import store_new_belief
from memory.consolidation.cycle import budget_policy
from memory.domain.actor import Actor
from memory.domain.ids import IdKind
from memory.domain.language import detect_language
from memory.domain.lifecycle import BeliefStatus
from memory.domain.refusals import Refusal, refuse_statement
from memory.domain.verdicts import Verdict
from memory.ledger.evidence import recompute_beliefs
from memory.ledger.statements import BeliefSource, hash_statement
from memory.llm.budget import DailyCapReached
from memory.llm.calls import CallScope
from memory.llm.embedding_calls import embed_in_ledger
from memory.llm.model import CallFailed
from memory.llm.workspace_model import embedder_of
from memory.models import Basis, Belief, Evidence, EvidenceKind, Lineage, LineageKind
from memory.models.beliefs import Timeframe
from memory.models.identifiers import draw_unused_id
from memory.models.vectors import Vectors

# What a person may say no more than a model; the other refusals are guesses at small talk.
_WHY = {
    Refusal.EMPTY: "It says nothing.",
    Refusal.SHARES_SPAN: "It refers to something that was shared; say what it is.",
    Refusal.OUTPUT: "It is what a program printed; say what follows from it.",
    Refusal.QUESTION: "It is a question; a belief is a statement.",
    Refusal.TOO_LONG: "It has more than {words} words; one short sentence is expected.",
    Refusal.UNRESOLVED_REFERENCE: "It hangs on a word such as it or that; name what is meant.",
}


class CannotStand(ValueError):
    """A statement that can be no belief; the message says why."""


class NoVector(RuntimeError):
    """The embedding model gave no vector, so that the belief could not be found; asked again later it may."""

    wait = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """Whose hand it is, why, and when."""

    actor: Actor
    reason: str
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a belief says, in a curator's words; what is left out is the older belief's, where there is one."""

    statement: str
    subject: str | None = None
    predicate: str | None = None
    context: str | None = None
    timeframe: Timeframe | None = None

    def language(self, *, otherwise: str = "") -> str:
        """Return the language of the statement, as far as it can be told."""
        return detect_language(self.statement) or otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One episode's word on a belief, as it becomes evidence."""

    episode_id: str
    verdict: Verdict
    kind: EvidenceKind = EvidenceKind.ORDINARY
    base_weight: float | None = None  # None: that of an ordinary row
    basis: Basis = Basis.PERSON
    reason: str = ""
    call_id: int | None = None
    claim_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingVector:
    """A statement's vector (768), and the model that it is of."""

    model: str
    numbers: Vectors


def embed_wordings(
    *, workspace_id: int, statements: Sequence[str], seconds: float | None = None
) -> list[WordingVector]:
    """Check that statements can be beliefs and embed them; raise CannotStand or NoVector.

    Called outside of any transaction: a server may answer, within so many seconds, or those of any call.
    """
    for statement in statements:
        check_statement(statement=statement)
    scope, timeout = CallScope(workspace_id=workspace_id), seconds or budget_policy().call_seconds
    model = embedder_of(workspace_id)
    try:
        vectors = embed_in_ledger(scope=scope, model=model, texts=statements, timeout=timeout)
    except CallFailed as failure:  # what a server says of it stands in the ledger, from where erasing takes it
        raise NoVector(f"The embedding model does not answer: {failure.kind.replace('_', ' ')}") from failure
    except DailyCapReached as spent:
        raise NoVector(f"The embedding model is not asked: {spent}") from spent
    return [WordingVector(model=model.name, numbers=vector) for vector in vectors]


def check_statement(*, statement: str) -> None:
    """Raise CannotStand for what is no statement at all, or too long for a belief (B8.3)."""
    policy = settings.POLICY.consolidation
    has_words = any(character.isalnum() for character in statement)
    refusal = refuse_statement(statement, policy=policy) if has_words else Refusal.EMPTY
    if refusal in _WHY:
        raise CannotStand(_WHY[refusal].format(words=policy.statement_words))


def as_source(*, belief: Belief) -> BeliefSource:
    """Return a belief that is not stored yet as it is compared with those that are."""
    return BeliefSource(
        id="",
        statement=belief.statement,
        statement_hash=belief.statement_hash,
        subject=belief.subject,
        context=belief.context,
        language=belief.language,
        project_id=belief.project_id,
        user=belief.user,
        status=BeliefStatus.ACTIVE,
    )


def store_handmade(*, belief: Belief, vector: WordingVector, words: Iterable[Word], now: datetime) -> None:
    """Store a new belief with its vector and what speaks of it; raise NoVector where the model has changed since."""
    if vector.model != embedder_of(belief.workspace_id).name:
        raise NoVector("The workspace has just moved to another embedding model: ask again.")
    store_new_belief(belief=belief, vector=vector.numbers, model=vector.model)
    give_words(belief=belief, words=words, now=now, is_founding=True)


def give_words(*, belief: Belief, words: Iterable[Word], now: datetime, is_founding: bool = False) -> None:
    """Add words to a belief's evidence, each episode's once, and count it anew; the caller holds the belief's lock."""
    rows = [_as_evidence(word, belief, now, is_founding) for word in words]
    known = set(Evidence.objects.filter(belief=belief).values_list("episode_id", flat=True))
    new = [row for row in rows if row.episode_id not in known]
    Evidence.objects.bulk_create(new)
    recompute_beliefs(beliefs=[belief], now=now, gained={belief.pk: [Verdict(row.verdict) for row in new]})
    belief.refresh_from_db(fields=["confidence"])


def _as_evidence(word: Word, belief: Belief, now: datetime, is_founding: bool) -> Evidence:
    weight = settings.POLICY.confidence.ordinary_weight if word.base_weight is None else word.base_weight
    return Evidence(
        workspace_id=belief.workspace_id,
        belief=belief,
        episode_id=word.episode_id,
        verdict=word.verdict,
        kind=word.kind,
        base_weight=weight,
        is_founding=is_founding,
        basis=word.basis,
        reason=word.reason,
        call_id=word.call_id,
        claim_id=word.claim_id,
        created_at=now,
    )


def curators_word(*, episode_id: str, verdict: Verdict, reason: str) -> Word:
    """Return a curator's own word, which weighs more than what anybody else said (B4)."""
    return Word(
        episode_id=episode_id,
        verdict=verdict,
        kind=EvidenceKind.CURATOR,
        base_weight=settings.POLICY.confidence.curator_weight,
        reason=reason,
    )


def conceive_after(*, parents: Sequence[Belief], wording: Wording, now: datetime) -> Belief:
    """Return the belief that comes in the place of older ones, not stored yet; the first lends what is left out."""
    first = parents[0]
    subject = (first.subject if wording.subject is None else wording.subject)[:200]
    return Belief(
        id=draw_unused_id(IdKind.BELIEF, Belief),
        workspace=first.workspace,
        scope=first.scope,
        project_id=first.project_id,
        user=first.user,
        statement=wording.statement,
        statement_hash=hash_statement(wording.statement, subject),
        subject=subject,
        predicate=wording.predicate or "",  # the old one said what the old statement does
        context=wording.context or first.context,
        timeframe=wording.timeframe or first.timeframe,
        fact_type=first.fact_type,
        language=wording.language(otherwise=first.language),
        importance=max(parent.importance for parent in parents),
        is_pinned=any(parent.is_pinned for parent in parents),
        lineage_depth=max(parent.lineage_depth for parent in parents) + 1,
        created_at=now,
        updated_at=now,
        statement_changed_at=now,
    )


def trace_by_hand(*, child: Belief, parents: Sequence[Belief], kind: LineageKind, hand: Hand) -> None:
    """State of which beliefs another came, by a person's word."""
    Lineage.objects.bulk_create(
        [
            Lineage(
                workspace_id=child.workspace_id,
                parent=parent,
                child=child,
                kind=kind,
                reason=hand.reason,
                created_at=hand.now,
            )
            for parent in parents
        ],
        ignore_conflicts=True,
    )
