"""Beliefs as they are compared with each other and with what is said: statements beside their vectors."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import QuerySet

from memory.domain.changes import was_over
from memory.domain.matching import Claim as Text
from memory.llm.requests import StatedBelief
from memory.models import Belief
from memory.models.vectors import Vectors, read_belief_vectors

_CLAIM = "claim "  # before the number of a claim that stands where a belief's id would


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
    def claim_id(self) -> int | None:
        """Return the claim that this is as long as it has founded nothing, None for a belief."""
        return claim_of(self.id)

    @property
    def claim(self) -> Text:
        """Return the statement as the guard compares it; whom it speaks of is its subject."""
        return Text(text=self.statement, speaker=self.subject, language=self.language)

    def was_over(self, *, at: datetime) -> bool:
        """Tell whether it was closed as of a time (C2)."""
        return was_over(status=self.status, valid_until=self.valid_until, at=at)

    def as_stated(self) -> StatedBelief:
        """Return the belief as a model sees it."""
        return StatedBelief(
            statement=self.statement, subject=self.subject, context=self.context, language=self.language, id=self.id
        )


_BELIEF_COLUMNS = (
    "id", "statement", "statement_hash", "subject", "context", "language", "project_id", "user", "status",
    "valid_until",
)  # fmt: skip


def source_of_belief(*, belief: Belief) -> BeliefSource:
    """Return a belief as it is compared with others."""
    return BeliefSource(**{name: getattr(belief, name) for name in _BELIEF_COLUMNS})


def read_beliefs(*, beliefs: QuerySet[Belief], model: str) -> tuple[list[BeliefSource], Vectors]:
    """Read the beliefs that have a vector of this model, by id: rows and vectors (n, 768)."""
    found = {row["id"]: BeliefSource(**row) for row in beliefs.values(*_BELIEF_COLUMNS)}
    ids, vectors = read_belief_vectors(model=model, ids=list(found))
    return [found[key] for key in ids], vectors


def claim_of(key: str) -> int | None:
    """Return the claim that a key names, None where it names a belief."""
    return int(key.removeprefix(_CLAIM)) if key.startswith(_CLAIM) else None


def claim_key(claim_id: int) -> str:
    """Name a claim where beliefs are named."""
    return f"{_CLAIM}{claim_id}"


def hash_statement(statement: str, subject: str, context: str = "general") -> str:
    """Hash what a verdict was about, as the prompt has it: the statement, whom it speaks of, and where it holds."""
    return hashlib.sha256(f"{subject}\n{statement}\n{context}".encode()).hexdigest()


def similarities(left: Vectors, right: Vectors) -> Vectors:
    """Return the raw cosines of unit vectors (n, d) and (m, d) as (n, m)."""
    product: Vectors = left @ right.T if len(left) and len(right) else np.zeros((len(left), len(right)), np.float32)
    return product
