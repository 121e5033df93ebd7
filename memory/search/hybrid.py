"""Search by vector and words: episodes, beliefs, claims and buffered turns, as they are now or as they stood at a time.

A search of the past (R10), and of what held then and is over, uses no index: looking back is no everyday recall.
"""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from pgvector import HalfVector

from memory.domain.taxonomy import Role
from memory.models.conversations import WAITING_STATES
from memory.models.fields import DEFAULT_TEXT_CONFIGURATION, TEXT_CONFIGURATIONS
from memory.search.prepared import Constant, run_prepared
from memory.search.scope import (
    BELIEF_WANTED,
    CLOSED_BELIEF,
    EPISODE_SCOPE,
    EPISODE_WANTED,
    LIVE_EPISODE,
    OCCURRED,
    SearchScope,
    VectorMethod,
)
from memory.search.statements import (
    SET_EFFORT,
    SearchQuery,
    TextMethod,
    beliefs_statement,
    count_words,
    episodes_statement,
    search_parameters,
    text_score_sql,
)
from memory.search.vectors import IN_SHARED_INDEX, Vectors, filled_dimensions, index_order


class ContextShares(NamedTuple):
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
    what it takes from matches beside it. `length` counts its different words. A tuple, for
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
    category: str = ""
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
class SearchHits(Generic[Candidate]):
    """What a search found; `is_short` if the vector arm may have left out some that its scope holds.

    `may_go_further` if that is because of what was nearest and does not count.
    """

    found: list[Candidate]
    is_short: bool
    may_go_further: bool


def search_episodes(
    *, reach: SearchScope, query: SearchQuery, candidates: int, matching: int, context: ContextShares
) -> SearchHits[EpisodeCandidate]:
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
    return _fetch_in_scope(EpisodeCandidate, reach, query, statement, parameters)


def search_beliefs(
    *, reach: SearchScope, query: SearchQuery, candidates: int, matching: int, min_confidence: float
) -> SearchHits[BeliefCandidate]:
    """Find the active beliefs above a confidence nearest by vector and best by text, at most `candidates` of each."""
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence}
    statement = beliefs_statement(
        arm=query.arm, words=count_words(query), lookup=query.lookup, filled=filled_dimensions(model=query.model)
    )
    return _fetch_in_scope(BeliefCandidate, reach, query, statement, parameters)


def _fetch_in_scope(
    kind: type[Candidate], reach: SearchScope, query: SearchQuery, statement: str, parameters: dict[str, Any]
) -> SearchHits[Candidate]:
    """Keep a plan unless it goes by the very words that are asked for, or comes after another that fell short."""
    return fetch_candidates(
        kind=kind,
        statement=reach.resolve(statement),
        parameters=parameters,
        arm=query.arm,
        keeps_plan=query.is_small or (query.lookup != TextMethod.PLANNED and query.arm != VectorMethod.JOIN),
        constants=_plan_constants(reach, query),
    )


def _plan_constants(reach: SearchScope, query: SearchQuery) -> dict[str, Constant]:
    """Name whose memories a plan is made for, where it goes by that.

    An index of one workspace would not be in a plan for all, nor that of a model in one for any, and none for a few
    projects in one for all: that would compare all of a workspace.
    """
    if query.is_small:
        return {}
    if reach.projects is None and query.arm != VectorMethod.OWN_INDEX:
        return {"model": query.model} if query.arm.is_index else {}
    return {"workspace": reach.workspace_id, "projects": tuple(sorted(reach.projects or ())), "model": query.model}


def fetch_candidates(
    *,
    kind: type[Candidate],
    statement: str,
    parameters: dict[str, Any],
    arm: VectorMethod,
    keeps_plan: bool = False,
    constants: Mapping[str, Constant] = MappingProxyType({}),
) -> SearchHits[Candidate]:
    """Run a search's statement; its plan is kept only where that would know how much a scope holds."""
    constants = {name: parameters[name] for name in _ROW_LIMITS if name in parameters} | dict(constants)
    cursor = run_prepared(statement=statement, parameters=parameters, keeps_plan=keeps_plan, constants=constants)
    rows = cursor.fetchall()
    names = tuple(column.name for column in cursor.description or ())[2:]
    if names != kind._fields:
        raise TypeError(f"The statement gives {names}, a {kind.__name__} has {kind._fields}.")
    found = sorted((kind._make(row[2:]) for row in rows), key=attrgetter("id"))
    seen, near = rows[0][:2] if rows else (parameters["seen"], 0)  # where nothing was found, nobody has counted
    return SearchHits(
        found=found,
        is_short=_is_short(arm, is_cut=seen == parameters["seen"], is_enough=near == parameters["candidates"]),
        may_go_further=arm.is_index and seen == parameters["seen"],
    )


