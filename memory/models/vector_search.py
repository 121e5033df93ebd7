"""Searches that need pgvector's operators: candidates by vector and by text, each kind in one statement.

Scopes are scanned exactly, through btree(workspace, project, is_active). Text is matched by any of the query's words,
in each row's own language; asking for all of them would find nothing for a question of ten words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from pgvector import HalfVector
from psycopg.rows import class_row

from memory.models.fulltext import CONFIGURATIONS, UNKNOWN_CONFIGURATION
from memory.models.vectors import Vectors, raw_cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The rows that a search may find: `projects` None for all, `allowed` None for a viewer without limit."""

    workspace_id: int
    projects: tuple[int, ...] | None
    allowed: tuple[int, ...] | None
    user: str
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A tsquery for each text search configuration, and one of all their lexemes, which an index can answer."""

    by_configuration: Mapping[str, str]
    of_any: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for: a vector of `model` (None: by text alone), and words."""

    vector: Vectors | None
    model: str
    words: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeCandidate:
    """A found episode; similarity is the raw cosine, None where it has no vector of the model."""

    id: str
    similarity: float | None
    text_score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefCandidate:
    """A found belief, with what its score is made of."""

    id: str
    similarity: float | None
    text_score: float
    confidence: float
    created_at: datetime
    accessed_at: datetime | None
    stability: float | None


Candidate = TypeVar("Candidate", EpisodeCandidate, BeliefCandidate)


def search_episodes(*, reach: Reach, query: SearchQuery, candidates: int) -> list[EpisodeCandidate]:
    """Find the episodes nearest by vector and those best by text, at most `candidates` of each."""
    return _fetch(EpisodeCandidate, _EPISODES, _parameters(reach, query, candidates))


def search_beliefs(
    *, reach: Reach, query: SearchQuery, candidates: int, min_confidence: float
) -> list[BeliefCandidate]:
    """Find the active beliefs above a confidence nearest by vector and best by text, at most `candidates` of each."""
    parameters = _parameters(reach, query, candidates) | {"min_confidence": min_confidence}
    return _fetch(BeliefCandidate, _BELIEFS, parameters)


def _fetch(kind: type[Candidate], statement: bytes, parameters: dict[str, Any]) -> list[Candidate]:
    """Run a statement that is never prepared: a generic plan would not know how much a scope holds."""
    with raw_cursor() as cursor:
        cursor.row_factory = class_row(kind)
        return cursor.execute(statement, parameters, prepare=False).fetchall()


def _parameters(reach: Reach, query: SearchQuery, candidates: int) -> dict[str, Any]:
    return {
        "workspace": reach.workspace_id,
        "everything": reach.projects is None,
        "projects": list(reach.projects or ()),
        "unlimited": reach.allowed is None,
        "allowed": list(reach.allowed or ()),
        "user": reach.user,
        "now": reach.now,
        "model": query.model,
        "vector": None if query.vector is None else HalfVector(query.vector),
        "candidates": candidates,
        "any_text": query.words.of_any,
        **{f"text_{configuration}": text for configuration, text in query.words.by_configuration.items()},
    }


def _by_language(column: str) -> str:
    """Choose the tsquery of a row's own language: words are stemmed as the row's were."""
    cases = " ".join(
        f"WHEN '{language}' THEN %(text_{configuration})s::tsquery"
        for language, configuration in CONFIGURATIONS.items()
    )
    return f"CASE {column} {cases} ELSE %(text_{UNKNOWN_CONFIGURATION})s::tsquery END"


_EPISODE_SCOPE = """
    {row}.workspace_id = %(workspace)s
    AND (%(everything)s OR {row}.project_id = ANY(%(projects)s) OR (%(unlimited)s AND {row}.project_id IS NULL))
    AND (%(user)s::text = '' OR {row}."user" IN ('', %(user)s))
"""
_BELIEF_SCOPE = """
    {row}.workspace_id = %(workspace)s
    AND (%(everything)s OR {row}.project_id = ANY(%(projects)s) OR {row}.project_id IS NULL)
    AND (%(user)s::text = '' OR {row}."user" IN ('', %(user)s))
"""

