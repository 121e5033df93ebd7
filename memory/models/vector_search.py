"""Searches that need pgvector's operators: candidates by vector and by text, each kind in one statement.

Text is matched by any of the query's words and scored by BM25 (Robertson and Zaragoza 2009) with k₁ = 1.2, b = 0.75.
What was said beside a match, in the same session, takes a share of its score: answers stand beside their questions.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from pgvector import HalfVector
from psycopg.rows import class_row

from memory.models.vectors import Vectors, raw_cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The rows that a search may find: `projects` None for all, `allowed` None for a viewer without limit.

    `occurred` is from when on and before when things happened; `categories` and `fact_types` are those of episodes and
    of beliefs; each None for no limit.
    """

    workspace_id: int
    projects: tuple[int, ...] | None
    allowed: tuple[int, ...] | None
    user: str
    now: datetime
    agent: str = ""
    occurred: tuple[datetime | None, datetime | None] = (None, None)
    categories: tuple[str, ...] | None = None
    fact_types: tuple[str, ...] | None = None
    with_expired: bool = False
    hidden_states: tuple[str, ...] = ()


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
    """What is looked for: a vector of `model` (None: by text alone), and words."""

    vector: Vectors | None
    model: str
    words: Words


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


def search_episodes(
    *, reach: Reach, query: SearchQuery, candidates: int, context: tuple[float, float]
) -> list[EpisodeCandidate]:
    """Find the episodes nearest by vector and those best by text, at most `candidates` of each, and what is beside.

    `context` are the shares of a match's text score for what stands next to it in its session, and for what comes after
    that, in either direction.
    """
    parameters = search_parameters(reach, query, candidates)
    parameters |= {"next_share": context[0], "second_share": context[1]}
    return fetch_candidates(EpisodeCandidate, _EPISODES, parameters)


def search_beliefs(
    *, reach: Reach, query: SearchQuery, candidates: int, min_confidence: float
) -> list[BeliefCandidate]:
    """Find the active beliefs above a confidence nearest by vector and best by text, at most `candidates` of each."""
    parameters = search_parameters(reach, query, candidates) | {"min_confidence": min_confidence}
    return fetch_candidates(BeliefCandidate, _BELIEFS, parameters)


def fetch_candidates(kind: type[Candidate], statement: bytes, parameters: dict[str, Any]) -> list[Candidate]:
    """Run a statement that is never prepared: a generic plan would not know how much a scope holds."""
    with raw_cursor() as cursor:
        cursor.row_factory = class_row(kind)
        return cursor.execute(statement, parameters, prepare=False).fetchall()


def search_parameters(reach: Reach, query: SearchQuery, candidates: int) -> dict[str, Any]:
    return {
        "workspace": reach.workspace_id,
        "everything": reach.projects is None,
        "projects": list(reach.projects or ()),
        "unlimited": reach.allowed is None,
        "allowed": list(reach.allowed or ()),
        "user": reach.user,
        "now": reach.now,
        "agent": reach.agent,
        "occurred_from": reach.occurred[0],
        "occurred_until": reach.occurred[1],
        "categories": None if reach.categories is None else list(reach.categories),
        "fact_types": None if reach.fact_types is None else list(reach.fact_types),
        "with_expired": reach.with_expired,
        "hidden_states": list(reach.hidden_states),
        "model": query.model,
        "vector": None if query.vector is None else HalfVector(query.vector),
        "candidates": candidates,
        "rare": query.words.rare,
        "lexemes": list(query.words.lexemes),
        "words": list(query.words.words),
        "weights": list(query.words.weights),
        "mass": query.words.mass or 1.0,
        "mean_length": query.words.mean_length,
    }


def bm25(row: str) -> str:
    """Score a row's text, and tell the share of the query that it covers; a lateral table named s."""
    return f"""CROSS JOIN LATERAL (
        SELECT coalesce(sum(w.weight * w.times * 2.2
                            / (w.times + 1.2 * (0.25 + 0.75 * length({row}.search) / %(mean_length)s))), 0)::float8
                   AS score,
               (coalesce(sum(w.weight), 0) / %(mass)s)::float8 AS coverage
        FROM (
            SELECT max(q.weight) AS weight, sum(cardinality(u.positions)) AS times
            FROM unnest({row}.search) u
            JOIN unnest(%(words)s::int[], %(lexemes)s::text[], %(weights)s::float8[]) AS q(word, lexeme, weight)
                ON q.lexeme = u.lexeme
            GROUP BY q.word
        ) w
    ) s"""  # noqa: S608  (a name of this module; values travel as parameters)


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

