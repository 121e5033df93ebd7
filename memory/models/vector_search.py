"""Searches that need pgvector's operators: candidates by vector and by text, each kind in one statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from pgvector import HalfVector

from memory.models.numbered import Constant, run_numbered
from memory.models.reach import Reach
from memory.models.search_statements import Lookup, VectorArm, beliefs_statement, episodes_statement
from memory.models.vector_kinds import filled_dimensions
from memory.models.vectors import Vectors

# Nearest vectors looked at for each candidate wanted: what they stand for may be over, or doubted. A scan gets them for
# nothing, an index goes on searching for them, and further if that was not enough.
_SEEN = {VectorArm.SCAN: 10.0, VectorArm.OWN_INDEX: 1.2, VectorArm.SHARED_INDEX: 1.2}
_SEEN_FURTHER = 10.0
_SCORED = 4  # texts scored in full for each candidate wanted
_MOST_WORDS = 8  # that choose which ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A query's lexemes, each with the number of its word and that word's weight; together they weigh `mass`.

    `telling` is the weight of each lexeme again, 0 where its word tells nothing of what is meant.
    `rare` is the tsquery, of any configuration, that a row must satisfy to become a candidate; `each` are those of the
    single words with their weights, the rarest first. `documents` are all texts of the workspace; `has_waiting` if
    turns of it wait to be read.
    """

    lexemes: tuple[str, ...]
    words: tuple[int, ...]
    weights: tuple[float, ...]
    telling: tuple[float, ...]
    mass: float
    mean_length: float
    rare: str
    each: tuple[tuple[str, float], ...]
    documents: int
    has_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for, and by which arms: a vector of `model` (None: by text alone), and words (None: by vector).

    `weighted` is a vector of the same words, each by how rare it is, where the model has such vectors. `arm` is NONE
    where there is no vector; `is_further` has an index search on among more distant vectors, `effort` is how many it
    keeps in view (None: as many as before). `lookup` is how rows with the words are found. `is_small` where few
    memories of the kind are stored at all.
    """

    vector: Vectors | None
    model: str
    words: Words | None
    weighted: Vectors | None = None
    arm: VectorArm = VectorArm.NONE
    lookup: Lookup = Lookup.PLANNED
    is_further: bool = False
    effort: int | None = None
    is_small: bool = False


class Context(NamedTuple):
    """The shares of a match's text score for what stands next to it in its session, and for what comes after that.

    In either direction, and for so many of the best matches; what comes right after a question has a share of its own.
    """

    next_share: float
    answer_share: float
    second_share: float
    context_matches: int


class EpisodeCandidate(NamedTuple):
    """A found episode; similarity is the raw cosine, None where it has no vector of the model.

    `weighted_similarity` is the cosine with the query's vector of weighted words, if it has one. `coverage` is the
    share of the query's weight that its own words have, `telling` that of the telling ones among them, `context_score`
    what it takes from matches beside it. `length` counts its different words, `opening` is how it begins. A tuple, for
    there are hundreds in each recall: a row of the database becomes one as it is.
    """

    id: str
    similarity: float | None
    text_score: float
    coverage: float
    telling: float
    context_score: float
    session: str = ""
    project_id: int | None = None
    lifecycle_state: str = ""
    verification: str = ""
    source: str = ""
    speaker: str = ""
    length: int = 0
    opening: str = ""
    weighted_similarity: float | None = None


class BeliefCandidate(NamedTuple):
    """A found belief, with what its score is made of; a row of the database as it is."""

    id: str
    similarity: float | None
    text_score: float
    coverage: float
    telling: float
    confidence: float
    created_at: datetime
    accessed_at: datetime | None
    stability: float | None


Candidate = TypeVar("Candidate", EpisodeCandidate, BeliefCandidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Generic[Candidate]):
    """What a search found; `is_short` if the vector arm may have left out some that its scope holds.

    `may_go_further` if that is because of what was nearest and does not count.
    """

    found: list[Candidate]
    is_short: bool
    may_go_further: bool


def search_episodes(
    *, reach: Reach, query: SearchQuery, candidates: int, matching: int, context: Context
) -> Candidates[EpisodeCandidate]:
    """Find the episodes nearest by vector and those best by text, at most `candidates` of each, and what is beside.

    Of those that match, at most `matching` are compared.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= context._asdict()
    statement = episodes_statement(
        arm=query.arm,
        words=count_words(query),
        lookup=query.lookup,
        filled=filled_dimensions(model=query.model),
        is_weighted=query.weighted is not None,
    )
    return _fetch(EpisodeCandidate, reach, query, statement, parameters)


