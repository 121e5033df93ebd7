"""The beliefs that links lead to from some others, within what a search may find (R4, R5)."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from memory.models.reach import BELIEF_SCOPE, LIVE_BELIEF, Reach
from memory.models.vector_search import BeliefCandidate

_NEIGHBOURS = f"""
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
"""  # noqa: S608  (conditions of our own)


class Neighbouring(NamedTuple):
    """A belief, the one whose link leads to it, and the link's similarity on the reference scale."""

    via: str
    similarity: float
    belief: BeliefCandidate


def search_neighbours(*, reach: Reach, beliefs: Sequence[str], min_confidence: float) -> list[Neighbouring]:
    """Find what is linked with some beliefs, in either direction; the nearest first."""
    parameters = reach.parameters() | {"ids": list(beliefs), "min_confidence": min_confidence}
    with connection.cursor() as cursor:
        cursor.execute(reach.resolve(_NEIGHBOURS), parameters)
        return [Neighbouring(row[0], row[1], BeliefCandidate(*row[2:])) for row in cursor.fetchall()]
