"""Read what belongs to memories that were found: texts, claims, times, supersessions and linked memories."""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from django.db import connection
from pgvector import HalfVector

from memory.domain.graph import EdgeKind, WalkedEdge
from memory.domain.policy_memories import GraphPolicy
from memory.domain.taxonomy import EVIDENCE_MODES
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.prepared import run_prepared
from memory.search.scope import (
    BELIEF_SCOPE,
    BELIEF_SEEN,
    EPISODE_SCOPE,
    EPISODE_SEEN,
    LIVE_BELIEF,
    LIVE_EPISODE,
    SearchScope,
    VectorMethod,
)
from memory.search.statements import (
    EPISODE_COLUMNS,
    SearchQuery,
    join_vectors,
    row_columns,
    search_parameters,
    similarity_sql,
    text_score_sql,
    weighted_similarity_sql,
)
from memory.search.vectors import Vectors


class MemoryText(NamedTuple):
    """An active memory's words; `kind` is an episode's category, a belief's fact type.

    `dated` is when an episode occurred, when a belief was borne out last; an episode has no confidence. A belief is of
    no session; `is_derived` are summaries, which tell again what was told. It may say since and until when it holds.
    """

    id: str
    text: str
    kind: str
    dated: datetime
    confidence: float | None
    session: str
    is_derived: bool
    valid_from: datetime | None
    valid_until: datetime | None


def read_texts(
    *,
    episodes: Sequence[str],
    beliefs: Sequence[str],
    closed: Sequence[str] = (),
    workspace_id: int,
    allowed: Sequence[int] | None,
) -> dict[str, MemoryText]:
    """Return by id the active ones of these memories, as far as a workspace holds them and a viewer sees them (B21).

    Of the beliefs, those `closed` may have changed since. `allowed` are the projects that the viewer is limited to,
    None for no limit. A kind of which there is none is not looked at.
    """
    parts = [part for part, ids in ((_EPISODE_TEXTS, episodes), (_BELIEF_TEXTS, beliefs)) if ids]
    if not parts:
        return {}
    asked = {
        "episodes": list(episodes),
        "beliefs": list(beliefs),
        "closed": list(closed),
        "workspace": workspace_id,
        "unlimited": allowed is None,
        "allowed": list(allowed or ()),
    }
    rows = run_prepared(statement=" UNION ALL ".join(parts), parameters=asked, keeps_plan=True).fetchall()
    return {row[0]: MemoryText._make(row) for row in rows}


_EPISODE_TEXTS = f"""
    SELECT p.id, p.text, p.category, p.occurred_at, NULL::float8, p.session, p.is_derived,
           NULL::timestamptz, p.valid_until
    FROM memory_episode p
    WHERE p.id = ANY(%(episodes)s::text[]) AND p.workspace_id = %(workspace)s::bigint AND p.status = 'active'
      AND {EPISODE_SEEN.format(row="p")}
"""

_BELIEF_TEXTS = f"""
    SELECT p.id, p.statement, p.fact_type, coalesce(p.last_reinforced_at, p.created_at), p.confidence, '', false,
           p.valid_from, p.valid_until
    FROM memory_belief p
    WHERE p.id = ANY(%(beliefs)s::text[]) AND p.workspace_id = %(workspace)s::bigint
      AND (p.status = 'active' OR (p.status = 'invalidated' AND p.id = ANY(%(closed)s::text[])))
      AND {BELIEF_SEEN.format(row="p")}
"""


class FoundClaim(NamedTuple):
    """A claim of an episode that was found, and its cosine to the query; "" where it asserts nothing."""

    episode: str
    similarity: float
    sentence: str


def read_found_claims(*, episodes: Sequence[str], vector: Vectors, model: str) -> list[FoundClaim]:
    """Return the claims of some episodes that have a vector to compare the query's with."""
    asked = {
        "episodes": list(episodes),
        "modes": sorted(EVIDENCE_MODES),
        "vector": HalfVector(vector),
        "model": model,
    }
    return [FoundClaim._make(row) for row in run_prepared(statement=_FOUND_CLAIMS, parameters=asked, keeps_plan=True)]


class AssertedClaim(NamedTuple):
    """An assertion, the live beliefs that it bears out, and whether it bore out only what was given up since.

    What counts for a belief by the episode's whole text counts for each claim; None where nothing was borne out.
    """

    episode: str
    sentence: str
    words: str
    beliefs: Sequence[str]
    is_given_up: bool | None


def read_assertions(*, episodes: Sequence[str]) -> dict[str, list[AssertedClaim]]:
    """Return by episode what some episodes assert, each in its order."""
    asked = {"episodes": list(episodes), "modes": sorted(EVIDENCE_MODES)}
    found: dict[str, list[AssertedClaim]] = {}
    for row in run_prepared(statement=_ASSERTIONS, parameters=asked, keeps_plan=True):
        found.setdefault(row[0], []).append(AssertedClaim._make(row))
    return found


