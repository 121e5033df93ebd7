"""Searches among memories as they stood at a time (R10), and of what held then and is over; by no index.

Looking back is no everyday recall.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from memory.models.fulltext import CONFIGURATIONS, UNKNOWN_CONFIGURATION
from memory.models.numbered import run_numbered
from memory.models.reach import BELIEF_WANTED, CLOSED_BELIEF, EPISODE_WANTED, Reach
from memory.models.search_statements import VectorArm, beliefs_statement, episodes_statement, score_of
from memory.models.vector_search import (
    BeliefCandidate,
    Candidates,
    Context,
    EpisodeCandidate,
    SearchQuery,
    count_words,
    fetch_candidates,
    search_parameters,
)


def search_past_episodes(
    *, reach: Reach, query: SearchQuery, candidates: int, matching: int, context: Context, at: datetime
) -> Candidates[EpisodeCandidate]:
    """Find the episodes stored by then and active then, as `search_episodes` does; none that was forgotten since."""
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= context._asdict() | {"at": at}
    statement = episodes_statement(
        arm=query.arm,
        words=count_words(query),
        live=_LIVE_THEN,
        active="TRUE",
        is_weighted=query.weighted is not None,
    )
    return fetch_candidates(kind=EpisodeCandidate, statement=statement, parameters=parameters, arm=query.arm)


def search_past_beliefs(
    *,
    reach: Reach,
    query: SearchQuery,
    candidates: int,
    matching: int,
    min_confidence: float,
    events: Callable[[], Sequence[int]],
) -> Candidates[BeliefCandidate]:
    """Find among events, each a belief as it stood, the active ones above a confidence that answer a query best.

    Words are looked for in what was stated then. A vector is that of today's statement, so it counts only where that
    is the same; when a belief was recalled is not known of the past, so all count as unread.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence, "events": list(events())}
    return fetch_candidates(kind=BeliefCandidate, statement=_BELIEFS, parameters=parameters, arm=VectorArm.JOIN)


def search_closed_beliefs(
    *,
    reach: Reach,
    query: SearchQuery,
    candidates: int,
    matching: int,
    min_confidence: float,
    span: tuple[datetime | None, datetime | None],
) -> Candidates[BeliefCandidate]:
    """Find the beliefs that changed since and held at some time of a span, either end of which may be open (C2)."""
    arm = VectorArm.NONE if query.vector is None else VectorArm.JOIN
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence, "span_start": span[0], "span_end": span[1]}
    statement = beliefs_statement(arm=arm, words=count_words(query), live=CLOSED_BELIEF, active="TRUE")
    return fetch_candidates(kind=BeliefCandidate, statement=reach.resolve(statement), parameters=parameters, arm=arm)


def read_validity(*, beliefs: Sequence[str]) -> dict[str, tuple[datetime | None, datetime | None]]:
    """Return since and until when those of some beliefs hold that say either."""
    rows = run_numbered(statement=_VALIDITY, parameters={"beliefs": list(beliefs)}, keeps_plan=True)
    return {key: (since, until) for key, since, until in rows}


class Occasion(NamedTuple):
    """When an episode occurred, and when what it tells of began: the day that it announces a change for, if any."""

    occurred_at: datetime
    began_at: datetime


def read_occasions(*, episodes: Sequence[str]) -> dict[str, Occasion]:
    """Return by id the times of some episodes."""
    rows = run_numbered(statement=_OCCASIONS, parameters={"episodes": list(episodes)}, keeps_plan=True)
    return {key: Occasion(occurred_at, began_at) for key, occurred_at, began_at in rows}


_VALIDITY = """
SELECT id, valid_from, valid_until FROM memory_belief
WHERE id = ANY(%(beliefs)s::text[]) AND (valid_from IS NOT NULL OR valid_until IS NOT NULL)
"""
_OCCASIONS = """
SELECT e.id, e.occurred_at, coalesce(
    (SELECT min(c.holds_from)::timestamp AT TIME ZONE 'UTC' FROM memory_claim c
     WHERE c.episode_id = e.id AND c.mode = 'change'), e.occurred_at)
FROM memory_episode e WHERE e.id = ANY(%(episodes)s::text[])
"""
_CASES = " ".join(f"WHEN '{language}' THEN '{name}'" for language, name in CONFIGURATIONS.items())
_CONFIGURATION = f"CASE b.language {_CASES} ELSE '{UNKNOWN_CONFIGURATION}' END"

# The last change up to the time names the status then; before the first one it was what that one changed.
_LIVE_THEN = f"""
    p.created_at <= %(at)s AND p.status <> 'forgotten' AND coalesce(
        (SELECT t.new FROM memory_transition t WHERE t.episode_id = p.id AND t.at <= %(at)s ORDER BY t.id DESC LIMIT 1),
        (SELECT t.old FROM memory_transition t WHERE t.episode_id = p.id ORDER BY t.id LIMIT 1),
        p.status) = 'active' AND {EPISODE_WANTED}
"""  # noqa: S608  (as below)

_BELIEFS = """
WITH open AS MATERIALIZED (
    SELECT b.pgh_obj_id AS id, b.confidence, b.created_at, v.vector <=> %(vector)b::halfvec AS distance,
        to_tsvector(({configuration})::regconfig, concat_ws(' ', b.statement, b.subject, b.predicate, b.context))
            AS search
    FROM (SELECT e.*, e.pgh_obj_id AS id FROM memory_beliefevent e WHERE e.pgh_id = ANY(%(events)s)) b
    JOIN memory_belief now ON now.id = b.id
    LEFT JOIN memory_beliefembedding v ON v.belief_id = b.id AND v.model = %(model)s AND now.statement = b.statement
    WHERE b.status = 'active' AND b.confidence > %(min_confidence)s AND now.status <> 'forgotten' AND {wanted}
), near AS (
    SELECT id FROM open WHERE distance IS NOT NULL ORDER BY distance LIMIT %(candidates)s
), matching AS (
    SELECT b.id FROM open b {score}
    WHERE b.search @@ %(rare)s::tsquery
    ORDER BY s.score DESC, b.id LIMIT %(candidates)s
)
SELECT 0 AS seen, 0 AS near, b.id, 1 - b.distance AS similarity, s.score AS text_score, s.coverage, s.telling,
    b.confidence, b.created_at, NULL::timestamptz AS accessed_at, NULL::float8 AS stability
FROM (SELECT id FROM near UNION SELECT id FROM matching) found
JOIN open b USING (id) {score}
""".format(  # noqa: S608  (names of this module; values travel as parameters)
    configuration=_CONFIGURATION, wanted=BELIEF_WANTED.format(row="b"), score=score_of("b")
)