# The inner sort, kept apart by OFFSET 0, lets the join look at rows nearest first and stop at the limit.
_EPISODES = """
WITH near AS (
    SELECT e.id FROM (
        SELECT v.episode_id AS id, v.vector <=> %(vector)b::halfvec AS distance
        FROM memory_episodeembedding v
        WHERE {embedding_scope} AND v.is_active AND v.model = %(model)s AND %(vector)b::halfvec IS NOT NULL
        ORDER BY distance OFFSET 0
    ) e
    JOIN memory_episode p ON p.id = e.id AND p.status = 'active' AND (p.valid_until IS NULL OR p.valid_until > %(now)s)
    ORDER BY e.distance LIMIT %(candidates)s
), matching AS (
    SELECT p.id FROM memory_episode p
    WHERE {episode_scope} AND p.status = 'active' AND (p.valid_until IS NULL OR p.valid_until > %(now)s)
      AND p.search @@ %(any_text)s::tsquery AND p.search @@ {own_text}
    ORDER BY ts_rank(p.search, {own_text}) DESC, p.id LIMIT %(candidates)s
)
SELECT p.id, 1 - (v.vector <=> %(vector)b::halfvec) AS similarity, ts_rank(p.search, {own_text})::float8 AS text_score
FROM (SELECT id FROM near UNION SELECT id FROM matching) found
JOIN memory_episode p ON p.id = found.id
LEFT JOIN memory_episodeembedding v ON v.episode_id = p.id AND v.model = %(model)s
ORDER BY p.id
""".format(  # noqa: S608  (made of constants of this module; values travel as parameters)
    embedding_scope=_EPISODE_SCOPE.format(row="v"),
    episode_scope=_EPISODE_SCOPE.format(row="p"),
    own_text=_by_language("p.language"),
).encode()

_BELIEFS = """
WITH open AS NOT MATERIALIZED (
    SELECT b.* FROM memory_belief b
    WHERE {scope} AND b.status = 'active' AND b.confidence > %(min_confidence)s
      AND (b.valid_until IS NULL OR b.valid_until > %(now)s)
      AND (%(unlimited)s OR b.project_id IS NOT NULL OR (
        EXISTS (SELECT FROM memory_evidence x WHERE x.belief_id = b.id)
        AND NOT EXISTS (
            SELECT FROM memory_evidence x JOIN memory_episode p ON p.id = x.episode_id
            WHERE x.belief_id = b.id AND (p.project_id IS NULL OR p.project_id <> ALL(%(allowed)s)))))
), near AS (
    SELECT b.id FROM open b JOIN memory_beliefembedding v ON v.belief_id = b.id
    WHERE v.workspace_id = %(workspace)s AND v.is_active AND v.model = %(model)s AND %(vector)b::halfvec IS NOT NULL
    ORDER BY v.vector <=> %(vector)b::halfvec LIMIT %(candidates)s
), matching AS (
    SELECT b.id FROM open b
    WHERE b.search @@ %(any_text)s::tsquery AND b.search @@ {own_text}
    ORDER BY ts_rank(b.search, {own_text}) DESC, b.id LIMIT %(candidates)s
)
SELECT b.id, 1 - (v.vector <=> %(vector)b::halfvec) AS similarity, ts_rank(b.search, {own_text})::float8 AS text_score,
    b.confidence, b.created_at, a.accessed_at, a.stability
FROM (SELECT id FROM near UNION SELECT id FROM matching) found
JOIN memory_belief b ON b.id = found.id
LEFT JOIN memory_beliefembedding v ON v.belief_id = b.id AND v.model = %(model)s
LEFT JOIN memory_beliefaccess a ON a.belief_id = b.id
ORDER BY b.id
""".format(  # noqa: S608  (as above)
    scope=_BELIEF_SCOPE.format(row="b"), own_text=_by_language("b.language")
).encode()
