"""Which older episodes a new one is nearest to: compared one by one, since an index may leave some of a scope out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from pgvector import HalfVector

from memory.models.vectors import Vectors, vector_cursor

_NEAREST = """
    SELECT fresh.id, near.episode_id, 1 - near.distance
    FROM memory_episode fresh
    JOIN memory_episodeembedding own ON own.episode_id = fresh.id AND own.model = %(model)s
    CROSS JOIN LATERAL (
        SELECT v.episode_id, (v.vector <=> own.vector) + 0 AS distance
        FROM memory_episodeembedding v JOIN memory_episode older ON older.id = v.episode_id
        WHERE v.workspace_id = %(workspace)s AND v.model = %(model)s AND v.is_active AND v."user" = fresh."user"
            AND v.project_id IS NOT DISTINCT FROM fresh.project_id
            AND older.number < fresh.number AND NOT older.is_derived
        ORDER BY distance, older.number LIMIT %(count)s
    ) near
    WHERE fresh.id = ANY(%(ids)s) AND fresh.workspace_id = %(workspace)s
    ORDER BY fresh.number, near.distance
"""
_EMBEDDED = "SELECT episode_id FROM memory_episodeembedding WHERE episode_id = ANY(%(ids)s) AND model = %(model)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An older episode, and its raw cosine to a new one."""

    id: str
    cosine: float


def nearest_older(*, workspace_id: int, model: str, ids: Sequence[str], count: int) -> dict[str, list[Neighbour]]:
    """Return for each new episode that has a vector the older active ones nearest to it, nearest first.

    Of the same user and project, derived ones apart; older is what was stored before it.
    """
    parameters: dict[str, Any] = {"workspace": workspace_id, "model": model, "ids": list(ids), "count": count}
    with connection.cursor() as cursor:
        cursor.execute(_EMBEDDED, parameters)
        found: dict[str, list[Neighbour]] = {key: [] for (key,) in cursor.fetchall()}
        cursor.execute(_NEAREST, parameters)
        for key, older, cosine in cursor.fetchall():
            found[key].append(Neighbour(id=older, cosine=cosine))
    return found


_NEAREST_TO = b"""
    SELECT 1 - ((v.vector <=> %b) + 0) AS cosine
    FROM memory_episodeembedding v JOIN memory_episode e ON e.id = v.episode_id
    WHERE v.workspace_id = %s AND v.model = %s AND v.is_active AND v."user" = %s
        AND v.project_id IS NOT DISTINCT FROM %s AND NOT e.is_derived
    ORDER BY cosine DESC LIMIT %s
"""


def nearest_cosines(
    *, workspace_id: int, model: str, user: str, project_id: int | None, vector: Vectors, count: int
) -> list[float]:
    """Return the raw cosines of a vector (768) to the active episodes of a user and project nearest to it."""
    with vector_cursor() as cursor:
        cursor.execute(_NEAREST_TO, [HalfVector(vector), workspace_id, model, user, project_id, count])
        return [float(cosine) for (cosine,) in cursor.fetchall()]
