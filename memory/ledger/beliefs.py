"""Create beliefs, in one way for every caller: a cluster, a claim, a curator or a change of structure (C3).

`create_belief` lets an equivalent belief take the evidence if there is one: similarity above 0.92, and to the pair
question the answer is yes (B8.5, B22). Statements are compared here for all of consolidation.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db.models import Q, QuerySet

from memory.domain.errors import EngramError
from memory.domain.evidence import was_closed_at
from memory.domain.identity import IdKind, digest_of_statement
from memory.domain.lifecycle import BeliefStatus
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.transactions import Author, LineageInput, lock_beliefs, record_lineage
from memory.llm.embeddings import embedder_of
from memory.llm.reader import reader, spoken
from memory.llm.requests import StatedBelief
from memory.models import Belief, BeliefAccess, Erased, FactType, Scope, Workspace
from memory.models.beliefs import BeliefQuerySet, Timeframe
from memory.models.fields import new_unused_id
from memory.search.vectors import Vectors, find_similar_beliefs, read_belief_vectors, store_belief_vectors
from memory.text.names import SpokenText
from memory.text.quotes import is_first_person
from memory.text.words import FUNCTION_WORDS, list_words, words_key

log = structlog.get_logger(__name__)
_SUBJECT_LENGTH = 200


class CreationOutcome(StrEnum):
    """What became of a statement that was to be a belief."""

    CREATED = "created"
    JOINED = "joined"  # a belief says the same, and took the evidence
    SUPPRESSED = "suppressed"  # a person put away or erased what says the same (B22, L4)
    UNFOUNDED = "unfounded"  # nothing that was said of it is evidence


class EmbeddingUnavailable(EngramError, RuntimeError):
    """The embedding model gave no vector, so that the belief could not be found; asked again later it may."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    wait = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefSource:
    """A belief as consolidation sees it."""

    id: str
    statement: str
    statement_hash: str
    subject: str
    context: str
    language: str
    project_id: int | None
    user: str
    status: str
    valid_until: datetime | None = None

    @property
    def claim(self) -> SpokenText:
        """Return the statement as it is compared with others; whom it speaks of is its subject."""
        return SpokenText(text=self.statement, speaker=self.subject, language=self.language)

    def was_over(self, *, at: datetime) -> bool:
        """Tell whether it was closed as of a time (C2)."""
        return was_closed_at(status=self.status, valid_until=self.valid_until, at=at)

    def as_stated(self) -> StatedBelief:
        """Return the belief as a model sees it."""
        return StatedBelief(
            statement=self.statement, subject=self.subject, context=self.context, language=self.language, id=self.id
        )


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
    valid_until: datetime | None = None

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
class CreationResult:
    """What came of a draft: the belief that has its evidence now, if one has, and what stood in its way."""

    outcome: CreationOutcome
    belief: Belief | None = None
    tombstone: str | None = None  # whose statement it is


def create_belief(
    *,
    draft: BeliefDraft,
    vector: StatementVector | None,
    said: Iterable[EvidenceInput],
    author: Author,
    descent: LineageInput | None = None,
    even_suppressed: bool = False,
    apart_from: Collection[str] = (),
) -> CreationResult:
    """Make a belief of what was said, or let the belief that says the same take it.

    None is made of what a person put away or erased, unless a curator says it again (`even_suppressed`), nor without
    evidence. Without a vector a belief cannot be compared yet; with what it descends from it is not, nor with beliefs
    that it is known to stand `apart_from`. The caller holds the workspace's lock. Raise EmbeddingUnavailable where the
    workspace has moved to another model than the vector's.
    """
    said = list(said)
    if vector is not None:
        check_embedding_model(workspace_id=draft.workspace_id, model=vector.model)
        parents = [belief.pk for belief in descent.parents] if descent else []
        if twin := find_equivalent_in_scope(draft=draft, vector=vector, besides=[*parents, *apart_from]):
            return _join_equivalent(twin, said, author, descent)
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
        return CreationResult(outcome=CreationOutcome.UNFOUNDED)
    if descent:
        record_lineage(child=belief, descent=descent, author=author)
    return CreationResult(outcome=CreationOutcome.CREATED, belief=belief)


def compare_ahead(*, draft: BeliefDraft, vector: StatementVector, besides: Sequence[str] = ()) -> None:
    """Ask the pair questions that `create_belief` will ask of a draft: the reader keeps its answers (F3).

    Called outside of any transaction: nobody waits for the reader, or for its being loaded, under a lock. Raise
    ModelUnavailable where there is none.
    """
    reader().load()
    find_equivalent_in_scope(draft=draft, vector=vector, besides=besides)
    find_suppressed(workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector.numbers)