_IS_VALID = "(%(with_expired)s OR {row}.valid_until IS NULL OR {row}.valid_until > %(now)s)"
_OCCURRED = """
    (%(occurred_from)s::timestamptz IS NULL OR {row}.occurred_at >= %(occurred_from)s)
    AND (%(occurred_until)s::timestamptz IS NULL OR {row}.occurred_at < %(occurred_until)s)
"""
# What is asked for of episodes, whatever their status.
EPISODE_WANTED = f"""
    {_IS_VALID} AND {_OCCURRED}
    AND (%(agent)s::text = '' OR {{row}}.agent IN ('', %(agent)s))
    AND (%(categories)s::text[] IS NULL OR {{row}}.category = ANY(%(categories)s))
    AND {{row}}.lifecycle_state <> ALL(%(hidden_states)s)
"""
# A belief is of a time if what it rests on occurred then.
BELIEF_WANTED = f"""
    {_IS_VALID} AND (%(fact_types)s::text[] IS NULL OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND (%(occurred_from)s::timestamptz IS NULL AND %(occurred_until)s::timestamptz IS NULL OR EXISTS (
        SELECT FROM memory_evidence t JOIN memory_episode o ON o.id = t.episode_id
        WHERE t.belief_id = {{row}}.id AND t.base_weight > 0 AND {_OCCURRED.format(row="o")}))
"""
_LIVE = f"{{row}}.status = 'active' AND {EPISODE_WANTED}"


def _beside(direction: str, order: str, live: str) -> str:
    """Take the two live episodes of a match's session that come next in one direction, and their shares."""
    return f"""(
        SELECT t.id, CASE t.place WHEN 1 THEN %(next_share)s ELSE %(second_share)s END AS share FROM (
            SELECT p.id, row_number() OVER (ORDER BY p.occurred_at {order}, p.number {order}) AS place
            FROM memory_episode p
            WHERE {_EPISODE_SCOPE.format(row="p")} AND {live} AND p.session = m.session
              AND p.project_id IS NOT DISTINCT FROM m.project_id
              AND (p.occurred_at, p.number) {direction} (m.occurred_at, m.number)
            ORDER BY p.occurred_at {order}, p.number {order} LIMIT 2
        ) t
    )"""  # noqa: S608  (as above)


# The inner sort, kept apart by OFFSET 0, lets the join look at rows nearest first and stop at the limit.
_EPISODES_AMONG = """
WITH near AS (
    SELECT e.id FROM (
        SELECT v.episode_id AS id, v.vector <=> %(vector)b::halfvec AS distance
        FROM memory_episodeembedding v
        WHERE {embedding_scope} AND {open_vector} AND v.model = %(model)s AND %(vector)b::halfvec IS NOT NULL
        ORDER BY distance OFFSET 0
    ) e
    JOIN memory_episode p ON p.id = e.id AND {live}
    ORDER BY e.distance LIMIT %(candidates)s
), matching AS MATERIALIZED (
    SELECT p.id, p.session, p.occurred_at, p.number, p.project_id, s.score, s.coverage
    FROM memory_episode p {bm25}
    WHERE {episode_scope} AND {live} AND p.search @@ %(rare)s::tsquery
    ORDER BY s.score DESC, p.id LIMIT %(candidates)s
), beside AS (
    SELECT n.id, sum(m.score * n.share)::float8 AS score
    FROM matching m CROSS JOIN LATERAL ({before} UNION ALL {after}) n
    WHERE m.session <> ''
    GROUP BY n.id
)
SELECT p.id, 1 - (v.vector <=> %(vector)b::halfvec) AS similarity, s.score AS text_score, s.coverage,
    coalesce(b.score, 0) AS context_score, p.lifecycle_state, p.verification
FROM (SELECT id FROM near UNION SELECT id FROM matching UNION SELECT id FROM beside) found
JOIN memory_episode p ON p.id = found.id {bm25}
LEFT JOIN beside b ON b.id = p.id
LEFT JOIN memory_episodeembedding v ON v.episode_id = p.id AND v.model = %(model)s
ORDER BY p.id
"""


def episode_statement(*, live: str, open_vector: str) -> bytes:
    """Build the search for episodes among those that fulfil `live`, and have a vector that fulfils `open_vector`."""
    return _EPISODES_AMONG.format(
        embedding_scope=_EPISODE_SCOPE.format(row="v"),
        open_vector=open_vector,
        episode_scope=_EPISODE_SCOPE.format(row="p"),
        live=live,
        bm25=bm25("p"),
        before=_beside("<", "DESC", live),
        after=_beside(">", "ASC", live),
    ).encode()


_EPISODES = episode_statement(live=_LIVE.format(row="p"), open_vector="v.is_active")

_BELIEFS = """
WITH open AS NOT MATERIALIZED (
    SELECT b.* FROM memory_belief b
    WHERE {scope} AND b.status = 'active' AND b.confidence > %(min_confidence)s
      AND {wanted}
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
    SELECT b.id FROM open b {bm25}
    WHERE b.search @@ %(rare)s::tsquery
    ORDER BY s.score DESC, b.id LIMIT %(candidates)s
)
SELECT b.id, 1 - (v.vector <=> %(vector)b::halfvec) AS similarity, s.score AS text_score, s.coverage, b.confidence,
    b.created_at, a.accessed_at, a.stability
FROM (SELECT id FROM near UNION SELECT id FROM matching) found
JOIN memory_belief b ON b.id = found.id {bm25}
LEFT JOIN memory_beliefembedding v ON v.belief_id = b.id AND v.model = %(model)s
LEFT JOIN memory_beliefaccess a ON a.belief_id = b.id
ORDER BY b.id
""".format(  # noqa: S608  (as above)
    scope=_BELIEF_SCOPE.format(row="b"), wanted=BELIEF_WANTED.format(row="b"), bm25=bm25("b")
).encode()
