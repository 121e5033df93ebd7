"""What coming to mind changes: counts, times and stability; never a confidence (B4, B5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory.domain.policy import RetrievalPolicy
from memory.domain.strength import grow_stability
from memory.recall.noting import note_answer
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.prepared import TimedSearch


def count_access(
    *,
    episodes: Sequence[EpisodeCandidate],
    beliefs: Sequence[BeliefCandidate],
    now: datetime,
    policy: RetrievalPolicy,
    timed: TimedSearch,
) -> None:
    """Note in one statement that these memories were recalled, and let the beliefs grow more stable.

    An answer is not lost because it could not be counted: a row erased meanwhile, say, is logged.
    """
    if not episodes and not beliefs:
        return
    parameters: dict[str, Any] = {
        "episodes": [episode.id for episode in episodes],
        "beliefs": [belief.id for belief in beliefs],
        "grown": [_grown(belief, now, policy) for belief in beliefs],
        "now": now,
    }
    note_answer(statement=_COUNT, parameters=parameters, failed="access", timed=timed)


def _grown(belief: BeliefCandidate, now: datetime, policy: RetrievalPolicy) -> float:
    return grow_stability(
        stability=belief.stability or policy.initial_stability,
        waited=now - (belief.accessed_at or belief.created_at),
        policy=policy,
    )


# Rows are written in the order of their ids, so that two recalls never wait for each other in a circle. Each is looked
# up by itself (OFFSET 0): among the settings of a search all beliefs would be read in that order. Of two recalls
# at once both start from the same stability; the second has waited no time and would add nothing, so the greater stays.
_COUNT = """
WITH episodes AS (
    INSERT INTO memory_episodeaccess AS a (episode_id, workspace_id, accessed_at, access_count)
    SELECT id, workspace_id, %(now)s::timestamptz, 1 FROM memory_episode
    WHERE id = ANY(%(episodes)s::text[]) ORDER BY id
    ON CONFLICT (episode_id) DO UPDATE SET
        accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1
)
INSERT INTO memory_beliefaccess AS a (belief_id, workspace_id, accessed_at, access_count, stability)
SELECT b.id, b.workspace_id, %(now)s::timestamptz, 1, given.stability
FROM unnest(%(beliefs)s::text[], %(grown)s::float8[]) AS given(id, stability)
CROSS JOIN LATERAL (SELECT id, workspace_id FROM memory_belief WHERE id = given.id OFFSET 0) b
ORDER BY b.id
ON CONFLICT (belief_id) DO UPDATE SET
    accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1,
    stability = GREATEST(a.stability, EXCLUDED.stability)
"""