def check_embedding_model(*, workspace_id: int, model: str) -> None:
    """Raise EmbeddingUnavailable where a workspace's vectors are another model's by now."""
    if model != embedder_of(workspace_id).name:
        raise EmbeddingUnavailable("The workspace has just moved to another embedding model: ask again.")


def find_equivalent_in_scope(*, draft: BeliefDraft, vector: StatementVector, besides: Sequence[str] = ()) -> str | None:
    """Return the belief of the same scope and language that says the same, None where none does (B8.5).

    It is active, or no person archived it: support counts there, and may bring it back under its id (B14).
    """
    may_return = Q(status=BeliefStatus.ARCHIVED, archived_by_person_at=None)
    alike = beliefs_in_same_scope(draft=draft).filter(Q(status=BeliefStatus.ACTIVE) | may_return)
    alike = alike.exclude(pk__in=besides)
    return find_equivalent(
        workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector.numbers, among=alike
    )


def beliefs_in_same_scope(*, draft: BeliefDraft) -> BeliefQuerySet:
    """Select the beliefs of a draft's scope and language, whatever their status."""
    beliefs: BeliefQuerySet = Belief.objects.for_workspace(draft.workspace_id).filter(
        project=draft.project_id, user=draft.user, language=draft.language
    )
    return beliefs


def find_suppressed(*, workspace_id: int, candidate: BeliefSource, vector: Vectors | None) -> CreationResult | None:
    """Return the refusal where a person put away or erased what says the same (B22, L4), else None."""
    if was_statement_erased(workspace_id=workspace_id, candidate=candidate):
        return CreationResult(outcome=CreationOutcome.SUPPRESSED)
    if vector is None:
        return None
    tombstone = find_tombstone(workspace_id=workspace_id, candidate=candidate, vector=vector)
    return CreationResult(outcome=CreationOutcome.SUPPRESSED, tombstone=tombstone) if tombstone else None


def _join_equivalent(
    twin: str, said: Sequence[EvidenceInput], author: Author, descent: LineageInput | None
) -> CreationResult:
    [belief] = lock_beliefs([twin])
    record_evidence(said={twin: said}, beliefs=[belief], author=author)
    if descent:
        record_lineage(child=belief, descent=descent, author=author)
    return CreationResult(outcome=CreationOutcome.JOINED, belief=belief)


def build_belief(*, draft: BeliefDraft, author: Author, belief_id: str = "") -> Belief:
    """Return a draft as a belief, not stored yet."""
    now = author.now
    return Belief(
        id=belief_id or new_unused_id(IdKind.BELIEF, Belief),
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
        valid_until=draft.valid_until,
        created_at=now,
        updated_at=now,
        statement_changed_at=now,
        created_in=author.cycle,
    )


def replay_belief(*, draft: BeliefDraft, author: Author, belief_id: str) -> Belief:
    """Store a belief as at its making, under its id, within a replay that the caller rolls back."""
    belief = build_belief(draft=draft, author=author, belief_id=belief_id)
    belief.save(force_insert=True)
    return belief


def replay_creation(*, stood: Belief, event: Any) -> None:
    """Store a belief as it was when somebody made it, as its history tells, within a replay that is rolled back."""
    kept = {name: getattr(stood, name) for name in _IMMUTABLE_COLUMNS}
    told = {name: getattr(event, name) for name in _CREATION_COLUMNS}
    belief = Belief(
        id=stood.pk,
        statement_hash=hash_statement(event.statement, event.subject, event.context),
        updated_at=event.created_at,
        **kept,
        **told,
    )
    belief.save(force_insert=True)
    recompute_beliefs(beliefs=[belief], now=event.created_at)


_IMMUTABLE_COLUMNS = (
    "workspace", "scope", "project", "user", "fact_type", "language", "importance", "is_told", "lineage_depth",
    "created_at", "statement_changed_at",
)  # fmt: skip

_CREATION_COLUMNS = (
    "statement", "subject", "predicate", "context", "timeframe", "status", "status_reason", "is_pinned", "valid_from",
    "valid_until",
)  # fmt: skip


def store_belief(*, belief: Belief, vector: StatementVector | None) -> Belief:
    """Store a new belief with its vector, if it has one, and the row that counts its recalls."""
    belief.save(force_insert=True)
    if vector is not None:
        store_belief_vectors(workspace_id=belief.workspace_id, model=vector.model, vectors={belief.pk: vector.numbers})
    BeliefAccess.objects.create(
        belief=belief, workspace_id=belief.workspace_id, stability=settings.POLICY.strength.initial_stability
    )
    return belief


