"""Beliefs in a curator's own words: what such a belief is made of, and how it is stored (R7, B12, B13)."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from memory.consolidation.cycle import budget_policy
from memory.domain.evidence import Verdict
from memory.language.refusals import Refusal, refuse_statement
from memory.language.words import detect_language
from memory.ledger.beliefs import BeliefDraft, EmbeddingUnavailable, StatementVector, draft_successor
from memory.ledger.evidence import EvidenceInput
from memory.llm.call_log import CallScope, DailyCapReached
from memory.llm.embeddings import embed_for_workspace, embedder_of
from memory.llm.registry import CallFailed
from memory.models import Belief, EvidenceKind
from memory.models.beliefs import Timeframe

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


def embed_wordings(
    *, workspace_id: int, statements: Sequence[str], seconds: float | None = None
) -> list[StatementVector]:
    """Check that statements can be beliefs and embed them; raise CannotStand or NoVector.

    Called outside of any transaction: a server may answer, within so many seconds, or those of any call.
    """
    for statement in statements:
        check_statement(statement=statement)
    scope, timeout = CallScope(workspace_id=workspace_id), seconds or budget_policy().call_seconds
    model = embedder_of(workspace_id)
    try:
        vectors = embed_for_workspace(scope=scope, model=model, texts=statements, timeout=timeout)
    except CallFailed as failure:  # what a server says of it stands in the ledger, from where erasing takes it
        raise EmbeddingUnavailable(
            f"The embedding model does not answer: {failure.kind.replace('_', ' ')}"
        ) from failure
    except DailyCapReached as spent:
        raise EmbeddingUnavailable(f"The embedding model is not asked: {spent}") from spent
    return [StatementVector(model=model.name, numbers=vector) for vector in vectors]


def check_statement(*, statement: str) -> None:
    """Raise CannotStand for what is no statement at all, or too long for a belief (B8.3)."""
    policy = settings.POLICY.consolidation
    has_words = any(character.isalnum() for character in statement)
    refusal = refuse_statement(statement, policy=policy) if has_words else Refusal.EMPTY
    if refusal in _WHY:
        raise CannotStand(_WHY[refusal].format(words=policy.statement_words))


def curators_word(*, episode_id: str, verdict: Verdict, reason: str) -> EvidenceInput:
    """Return a curator's own word, which weighs more than what anybody else said (B4)."""
    return EvidenceInput(episode_id=episode_id, verdict=verdict, kind=EvidenceKind.CURATOR, reason=reason)


def draft_worded(*, parents: Sequence[Belief], wording: Wording) -> BeliefDraft:
    """Return what comes in the place of beliefs, in a curator's words; the first lends what is left out."""
    first = parents[0]
    return draft_successor(
        parents=parents,
        statement=wording.statement,
        subject=first.subject if wording.subject is None else wording.subject,
        predicate=wording.predicate or "",  # the old one said what the old statement does
        context=wording.context or first.context,
        timeframe=wording.timeframe or first.timeframe,
        language=wording.language(otherwise=first.language),
    )
