"""Walking from memories along their edges, and no further than a search may reach (L19)."""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Mapping, Sequence
from functools import cache

from memory.domain.edges import EdgeKind
from memory.domain.policy_graph import GraphPolicy
from memory.domain.spreading import Walked
from memory.models.numbered import run_numbered
from memory.models.reach import EPISODE_SCOPE, LIVE_EPISODE, Reach
from memory.models.search_statements import (
    EPISODE_FACTS,
    VectorArm,
    columns_of,
    join_vectors,
    score_of,
    similarity_of,
    weighted_similarity_of,
)
from memory.models.vector_search import EpisodeCandidate, SearchQuery, search_parameters


def walk_edges(*, reach: Reach, seeds: Sequence[str], policy: GraphPolicy) -> list[Walked]:
    """Walk the strongest edges from seeds, hop by hop; what the reach does not hold is not walked through either."""
    parameters = reach.parameters() | {
        "seeds": list(seeds),
        "cut": policy.cut,
        "fanout": policy.fanout,
        "frontier": policy.frontier,
    }
    rows = run_numbered(
        statement=reach.resolve(_walk(policy.hops)), parameters=parameters, keeps_plan=reach.projects is None
    ).fetchall()
    return [
        Walked(origin=origin, target=target, kind=EdgeKind(kind), weight=weight, confidence=confidence, hop=hop)
        for origin, target, kind, weight, confidence, hop in rows
    ]


def read_candidates(*, reach: Reach, query: SearchQuery, ids: Sequence[str]) -> list[EpisodeCandidate]:
    """Return the named episodes of a reach as a search would have found them, in no order."""
    parameters: Mapping[str, object] = search_parameters(
        reach=reach, query=query, candidates=len(ids), matching=len(ids)
    ) | {"ids": list(ids)}
    statement = _linked(has_vector=query.vector is not None, is_weighted=query.weighted is not None)
    cursor = run_numbered(statement=reach.resolve(statement), parameters=parameters, keeps_plan=reach.projects is None)
    return [EpisodeCandidate._make(row) for row in cursor.fetchall()]


@cache
def _walk(hops: int) -> str:
    """Write out every hop: each follows so many edges altogether, and none from a memory that was reached before."""
    parts = ["hop_0 AS (SELECT unnest(%(seeds)s::text[]) AS id)"]
    for hop in range(1, hops + 1):
        parts += [f"step_{hop} AS MATERIALIZED ({_step(hop - 1)})", f"hop_{hop} AS ({_frontier(hop)})"]
    steps = " UNION ALL ".join(
        f"SELECT origin, target, kind, weight, confidence, {hop} FROM step_{hop}" for hop in range(1, hops + 1)
    )
    return f"WITH {', '.join(parts)} {steps}"


def _step(hop: int) -> str:
    """Follow edges from what was reached at a hop: from seeds to each other, too, and later on never back."""
    onward = f"AND p.id NOT IN ({_seen(hop)})" if hop else ""
    return f"""
        SELECT h.id AS origin, n.id AS target, n.kind, n.weight, n.confidence
        FROM hop_{hop} h CROSS JOIN LATERAL (
            SELECT p.id, e.kind, e.weight, e.confidence
            FROM ({_edges("source", "target")} UNION ALL {_edges("target", "source")}) e
            CROSS JOIN LATERAL (
                SELECT p.id FROM memory_episode p
                WHERE p.id = e.id {onward} AND {EPISODE_SCOPE.format(row="p")} AND {LIVE_EPISODE.format(row="p")}
                OFFSET 0
            ) p
            ORDER BY e.weight * e.confidence DESC, p.id LIMIT %(fanout)s
        ) n
        ORDER BY n.weight * n.confidence DESC, h.id, n.id LIMIT %(frontier)s
    """


def _edges(here: str, there: str) -> str:
    """Take the edges of one direction: a name that many say gives a memory few edges, so that all can be looked at."""
    return f"""
        SELECT {there}_id AS id, kind, weight, coalesce(confidence, 1) AS confidence FROM memory_edge
        WHERE {here}_id = h.id AND coalesce(confidence, 1) >= %(cut)s::float8
    """


def _frontier(hop: int) -> str:
    onward = "" if hop > 1 else f"WHERE target NOT IN ({_seen(0)})"
    return f"SELECT DISTINCT target AS id FROM step_{hop} {onward}"


def _seen(hop: int) -> str:
    """Name what was reached up to a hop."""
    return " UNION ALL ".join(f"SELECT id FROM hop_{before}" for before in range(hop + 1))


@cache
def _linked(*, has_vector: bool, is_weighted: bool) -> str:
    """Look each memory up by itself (OFFSET 0) and by its key: the planner would rather read all that there are."""
    arm = VectorArm.JOIN if has_vector else VectorArm.NONE
    scope = EPISODE_SCOPE.format(row="p").replace("p.workspace_id =", "p.workspace_id + 0 =")  # which no index has
    return f"""
        SELECT p.id, {similarity_of(arm)} AS similarity, s.score AS text_score, s.coverage, s.telling,
            0::float8 AS context_score, {EPISODE_FACTS},
            {weighted_similarity_of(arm, is_weighted=is_weighted)} AS weighted_similarity
        FROM unnest(%(ids)s::text[]) AS i(id)
        CROSS JOIN LATERAL (
            SELECT p.id, {columns_of("episode", "p")}
            FROM memory_episode p
            WHERE p.id = i.id AND {scope} AND {LIVE_EPISODE.format(row="p")} OFFSET 0
        ) p
        {score_of("p")}
        {join_vectors("episode", arm)}
    """