def search_beliefs(
    *, reach: Reach, query: SearchQuery, candidates: int, matching: int, min_confidence: float
) -> Candidates[BeliefCandidate]:
    """Find the active beliefs above a confidence nearest by vector and best by text, at most `candidates` of each."""
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence}
    statement = beliefs_statement(
        arm=query.arm, words=count_words(query), lookup=query.lookup, filled=filled_dimensions(model=query.model)
    )
    return _fetch(BeliefCandidate, reach, query, statement, parameters)


def _fetch(
    kind: type[Candidate], reach: Reach, query: SearchQuery, statement: str, parameters: dict[str, Any]
) -> Candidates[Candidate]:
    """Keep a plan unless it goes by the very words that are asked for, or comes after another that fell short."""
    return fetch_candidates(
        kind=kind,
        statement=reach.resolve(statement),
        parameters=parameters,
        arm=query.arm,
        keeps_plan=query.is_small or (query.lookup != Lookup.PLANNED and query.arm != VectorArm.JOIN),
        constants=_scope(reach, query),
    )


def _scope(reach: Reach, query: SearchQuery) -> dict[str, Constant]:
    """Name whose memories a plan is made for, where it goes by that.

    An index of one workspace would not be in a plan for all, nor that of a model in one for any, and none for a few
    projects in one for all: that would compare all of a workspace.
    """
    if query.is_small:
        return {}
    if reach.projects is None and query.arm != VectorArm.OWN_INDEX:
        return {"model": query.model} if query.arm.is_index else {}
    return {"workspace": reach.workspace_id, "projects": tuple(sorted(reach.projects or ())), "model": query.model}


def fetch_candidates(
    *,
    kind: type[Candidate],
    statement: str,
    parameters: dict[str, Any],
    arm: VectorArm,
    keeps_plan: bool = False,
    constants: Mapping[str, Constant] = MappingProxyType({}),
) -> Candidates[Candidate]:
    """Run a search's statement; its plan is kept only where that would know how much a scope holds."""
    constants = {name: parameters[name] for name in _LIMITS if name in parameters} | dict(constants)
    cursor = run_numbered(statement=statement, parameters=parameters, keeps_plan=keeps_plan, constants=constants)
    rows = cursor.fetchall()
    names = tuple(column.name for column in cursor.description or ())[2:]
    if names != kind._fields:
        raise TypeError(f"The statement gives {names}, a {kind.__name__} has {kind._fields}.")
    found = sorted((kind._make(row[2:]) for row in rows), key=attrgetter("id"))
    seen, near = rows[0][:2] if rows else (parameters["seen"], 0)  # where nothing was found, nobody has counted
    return Candidates(
        found=found,
        is_short=_is_short(arm, is_cut=seen == parameters["seen"], is_enough=near == parameters["candidates"]),
        may_go_further=arm.is_index and seen == parameters["seen"],
    )


# How many rows a part of a statement takes: an index is worth its while for few.
_LIMITS = ("candidates", "seen", "matching", "scored", "context_matches")


def _is_short(arm: VectorArm, *, is_cut: bool, is_enough: bool) -> bool:
    """Tell whether there may be more: a scan that was not cut has seen all, an index gives up before it has."""
    return not is_enough and (arm.is_index or (arm == VectorArm.SCAN and is_cut))


def search_parameters(*, reach: Reach, query: SearchQuery, candidates: int, matching: int) -> dict[str, Any]:
    """Return what the statements of a search name, but for what one kind alone is asked."""
    words = query.words or NO_WORDS
    parameters = reach.parameters() | {
        "model": query.model,
        "vector": None if query.vector is None else HalfVector(query.vector),
        "weighted": None if query.weighted is None else HalfVector(query.weighted),
        "candidates": candidates,
        "seen": round(candidates * (_SEEN_FURTHER if query.is_further else _SEEN.get(query.arm, 1.0))),
        "effort": query.effort,
        "matching": matching,
        "scored": candidates * _SCORED,
        "rare": words.rare,
        "any": " | ".join(word for word, _ in words.each),
        "lexemes": list(words.lexemes),
        "words": list(words.words),
        "weights": list(words.weights),
        "telling": list(words.telling),
        "mass": words.mass or 1.0,
        "mean_length": words.mean_length,
    }
    for number, (word, weight) in enumerate(words.each[:_MOST_WORDS]):
        parameters |= {f"word_{number}": word, f"weight_{number}": weight}
    return parameters


def count_words(query: SearchQuery) -> int:
    """Return by how many words a statement is to choose texts; 0 for no search by text."""
    return len(query.words.each[:_MOST_WORDS]) if query.words else 0


NO_WORDS = Words(lexemes=(), words=(), weights=(), telling=(), mass=0.0, mean_length=1.0, rare="", each=(), documents=0)