def draft_successor(*, parents: Sequence[Belief], **said: object) -> BeliefDraft:
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


def find_equivalent(
    *, workspace_id: int, candidate: BeliefSource, vector: Vectors, among: QuerySet[Belief]
) -> str | None:
    """Return the id of the most similar belief that says what a candidate (768) says, None where none does."""
    model = embedder_of(workspace_id)
    threshold = float(model.profile.raw(settings.POLICY.consolidation.twin_similarity))
    alike = find_similar_beliefs(
        workspace_id=workspace_id, among=among, model=model.name, vector=vector, above=threshold
    )
    beliefs = Belief.objects.defer("search").in_bulk(alike)
    for key in alike:
        if says_the_same(left=candidate.claim, right=source_of_belief(belief=beliefs[key]).claim):
            return key
    return None


def find_tombstone(*, workspace_id: int, candidate: BeliefSource, vector: Vectors) -> str | None:
    """Find what says the same and a person archived or had forgotten, where the candidate would be seen (B22)."""
    beliefs = Belief.objects.for_workspace(workspace_id).tombstones().visible_in(candidate.project_id)
    mine = beliefs.filter(user__in=("", candidate.user), language=candidate.language)
    return find_equivalent(workspace_id=workspace_id, candidate=candidate, vector=vector, among=mine)


def was_statement_erased(*, workspace_id: int, candidate: BeliefSource) -> bool:
    """Tell whether a belief was erased that said just this (L4); of another wording nobody can tell."""
    key = Workspace.objects.values_list("erasure_key", flat=True).get(pk=workspace_id)
    if key is None:
        return False
    digest = digest_of_statement(key=bytes(key), user=candidate.user, statement=candidate.statement)
    return bool(Erased.objects.for_workspace(workspace_id).filter(digest=digest).exists())


def supports_without_call(*, episode: SpokenText, statement: SpokenText, similarity: float) -> bool:
    """Tell whether an episode supports a belief without a call; similarity is on the reference scale."""
    above: float = settings.POLICY.consolidation.reinforce_similarity
    return similarity > above and says_the_same(left=episode, right=statement)


def says_the_same(*, left: SpokenText, right: SpokenText) -> bool:
    """Answer the pair question: do two texts say the same? Sure ones alone; two people's "I" are never one (B8.4).

    The reader of this machine is asked, whichever model else is there: it costs no call.
    """
    says_i = is_first_person(left.text) or is_first_person(right.text)
    if says_i and left.speaker.casefold() != right.speaker.casefold():
        return False
    if words_key(left.text) == words_key(right.text):
        return True  # whoever is named as the subject of one of them
    return reader().says_the_same(spoken(left.speaker, left.text), spoken(right.speaker, right.text))


def may_be_related(*, episode: SpokenText, statement: SpokenText, similarity: float) -> bool:
    """Tell whether an episode may have anything to say about a belief: far apart, they share a word at least."""
    near: float = settings.POLICY.consolidation.wordless_similarity
    return similarity >= near or bool(_telling_words(episode) & _telling_words(statement))


def _telling_words(said: SpokenText) -> set[str]:
    return {word.casefold() for word in list_words(said.text)} - FUNCTION_WORDS


_BELIEF_COLUMNS = (
    "id", "statement", "statement_hash", "subject", "context", "language", "project_id", "user", "status",
    "valid_until",
)  # fmt: skip


def source_of_belief(*, belief: Belief) -> BeliefSource:
    """Return a belief as it is compared with others."""
    return BeliefSource(**{name: getattr(belief, name) for name in _BELIEF_COLUMNS})


def read_beliefs_with_vectors(*, beliefs: QuerySet[Belief], model: str) -> tuple[list[BeliefSource], Vectors]:
    """Read the beliefs that have a vector of this model, by id: rows and vectors (n, 768)."""
    found = {row["id"]: BeliefSource(**row) for row in beliefs.values(*_BELIEF_COLUMNS)}
    ids, vectors = read_belief_vectors(model=model, ids=list(found))
    return [found[key] for key in ids], vectors


def hash_statement(statement: str, subject: str, context: str = "general") -> str:
    """Hash what a verdict was about, as the prompt has it: the statement, whom it speaks of, and where it holds."""
    return hashlib.sha256(f"{subject}\n{statement}\n{context}".encode()).hexdigest()


def cosine_matrix(left: Vectors, right: Vectors) -> Vectors:
    """Return the raw cosines of unit vectors (n, d) and (m, d) as (n, m)."""
    product: Vectors = left @ right.T if len(left) and len(right) else np.zeros((len(left), len(right)), np.float32)
    return product
