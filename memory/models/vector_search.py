"""Searches that need pgvector's operators: candidates by vector and by text, each kind in one statement."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from pgvector import HalfVector

from memory.models.reach import Reach
from memory.models.search_statements import VectorArm, beliefs_statement, episodes_statement
from memory.models.vectors import Vectors, raw_cursor

_SLACK = 2  # nearest vectors looked at for each candidate wanted: what they stand for may be over, or doubted


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A query's lexemes, each with the number of its word and that word's weight; together they weigh `mass`.

    `rare` is the tsquery, of any configuration, that a row must satisfy to become a candidate.
    """

    lexemes: tuple[str, ...]
    words: tuple[int, ...]
    weights: tuple[float, ...]
    mass: float
    mean_length: float
    rare: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for, and by which arms: a vector of `model` (None: by text alone), and words (None: by vector).

    `arm` is NONE where there is no vector.
    """

    vector: Vectors | None
    model: str
    words: Words | None
    arm: VectorArm = VectorArm.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeCandidate:
    """A found episode; similarity is the raw cosine, None where it has no vector of the model.

    `coverage` is the share of the query's weight that its own words have, `context_score` what it takes from matches
    beside it.
    """

    id: str
    similarity: float | None
    text_score: float
    coverage: float
    context_score: float
    lifecycle_state: str = ""
    verification: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefCandidate:
    """A found belief, with what its score is made of."""

    id: str
    similarity: float | None
    text_score: float
    coverage: float
    confidence: float
    created_at: datetime
    accessed_at: datetime | None
    stability: float | None


Candidate = TypeVar("Candidate", EpisodeCandidate, BeliefCandidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Generic[Candidate]):
    """What a search found; `is_short` if the vector arm may have left out some that its scope holds."""

    found: list[Candidate]
    is_short: bool


def search_episodes(
    *, reach: Reach, query: SearchQuery, candidates: int, scored: int, context: tuple[float, float]
) -> Candidates[EpisodeCandidate]:
    """Find the episodes nearest by vector and those best by text, at most `candidates` of each, and what is beside.

    Of those that match, at most `scored` are compared. `context` are the shares of a match's text score for what stands
    next to it in its session, and for what comes after that, in either direction.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, scored=scored)
    parameters |= {"next_share": context[0], "second_share": context[1]}
    statement = episodes_statement(arm=query.arm, is_by_text=query.words is not None)
    return fetch_candidates(kind=EpisodeCandidate, statement=statement, parameters=parameters, arm=query.arm)


def search_beliefs(
    *, reach: Reach, query: SearchQuery, candidates: int, scored: int, min_confidence: float
) -> Candidates[BeliefCandidate]:
    """Find the active beliefs above a confidence nearest by vector and best by text, at most `candidates` of each."""
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, scored=scored)
    parameters |= {"min_confidence": min_confidence}
    statement = beliefs_statement(arm=query.arm, is_by_text=query.words is not None)
    return fetch_candidates(kind=BeliefCandidate, statement=statement, parameters=parameters, arm=query.arm)


def fetch_candidates(
    *, kind: type[Candidate], statement: bytes, parameters: dict[str, Any], arm: VectorArm
) -> Candidates[Candidate]:
    """Run a statement that is never prepared: a generic plan would not know how much a scope holds."""
    with raw_cursor() as cursor:
        rows = cursor.execute(statement, parameters, prepare=False).fetchall()
        names = [column.name for column in cursor.description or ()][2:]
    found = [kind(**dict(zip(names, values, strict=True))) for _, _, *values in rows]
    return Candidates(found=found, is_short=_is_short(rows, arm, parameters))


def _is_short(rows: list[Any], arm: VectorArm, parameters: dict[str, Any]) -> bool:
    """Tell from how many vectors were looked at, and how many of them count, whether there may be more that count.

    An index gives up before it has seen all. A scan has seen all if it found less than it was asked for. Of what found
    nothing nobody knows.
    """
    if arm in (VectorArm.NONE, VectorArm.JOIN):
        return False
    if not rows:
        return True
    seen, near = rows[0][:2]
    return bool(near < parameters["candidates"] and (arm.is_index or seen == parameters["seen"]))


def search_parameters(*, reach: Reach, query: SearchQuery, candidates: int, scored: int) -> dict[str, Any]:
    """Return what the statements of a search name, but for what one kind alone is asked."""
    words = query.words
    return reach.parameters() | {
        "model": query.model,
        "vector": None if query.vector is None else HalfVector(query.vector),
        "candidates": candidates,
        "seen": candidates * _SLACK,
        "scored": scored,
        "rare": words.rare if words else "",
        "lexemes": list(words.lexemes) if words else [],
        "words": list(words.words) if words else [],
        "weights": list(words.weights) if words else [],
        "mass": (words.mass if words else 0) or 1.0,
        "mean_length": words.mean_length if words else 1.0,
    }
