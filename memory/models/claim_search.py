"""Claims as a way to episodes, what those of episodes found say to a query, and of which beliefs."""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from pgvector import HalfVector

from memory.language.modes import EVIDENCE
from memory.models.numbered import Constant, run_numbered
from memory.models.reach import EPISODE_SCOPE, LIVE_EPISODE, Reach
from memory.models.search_statements import EFFORT, IN_SHARED_INDEX, VectorArm, order_of_index
from memory.models.vector_kinds import filled_dimensions
from memory.models.vectors import Vectors


def search_claims(
    *, reach: Reach, vector: Vectors, model: str, arm: VectorArm, effort: int | None, candidates: int
) -> list[str]:
    """Return the episodes of a reach that the claims nearest to a vector are of, at most `candidates` of these."""
    asked = reach.parameters() | {
        "vector": HalfVector(vector), "model": model, "effort": effort, "candidates": candidates,
    }  # fmt: skip
    constants: dict[str, Constant] = {"workspace": reach.workspace_id, "model": model, "candidates": candidates}
    rows = run_numbered(
        statement=reach.resolve(_nearest(arm, filled_dimensions(model=model))),
        parameters=asked,
        keeps_plan=True,
        constants=constants,
    )
    return list(dict.fromkeys(key for (key,) in rows))


class FoundClaim(NamedTuple):
    """A claim of an episode that was found: which of the slots asked about it fills, and its cosine to the query.

    `slots` are none where it does not count as an assertion, and so is `sentence`. There is no similarity where the
    claim is its episode's whole text, or nothing to compare with.
    """

    episode: str
    slots: Sequence[str]
    said_at: datetime
    similarity: float | None
    sentence: str


def read_found(
    *, episodes: Sequence[str], slots: Collection[str], vector: Vectors | None, model: str
) -> list[FoundClaim]:
    """Return the claims of some episodes that fill one of these slots, or have a vector to compare the query's with."""
    asked = {
        "episodes": list(episodes),
        "slots": list(slots),
        "modes": sorted(EVIDENCE),
        "vector": None if vector is None else HalfVector(vector),
        "model": model,
    }
    statement = _FILLING if vector is None else _FOUND
    return [FoundClaim._make(row) for row in run_numbered(statement=statement, parameters=asked, keeps_plan=True)]


def read_answering(*, beliefs: Sequence[str], slots: Collection[str]) -> set[str]:
    """Return those of some beliefs that a claim bears out which fills one of these slots."""
    asked = {"beliefs": list(beliefs), "slots": list(slots), "modes": sorted(EVIDENCE)}
    return {key for (key,) in run_numbered(statement=_ANSWERING, parameters=asked, keeps_plan=True)}


class AssertedClaim(NamedTuple):
    """An assertion, the live beliefs that it bears out, and whether it bore out only what was given up since.

    What counts for a belief by the episode's whole text counts for each claim; None where nothing was borne out.
    """

    episode: str
    sentence: str
    words: str
    slots: Sequence[str]
    context: str
    subject: str
    beliefs: Sequence[str]
    is_given_up: bool | None


def read_asserted(*, episodes: Sequence[str]) -> dict[str, list[AssertedClaim]]:
    """Return by episode what some episodes assert, each in its order."""
    asked = {"episodes": list(episodes), "modes": sorted(EVIDENCE)}
    found: dict[str, list[AssertedClaim]] = {}
    for row in run_numbered(statement=_ASSERTED, parameters=asked, keeps_plan=True):
        found.setdefault(row[0], []).append(AssertedClaim._make(row))
    return found


@cache
def _nearest(arm: VectorArm, filled: int | None) -> str:
    """Name the episodes of the nearest claims: in the order of an index, or by comparing all of a workspace."""
    distance = "v.vector <=> %(vector)b::halfvec"
    own = f"""
        SELECT v.claim_id, {distance} AS distance FROM memory_claimembedding v
        WHERE v.workspace_id = %(workspace)s::bigint AND v.model = %(model)s"""
    if arm == VectorArm.SHARED_INDEX:
        own += f" AND {IN_SHARED_INDEX}"
    own += f" AND {EFFORT} ORDER BY {order_of_index(filled)}" if arm.is_index else " OFFSET 0"
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


_OF_SLOTS = "c.slots && %(slots)s::varchar[] AND c.mode = ANY(%(modes)s::text[])"
_FILLED = f"""
    CASE WHEN {_OF_SLOTS} THEN ARRAY(SELECT unnest(c.slots) INTERSECT SELECT unnest(%(slots)s::varchar[]))
         ELSE '{{}}'::varchar[] END"""
_ASSERTION = "CASE WHEN c.mode = ANY(%(modes)s::text[]) THEN c.sentence ELSE '' END"
_FILLING = f"""
SELECT c.episode_id, {_FILLED}, e.occurred_at, NULL::float8, {_ASSERTION}
FROM memory_claim c JOIN memory_episode e ON e.id = c.episode_id
WHERE c.episode_id = ANY(%(episodes)s::text[]) AND {_OF_SLOTS}
"""
_FOUND = f"""
SELECT c.episode_id, {_FILLED}, e.occurred_at, 1 - (v.vector <=> %(vector)b::halfvec), {_ASSERTION}
FROM memory_claim c
JOIN memory_episode e ON e.id = c.episode_id
LEFT JOIN memory_claimembedding v ON v.claim_id = c.id AND v.model = %(model)s
WHERE c.episode_id = ANY(%(episodes)s::text[]) AND (v.claim_id IS NOT NULL OR ({_OF_SLOTS}))
"""
_ANSWERING = """
SELECT DISTINCT e.belief_id FROM memory_evidence e JOIN memory_claim c ON c.id = e.claim_id
WHERE e.belief_id = ANY(%(beliefs)s::text[]) AND e.verdict = 'SUPPORTS' AND e.base_weight > 0
  AND c.slots && %(slots)s::varchar[] AND c.mode = ANY(%(modes)s::text[])
"""
_ASSERTED = """
SELECT c.episode_id, c.sentence, c.words, c.slots, c.context, c.subject,
    coalesce(array_agg(b.id) FILTER (WHERE b.status IN ('active', 'challenged')), '{}'),
    bool_and(b.status IN ('revised', 'invalidated'))
FROM memory_claim c
LEFT JOIN memory_evidence e ON e.episode_id = c.episode_id AND e.verdict = 'SUPPORTS'
    AND (e.claim_id = c.id OR e.claim_id IS NULL)
LEFT JOIN memory_belief b ON b.id = e.belief_id
WHERE c.episode_id = ANY(%(episodes)s::text[]) AND c.mode = ANY(%(modes)s::text[])
GROUP BY c.id ORDER BY c.episode_id, c.number
"""