# How many rows a part of a statement takes: an index is worth its while for few.
_ROW_LIMITS = ("candidates", "seen", "matching", "scored", "context_matches")


def _is_short(arm: VectorMethod, *, is_cut: bool, is_enough: bool) -> bool:
    """Tell whether there may be more: a scan that was not cut has seen all, an index gives up before it has."""
    return not is_enough and (arm.is_index or (arm == VectorMethod.SCAN and is_cut))


def search_past_episodes(
    *, reach: SearchScope, query: SearchQuery, candidates: int, matching: int, context: ContextShares, at: datetime
) -> SearchHits[EpisodeCandidate]:
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
    reach: SearchScope,
    query: SearchQuery,
    candidates: int,
    matching: int,
    min_confidence: float,
    events: Callable[[], Sequence[int]],
) -> SearchHits[BeliefCandidate]:
    """Find among events, each a belief as it stood, the active ones above a confidence that answer a query best.

    Words are looked for in what was stated then. A vector is that of today's statement, so it counts only where that
    is the same; when a belief was recalled is not known of the past, so all count as unread.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence, "events": list(events())}
    return fetch_candidates(kind=BeliefCandidate, statement=_PAST_BELIEFS, parameters=parameters, arm=VectorMethod.JOIN)


def search_closed_beliefs(
    *,
    reach: SearchScope,
    query: SearchQuery,
    candidates: int,
    matching: int,
    min_confidence: float,
    span: tuple[datetime | None, datetime | None],
) -> SearchHits[BeliefCandidate]:
    """Find the beliefs that changed since and held at some time of a span, either end of which may be open (C2)."""
    arm = VectorMethod.NONE if query.vector is None else VectorMethod.JOIN
    parameters = search_parameters(reach=reach, query=query, candidates=candidates, matching=matching)
    parameters |= {"min_confidence": min_confidence, "span_start": span[0], "span_end": span[1]}
    statement = beliefs_statement(arm=arm, words=count_words(query), live=CLOSED_BELIEF, active="TRUE")
    return fetch_candidates(kind=BeliefCandidate, statement=reach.resolve(statement), parameters=parameters, arm=arm)


_CONFIGURATION_CASES = " ".join(f"WHEN '{language}' THEN '{name}'" for language, name in TEXT_CONFIGURATIONS.items())
_BELIEF_CONFIGURATION = f"CASE b.language {_CONFIGURATION_CASES} ELSE '{DEFAULT_TEXT_CONFIGURATION}' END"

# The last change up to the time names the status then; before the first one it was what that one changed.
_LIVE_THEN = f"""
    p.created_at <= %(at)s AND p.status <> 'forgotten' AND coalesce(
        (SELECT t.new FROM memory_transition t WHERE t.episode_id = p.id AND t.at <= %(at)s ORDER BY t.id DESC LIMIT 1),
        (SELECT t.old FROM memory_transition t WHERE t.episode_id = p.id ORDER BY t.id LIMIT 1),
        p.status) = 'active' AND {EPISODE_WANTED}