_FOUND_CLAIMS = """
SELECT c.episode_id, 1 - (v.vector <=> %(vector)b::halfvec),
    CASE WHEN c.mode = ANY(%(modes)s::text[]) THEN c.sentence ELSE '' END
FROM memory_claim c JOIN memory_claimembedding v ON v.claim_id = c.id AND v.model = %(model)s
WHERE c.episode_id = ANY(%(episodes)s::text[])
"""

_ASSERTIONS = """
SELECT c.episode_id, c.sentence, c.words,
    coalesce(array_agg(b.id) FILTER (WHERE b.status IN ('active', 'challenged')), '{}'),
    bool_and(b.status IN ('revised', 'invalidated'))
FROM memory_claim c
LEFT JOIN memory_evidence e ON e.episode_id = c.episode_id AND e.verdict = 'SUPPORTS'
    AND (e.claim_id = c.id OR e.claim_id IS NULL)
LEFT JOIN memory_belief b ON b.id = e.belief_id
WHERE c.episode_id = ANY(%(episodes)s::text[]) AND c.mode = ANY(%(modes)s::text[])
GROUP BY c.id ORDER BY c.episode_id, c.number
"""


class EvidenceLookup(NamedTuple):
    """The belief in the place of what an episode says, by that episode; the episodes that a belief rests on."""

    successions: dict[str, str]
    resting: dict[str, set[str]]


def look_up_evidence(
    *, episodes: Sequence[str], rivals: Sequence[str], beliefs: Sequence[str], reach: SearchScope, at: datetime | None
) -> EvidenceLookup:
    """Return which of the episodes were superseded, and by which live belief within reach: the newest (B21).

    Also which of the beliefs rest on which of the `rivals`; one that rests on none is left out. `at` asks which were
    superseded then, None which are; of the past, what was undone since counts as never done.
    """
    asked = {"episodes": list(episodes), "rivals": list(rivals), "beliefs": list(beliefs), "at": at}
    statement = reach.resolve(_EVIDENCE_NOW if at is None else _EVIDENCE_THEN)
    rows = run_prepared(statement=statement, parameters=asked | reach.parameters(), keeps_plan=at is None).fetchall()
    bearing = EvidenceLookup(successions={}, resting={})
    for episode, belief, is_succession in rows:
        if is_succession:
            bearing.successions[episode] = belief
        else:
            bearing.resting.setdefault(belief, set()).add(episode)
    return bearing


# What takes the place of a belief: its revision, what a person or a later word put there; further on also what these
# were merged into or split. A belief about beliefs takes nobody's place. An episode that bears out the refused part of
# a split belief says nothing that was given up.
_EVIDENCE_STATEMENT = """
WITH RECURSIVE line (episode_id, belief_id, status) AS (
    SELECT e.episode_id, c.id, {child_status}
    FROM memory_evidence e
    JOIN memory_belief b ON b.id = e.belief_id
    JOIN memory_lineage l ON l.parent_id = b.id AND l.kind IN ('revision', 'supersession') {line_known}
    JOIN memory_belief c ON c.id = l.child_id
    WHERE e.episode_id = ANY(%(episodes)s::text[]) AND e.workspace_id = %(workspace)s::bigint
      AND e.verdict = 'SUPPORTS' AND {parent_status} IN ('revised', 'invalidated') {word_known}
    UNION
    SELECT line.episode_id, c.id, {child_status}
    FROM line
    JOIN memory_lineage l ON l.parent_id = line.belief_id AND l.kind <> 'synthesis' {line_known}
    JOIN memory_belief c ON c.id = l.child_id
    WHERE line.status NOT IN ('active', 'challenged')
)
(
SELECT DISTINCT ON (line.episode_id) line.episode_id, line.belief_id, true
FROM line JOIN memory_belief c ON c.id = line.belief_id
WHERE line.status IN ('active', 'challenged') AND {seen}
  AND NOT EXISTS (
    SELECT FROM memory_evidence e JOIN memory_belief b ON b.id = e.belief_id
    WHERE e.episode_id = line.episode_id AND e.verdict IN ('SUPPORTS', 'PARTIAL')
      AND {parent_status} IN ('active', 'challenged') {word_known})
ORDER BY line.episode_id, c.created_at DESC, c.id
)
UNION ALL
SELECT episode_id, belief_id, false FROM memory_evidence
WHERE episode_id = ANY(%(rivals)s::text[]) AND belief_id = ANY(%(beliefs)s::text[])
"""

