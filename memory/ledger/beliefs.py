"""Beliefs are made in one way, whatever makes them: a cluster, a claim, a curator, a change of structure (C3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings

from memory.domain.ids import IdKind
from memory.domain.lifecycle import BeliefStatus
from memory.ledger.author import Author
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.equivalents import find_same, find_tombstone, was_erased
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.lineage import Descent, record_lineage
from memory.ledger.locks import lock_beliefs
from memory.ledger.statements import BeliefSource, hash_statement
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, BeliefAccess, FactType, Scope
from memory.models.beliefs import BeliefQuerySet, Timeframe
from memory.models.identifiers import draw_unused_id
from memory.models.vectors import Vectors, store_belief_vectors

_SUBJECT_LENGTH = 200


class Outcome(StrEnum):
    """What became of a statement that was to be a belief."""

    CREATED = "created"
    JOINED = "joined"  # a belief says the same, and took the evidence
    SUPPRESSED = "suppressed"  # a person put away or erased what says the same (B22, L4)
    UNFOUNDED = "unfounded"  # nothing that was said of it is evidence


class NoVector(RuntimeError):
    """The embedding model gave no vector, so that the belief could not be found; asked again later it may."""

    wait = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefDraft:
    """What a belief is to say, and whose it is."""

    workspace_id: int
    statement: str
    subject: str = ""
    predicate: str = ""
    context: str = "general"
    timeframe: str = Timeframe.CURRENT
    language: str = ""
    project_id: int | None = None
    user: str = ""
    fact_type: FactType = FactType.FACTUAL
    importance: int = 5
    is_pinned: bool = False
    is_told: bool = False
    lineage_depth: int = 0
    valid_from: datetime | None = None

    @property
    def statement_hash(self) -> str:
        """Hash what verdicts on it are about."""
        return hash_statement(self.statement, self.subject[:_SUBJECT_LENGTH], self.context)

    def as_source(self) -> BeliefSource:
        """Return it as if it were a belief already."""
        return BeliefSource(
            id="",
            statement=self.statement,
            statement_hash=self.statement_hash,
            subject=self.subject[:_SUBJECT_LENGTH],
            context=self.context,
            language=self.language,
            project_id=self.project_id,
            user=self.user,
            status=BeliefStatus.ACTIVE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementVector:
    """A statement's vector (768), and the model that it is of."""

    model: str
    numbers: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """What came of a draft: the belief that has its evidence now, if one has, and what stood in its way."""

    outcome: Outcome
    belief: Belief | None = None
    tombstone: str | None = None  # whose statement it is


def create_belief(
    *,
    draft: BeliefDraft,
    vector: StatementVector | None,
    said: Iterable[EvidenceInput],
    author: Author,
    descent: Descent | None = None,
    even_suppressed: bool = False,
) -> Creation:
    """Make a belief of what was said, or let the belief that says the same take it.

    None is made of what a person put away or erased, unless a curator says it again (`even_suppressed`), nor without
    evidence. Without a vector a belief cannot be compared yet; with what it descends from it is not. The caller holds
    the workspace's lock. Raise NoVector where the workspace has moved to another model than the vector's.
    """
    said = list(said)
    if vector is not None:
        check_model(workspace_id=draft.workspace_id, model=vector.model)
        parents = [belief.pk for belief in descent.parents] if descent else []
        if twin := find_twin(draft=draft, vector=vector, besides=parents):
            return _join(twin, said, author, descent)
    refused = None
    if not even_suppressed:
        numbers = None if vector is None else vector.numbers
        refused = find_suppressed(workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=numbers)
    if refused:
        return refused
    author.sign()
    belief = store_belief(belief=build_belief(draft=draft, author=author), vector=vector)
    record_evidence(said={belief.pk: said}, beliefs=[belief], author=author, is_founding=True)
    if not belief.evidence_count:
        belief.delete()
        return Creation(outcome=Outcome.UNFOUNDED)
    if descent:
        record_lineage(child=belief, descent=descent, author=author)
    return Creation(outcome=Outcome.CREATED, belief=belief)


def check_model(*, workspace_id: int, model: str) -> None:
    """Raise NoVector where a workspace's vectors are another model's by now."""
    if model != embedder_of(workspace_id).name:
        raise NoVector("The workspace has just moved to another embedding model: ask again.")


def find_twin(*, draft: BeliefDraft, vector: StatementVector, besides: Sequence[str] = ()) -> str | None:
    """Return the active belief of the same scope and language that says the same, None where none does (B8.5)."""
    alike = alike_beliefs(draft=draft).active().exclude(pk__in=besides)
    return find_same(workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector.numbers, among=alike)


