"""What coming to mind changes: counts, times and stability; never a confidence (B4, B5)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import connection

from memory.domain.policy import RetrievalPolicy
from memory.domain.strength import grow_stability
from memory.models.vector_search import BeliefCandidate


def count_episode_access(*, ids: Sequence[str], now: datetime) -> None:
    """Note that these episodes were recalled, in one statement."""
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_EPISODES, {"ids": list(ids), "now": now})


def count_belief_access(*, beliefs: Iterable[BeliefCandidate], now: datetime, policy: RetrievalPolicy) -> None:
    """Note that these beliefs were recalled and let their stability grow, in one statement.

    Of two recalls at once both start from the same stability; the second has waited no time and would add nothing, so
    the greater value is the right one.
    """
    grown = {belief.id: _grown(belief, now, policy) for belief in beliefs}
    if grown:
        with connection.cursor() as cursor:
            cursor.execute(_BELIEFS, {"ids": list(grown), "grown": list(grown.values()), "now": now})


def _grown(belief: BeliefCandidate, now: datetime, policy: RetrievalPolicy) -> float:
    return grow_stability(
        stability=belief.stability or policy.initial_stability,
        waited=now - (belief.accessed_at or belief.created_at),
        policy=policy,
    )


# Rows are written in the order of their ids, so that two recalls never wait for each other in a circle.
_EPISODES = """
INSERT INTO memory_episodeaccess AS a (episode_id, workspace_id, accessed_at, access_count)
SELECT id, workspace_id, %(now)s, 1 FROM memory_episode WHERE id = ANY(%(ids)s) ORDER BY id
ON CONFLICT (episode_id) DO UPDATE SET
    accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1
"""
_BELIEFS = """
INSERT INTO memory_beliefaccess AS a (belief_id, workspace_id, accessed_at, access_count, stability)
SELECT b.id, b.workspace_id, %(now)s, 1, given.stability
FROM unnest(%(ids)s::text[], %(grown)s::float8[]) AS given(id, stability) JOIN memory_belief b ON b.id = given.id
ORDER BY b.id
ON CONFLICT (belief_id) DO UPDATE SET
    accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1,
    stability = GREATEST(a.stability, EXCLUDED.stability)
"""