_STATUS_THEN = """(
    SELECT h.status FROM memory_beliefevent h WHERE h.pgh_obj_id = {row}.id AND h.updated_at <= %(at)s::timestamptz
    ORDER BY h.pgh_id DESC LIMIT 1)"""
_KNOWN_THEN = "AND {row}.created_at <= %(at)s::timestamptz"
_SUCCESSOR_SEEN = f"{BELIEF_SCOPE} AND {BELIEF_SEEN}".format(row="c")
_EVIDENCE_NOW = _EVIDENCE_STATEMENT.format(
    parent_status="b.status", child_status="c.status", line_known="", word_known="", seen=_SUCCESSOR_SEEN
)

_EVIDENCE_THEN = _EVIDENCE_STATEMENT.format(
    parent_status=_STATUS_THEN.format(row="b"),
    child_status=_STATUS_THEN.format(row="c"),
    line_known=_KNOWN_THEN.format(row="l"),
    word_known=_KNOWN_THEN.format(row="e"),
    seen=_SUCCESSOR_SEEN,
)


def read_belief_validity(*, beliefs: Sequence[str]) -> dict[str, tuple[datetime | None, datetime | None]]:
    """Return since and until when those of some beliefs hold that say either."""
    rows = run_prepared(statement=_BELIEF_VALIDITY, parameters={"beliefs": list(beliefs)}, keeps_plan=True)
    return {key: (since, until) for key, since, until in rows}


class EpisodeTimes(NamedTuple):
    """When an episode occurred, and when what it tells of began: the day that it announces a change for, if any."""

    occurred_at: datetime
    began_at: datetime


def read_episode_times(*, episodes: Sequence[str]) -> dict[str, EpisodeTimes]:
    """Return by id the times of some episodes."""
    rows = run_prepared(statement=_EPISODE_TIMES, parameters={"episodes": list(episodes)}, keeps_plan=True)
    return {key: EpisodeTimes(occurred_at, began_at) for key, occurred_at, began_at in rows}


_BELIEF_VALIDITY = """
SELECT id, valid_from, valid_until FROM memory_belief
WHERE id = ANY(%(beliefs)s::text[]) AND (valid_from IS NOT NULL OR valid_until IS NOT NULL)
"""

_EPISODE_TIMES = """
SELECT e.id, e.occurred_at, coalesce(
    (SELECT min(c.holds_from)::timestamp AT TIME ZONE 'UTC' FROM memory_claim c
     WHERE c.episode_id = e.id AND c.mode = 'change'), e.occurred_at)
FROM memory_episode e WHERE e.id = ANY(%(episodes)s::text[])
"""


def walk_edges(*, reach: SearchScope, seeds: Sequence[str], policy: GraphPolicy) -> list[WalkedEdge]:
    """Walk the strongest edges from seeds, hop by hop; what the reach does not hold is not walked through either."""
    parameters = reach.parameters() | {
        "seeds": list(seeds),
        "cut": policy.cut,
        "fanout": policy.fanout,
        "frontier": policy.frontier,
    }
    rows = run_prepared(
        statement=reach.resolve(_walk_statement(policy.hops)), parameters=parameters, keeps_plan=reach.projects is None
    ).fetchall()
    return [
        WalkedEdge(origin=origin, target=target, kind=EdgeKind(kind), weight=weight, confidence=confidence, hop=hop)
        for origin, target, kind, weight, confidence, hop in rows
    ]


def read_episode_candidates(*, reach: SearchScope, query: SearchQuery, ids: Sequence[str]) -> list[EpisodeCandidate]:
    """Return the named episodes of a reach as a search would have found them, in no order."""
    parameters: Mapping[str, object] = search_parameters(
        reach=reach, query=query, candidates=len(ids), matching=len(ids)
    ) | {"ids": list(ids)}
    statement = _candidates_statement(has_vector=query.vector is not None, is_weighted=query.weighted is not None)
    cursor = run_prepared(statement=reach.resolve(statement), parameters=parameters, keeps_plan=reach.projects is None)
    return [EpisodeCandidate._make(row) for row in cursor.fetchall()]


@cache
def _walk_statement(hops: int) -> str:
    """Write out every hop: each follows so many edges altogether, and none from a memory that was reached before."""
    parts = ["hop_0 AS (SELECT unnest(%(seeds)s::text[]) AS id)"]
    for hop in range(1, hops + 1):
        parts += [
            f"step_{hop} AS MATERIALIZED ({_step_statement(hop - 1)})",
            f"hop_{hop} AS ({_frontier_statement(hop)})",
        ]
    steps = " UNION ALL ".join(
        f"SELECT origin, target, kind, weight, confidence, {hop} FROM step_{hop}" for hop in range(1, hops + 1)
    )
    return f"WITH {', '.join(parts)} {steps}"