"""

_PAST_BELIEFS = """
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
""".format(configuration=_BELIEF_CONFIGURATION, wanted=BELIEF_WANTED.format(row="b"), score=text_score_sql("b"))


def search_claims(
    *, reach: SearchScope, vector: Vectors, model: str, arm: VectorMethod, effort: int | None, candidates: int
) -> list[str]:
    """Return the episodes of a reach that the claims nearest to a vector are of, at most `candidates` of these."""
    asked = reach.parameters() | {
        "vector": HalfVector(vector), "model": model, "effort": effort, "candidates": candidates,
    }  # fmt: skip
    constants: dict[str, Constant] = {"workspace": reach.workspace_id, "model": model, "candidates": candidates}
    rows = run_prepared(
        statement=reach.resolve(_nearest_claims(arm, filled_dimensions(model=model))),
        parameters=asked,
        keeps_plan=True,
        constants=constants,
    )
    return list(dict.fromkeys(key for (key,) in rows))


@cache
def _nearest_claims(arm: VectorMethod, filled: int | None) -> str:
    """Name the episodes of the nearest claims: in the order of an index, or by comparing all of a workspace."""
    distance = "v.vector <=> %(vector)b::halfvec"
    own = f"""
        SELECT v.claim_id, {distance} AS distance FROM memory_claimembedding v
        WHERE v.workspace_id = %(workspace)s::bigint AND v.model = %(model)s"""
    if arm == VectorMethod.SHARED_INDEX:
        own += f" AND {IN_SHARED_INDEX}"
    own += f" AND {SET_EFFORT} ORDER BY {index_order(filled)}" if arm.is_index else " OFFSET 0"
    order = "" if arm.is_index else "ORDER BY v.distance, c.id"
    return f"""
        SELECT c.episode_id FROM ({own}) v
        JOIN memory_claim c ON c.id = v.claim_id
        CROSS JOIN LATERAL (
            SELECT p.id FROM memory_episode p
            WHERE p.id = c.episode_id AND {EPISODE_SCOPE.format(row="p")} AND {LIVE_EPISODE.format(row="p")} OFFSET 0
        ) p
        {order} LIMIT %(candidates)s
    """


_MOST_CHARACTERS = 4_000  # of a turn that are looked at: fifty of the longest would take longer than a recall may


class BufferedTurn(NamedTuple):
    """A turn that nobody has read yet, the first 4,000 characters of it; `length` counts its different words.

    The scores are as of episodes.
    """

    id: int
    content: str
    role: str
    speaker: str
    session: str
    project_id: int | None
    occurred_at: datetime
    text_score: float
    coverage: float
    telling: float
    length: int


def search_buffered_turns(
    *, reach: SearchScope, query: SearchQuery, configuration: str, except_session: str, most: int
) -> list[BufferedTurn]:
    """Return the newest turns of a reach that wait to be read, at most so many, with what their words score.

    `configuration` is how the query's language is stemmed, "" where that is not known. A conversation has no agent.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=most, matching=most) | {
        "configuration": configuration or DEFAULT_TEXT_CONFIGURATION,
        "characters": _MOST_CHARACTERS,
        "roles": [str(role) for role in (Role.USER, Role.ASSISTANT, Role.TOOL)],
        "except_session": except_session,
    }
    rows = run_prepared(statement=reach.resolve(_BUFFERED_TURNS), parameters=parameters, keeps_plan=True).fetchall()
    return [BufferedTurn._make(row) for row in rows]


_BUFFERED_STATES = ", ".join(
    f"'{state}'" for state in WAITING_STATES
)  # written out, as the index over those that wait has them

# Conversations first, by the indexes over those in which something waits, and of each what does: never all turns.
_BUFFERED_TURNS = f"""
WITH open AS MATERIALIZED (
    SELECT c.id, c.session, c.project_id FROM memory_conversation c
    WHERE {EPISODE_SCOPE.format(row="c")} AND c.buffered > 0 AND c.session <> %(except_session)s
    UNION SELECT c.id, c.session, c.project_id FROM memory_conversation c
    WHERE {EPISODE_SCOPE.format(row="c")} AND c.leased > 0 AND c.session <> %(except_session)s
)
SELECT p.id, p.content, p.role, p.speaker, p.session, p.project_id, p.occurred_at, s.score, s.coverage, s.telling,
    length(p.search)
FROM (
    SELECT t.*,
        to_tsvector(%(configuration)s::regconfig, concat_ws(' ', t.speaker, t.content)) AS search
    FROM (
        SELECT c.session, c.project_id, t.id, t.role, t.speaker, t.occurred_at,
            left(t.content, %(characters)s::int) AS content
        FROM open c CROSS JOIN LATERAL (
            SELECT * FROM memory_turn t
            WHERE t.conversation_id = c.id AND t.state IN ({_BUFFERED_STATES}) AND t.role = ANY(%(roles)s::varchar[])
              AND {OCCURRED.format(row="t")}
            OFFSET 0
        ) t ORDER BY t.id + 0 DESC LIMIT %(candidates)s
    ) t
) p {text_score_sql("p")}
"""
