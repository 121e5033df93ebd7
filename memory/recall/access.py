"""What coming to mind changes: counts, times and stability; never a confidence (B4, B5)."""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError, connection, transaction

from memory.domain.policy import RetrievalPolicy
from memory.domain.strength import grow_stability
from memory.models.vector_search import BeliefCandidate, EpisodeCandidate

log = structlog.get_logger(__name__)


def count_access(
    *,
    episodes: Sequence[EpisodeCandidate],
    beliefs: Sequence[BeliefCandidate],
    now: datetime,
    policy: RetrievalPolicy,
) -> None:
    """Note that these memories were recalled, in one statement for each kind, and let beliefs grow more stable.

    An answer is not lost because it could not be counted: a row erased meanwhile, say, is logged.
    """
    try:
        with transaction.atomic():
            _wait_for_no_disk()
            _count_episodes([episode.id for episode in episodes], now)
            _count_beliefs({belief.id: _grown(belief, now, policy) for belief in beliefs}, now)
    except DatabaseError as error:
        log.warning("recall.access_not_counted", error=str(error))


def _wait_for_no_disk() -> None:
    """Let the commit return before it is on disk: a crash may lose the last counts, and nothing else."""
    if not connection.savepoint_ids:  # inside a caller's transaction it would be the caller's commit
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")


def _count_episodes(ids: list[str], now: datetime) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_EPISODES, {"ids": ids, "now": now})


def _count_beliefs(grown: dict[str, float], now: datetime) -> None:
    """Store each belief's grown stability, unless a greater one is there.

    Of two recalls at once both start from the same stability; the second has waited no time and would add nothing.
    """
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