def _step_statement(hop: int) -> str:
    """Follow edges from what was reached at a hop: from seeds to each other, too, and later on never back."""
    onward = f"AND p.id NOT IN ({_seen_statement(hop)})" if hop else ""
    return f"""
        SELECT h.id AS origin, n.id AS target, n.kind, n.weight, n.confidence
        FROM hop_{hop} h CROSS JOIN LATERAL (
            SELECT p.id, e.kind, e.weight, e.confidence
            FROM ({_edges_statement("source", "target")} UNION ALL {_edges_statement("target", "source")}) e
            CROSS JOIN LATERAL (
                SELECT p.id FROM memory_episode p
                WHERE p.id = e.id {onward} AND {EPISODE_SCOPE.format(row="p")} AND {LIVE_EPISODE.format(row="p")}
                OFFSET 0
            ) p
            ORDER BY e.weight * e.confidence DESC, p.id LIMIT %(fanout)s
        ) n
        ORDER BY n.weight * n.confidence DESC, h.id, n.id LIMIT %(frontier)s
    """


def _edges_statement(here: str, there: str) -> str:
    """Take the edges of one direction: a name that many say gives a memory few edges, so that all can be looked at."""
    return f"""
        SELECT {there}_id AS id, kind, weight, coalesce(confidence, 1) AS confidence FROM memory_edge
        WHERE {here}_id = h.id AND coalesce(confidence, 1) >= %(cut)s::float8
    """


def _frontier_statement(hop: int) -> str:
    onward = "" if hop > 1 else f"WHERE target NOT IN ({_seen_statement(0)})"
    return f"SELECT DISTINCT target AS id FROM step_{hop} {onward}"


def _seen_statement(hop: int) -> str:
    """Name what was reached up to a hop."""
    return " UNION ALL ".join(f"SELECT id FROM hop_{before}" for before in range(hop + 1))


@cache
def _candidates_statement(*, has_vector: bool, is_weighted: bool) -> str:
    """Look each memory up by itself (OFFSET 0) and by its key: the planner would rather read all that there are."""
    arm = VectorMethod.JOIN if has_vector else VectorMethod.NONE
    scope = EPISODE_SCOPE.format(row="p").replace("p.workspace_id =", "p.workspace_id + 0 =")  # which no index has
    return f"""
        SELECT p.id, {similarity_sql(arm)} AS similarity, s.score AS text_score, s.coverage, s.telling,
            0::float8 AS context_score, {EPISODE_COLUMNS},
            {weighted_similarity_sql(arm, is_weighted=is_weighted)} AS weighted_similarity
        FROM unnest(%(ids)s::text[]) AS i(id)
        CROSS JOIN LATERAL (
            SELECT p.id, {row_columns("episode", "p")}
            FROM memory_episode p
            WHERE p.id = i.id AND {scope} AND {LIVE_EPISODE.format(row="p")} OFFSET 0
        ) p
        {text_score_sql("p")}
        {join_vectors("episode", arm)}
    """


_LINKED_BELIEFS = f"""
SELECT l.via, l.similarity,
       b.id, NULL::float8, 0::float8, 0::float8, 0::float8, b.confidence, b.created_at, a.accessed_at, a.stability
FROM (
    SELECT belief_id AS via, other_id AS id, similarity FROM memory_link
    WHERE belief_id = ANY(%(ids)s::text[]) AND kind <> 'duplicate'
    UNION ALL
    SELECT other_id, belief_id, similarity FROM memory_link
    WHERE other_id = ANY(%(ids)s::text[]) AND kind <> 'duplicate'
) l
JOIN memory_belief b ON b.id = l.id
LEFT JOIN memory_beliefaccess a ON a.belief_id = b.id
WHERE {BELIEF_SCOPE.format(row="b")} AND {LIVE_BELIEF.format(row="b")}
ORDER BY l.similarity DESC, b.id
"""


class LinkedBelief(NamedTuple):
    """A belief, the one whose link leads to it, and the link's similarity on the reference scale."""

    via: str
    similarity: float
    belief: BeliefCandidate


def find_linked_beliefs(*, reach: SearchScope, beliefs: Sequence[str], min_confidence: float) -> list[LinkedBelief]:
    """Find what is linked with some beliefs, in either direction; the nearest first."""
    parameters = reach.parameters() | {"ids": list(beliefs), "min_confidence": min_confidence}
    with connection.cursor() as cursor:
        cursor.execute(reach.resolve(_LINKED_BELIEFS), parameters)
        return [LinkedBelief(row[0], row[1], BeliefCandidate(*row[2:])) for row in cursor.fetchall()]