def alike_beliefs(*, draft: BeliefDraft) -> BeliefQuerySet:
    """Select the beliefs of a draft's scope and language, whatever their status."""
    beliefs: BeliefQuerySet = Belief.objects.for_workspace(draft.workspace_id).filter(
        project=draft.project_id, user=draft.user, language=draft.language
    )
    return beliefs


def find_suppressed(*, workspace_id: int, candidate: BeliefSource, vector: Vectors | None) -> Creation | None:
    """Return the refusal where a person put away or erased what says the same (B22, L4), else None."""
    if was_erased(workspace_id=workspace_id, candidate=candidate):
        return Creation(outcome=Outcome.SUPPRESSED)
    if vector is None:
        return None
    tombstone = find_tombstone(workspace_id=workspace_id, candidate=candidate, vector=vector)
    return Creation(outcome=Outcome.SUPPRESSED, tombstone=tombstone) if tombstone else None


def _join(twin: str, said: Sequence[EvidenceInput], author: Author, descent: Descent | None) -> Creation:
    [belief] = lock_beliefs([twin])
    record_evidence(said={twin: said}, beliefs=[belief], author=author)
    if descent:
        record_lineage(child=belief, descent=descent, author=author)
    return Creation(outcome=Outcome.JOINED, belief=belief)


def build_belief(*, draft: BeliefDraft, author: Author, belief_id: str = "") -> Belief:
    """Return a draft as a belief, not stored yet."""
    now = author.now
    return Belief(
        id=belief_id or draw_unused_id(IdKind.BELIEF, Belief),
        workspace_id=draft.workspace_id,
        scope=Scope.GLOBAL if draft.project_id is None else Scope.PROJECT,
        project_id=draft.project_id,
        user=draft.user,
        statement=draft.statement,
        statement_hash=draft.statement_hash,
        subject=draft.subject[:_SUBJECT_LENGTH],
        predicate=draft.predicate,
        context=draft.context,
        timeframe=draft.timeframe,
        fact_type=draft.fact_type,
        importance=draft.importance,
        language=draft.language,
        is_pinned=draft.is_pinned,
        is_told=draft.is_told,
        lineage_depth=draft.lineage_depth,
        valid_from=draft.valid_from,
        created_at=now,
        updated_at=now,
        statement_changed_at=now,
        born_in=author.cycle,
    )


def repeat_belief(*, draft: BeliefDraft, author: Author, belief_id: str) -> Belief:
    """Store a belief as at its making, under its id, within a replay that the caller rolls back."""
    belief = build_belief(draft=draft, author=author, belief_id=belief_id)
    belief.save(force_insert=True)
    return belief


def repeat_making(*, stood: Belief, event: Any) -> None:
    """Store a belief as it was when somebody made it, as its history tells, within a replay that is rolled back."""
    kept = {name: getattr(stood, name) for name in _NEVER_CHANGED}
    told = {name: getattr(event, name) for name in _TOLD_AT_FIRST}
    belief = Belief(
        id=stood.pk,
        statement_hash=hash_statement(event.statement, event.subject, event.context),
        updated_at=event.created_at,
        **kept,
        **told,
    )
    belief.save(force_insert=True)
    recompute_beliefs(beliefs=[belief], now=event.created_at)


_NEVER_CHANGED = (
    "workspace", "scope", "project", "user", "fact_type", "language", "importance", "is_told", "lineage_depth",
    "created_at", "statement_changed_at",
)  # fmt: skip
_TOLD_AT_FIRST = (
    "statement", "subject", "predicate", "context", "timeframe", "status", "status_reason", "is_pinned", "valid_from",
    "valid_until",
)  # fmt: skip


def store_belief(*, belief: Belief, vector: StatementVector | None) -> Belief:
    """Store a new belief with its vector, if it has one, and the row that counts its recalls."""
    belief.save(force_insert=True)
    if vector is not None:
        store_belief_vectors(workspace_id=belief.workspace_id, model=vector.model, vectors={belief.pk: vector.numbers})
    BeliefAccess.objects.create(
        belief=belief, workspace_id=belief.workspace_id, stability=settings.POLICY.retrieval.initial_stability
    )
    return belief


def draft_after(*, parents: Sequence[Belief], **said: object) -> BeliefDraft:
    """Return the draft of what comes in the place of beliefs: the first lends what is not said, all their standing."""
    first = parents[0]
    inherited: dict[str, object] = {
        "workspace_id": first.workspace_id,
        "subject": first.subject,
        "context": first.context,
        "timeframe": first.timeframe,
        "language": first.language,
        "project_id": first.project_id,
        "user": first.user,
        "fact_type": FactType(first.fact_type),
        "importance": max(parent.importance for parent in parents),
        "is_pinned": any(parent.is_pinned for parent in parents),
        "lineage_depth": max(parent.lineage_depth for parent in parents) + 1,
    }
    return BeliefDraft(**(inherited | said))  # type: ignore[arg-type]
