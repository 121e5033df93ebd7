"""The beliefs nearest to a vector, all compared: what is decided by likeness must not hang on an index's luck."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from pgvector import HalfVector

from memory.domain.lifecycle import BeliefStatus
from memory.models.beliefs import Belief
from memory.models.vectors import Vectors, vector_cursor

# The distances are computed before they are sorted (MATERIALIZED), so that no approximate index serves the order.
_NEAREST = b"""
WITH compared AS MATERIALIZED (
    SELECT b.id::text AS id, b.status, 1 - (v.vector <=> %(vector)s) AS cosine
    FROM memory_beliefembedding v JOIN memory_belief b ON b.id = v.belief_id
    WHERE v.workspace_id = %(workspace)s AND v.model = %(model)s AND b.status = ANY(%(statuses)s)
      AND (b.status <> 'archived' OR b.archived_by_person_at IS NULL)
      AND (b.status <> 'invalidated' OR (b.status_reason = 'changed' AND b.valid_until > %(said_at)s))
      AND (b.project_id = %(project)s OR (b.project_id IS NULL AND %(with_global)s))
      AND b."user" = ANY(%(users)s) AND (%(language)s::text IS NULL OR b.language = %(language)s)
)
SELECT id, status, cosine FROM compared WHERE cosine >= %(least)s ORDER BY cosine DESC, id LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where neighbours are looked for: a project's beliefs (None: none of any), global ones too, whose, in which
    language (None: in any), and as of when something was said: what was closed by then is none (C2).
    """

    workspace_id: int
    project_id: int | None
    with_global: bool
    users: tuple[str, ...]
    language: str | None
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A belief, its status, and its raw cosine to the vector."""

    id: str
    status: str
    cosine: float


def nearest_beliefs(
    *, within: Surroundings, model: str, vector: Vectors, statuses: Collection[BeliefStatus], least: float, most: int
) -> list[Neighbour]:
    """Return the beliefs of at least this raw cosine to a vector (768), the nearest first; none a person put away."""
    parameters = {
        "vector": HalfVector(vector),
        "workspace": within.workspace_id,
        "model": model,
        "statuses": [str(status) for status in statuses],
        "project": within.project_id,
        "with_global": within.with_global,
        "users": list(within.users),
        "language": within.language,
        "said_at": within.said_at,
        "least": least,
        "most": most,
    }
    with vector_cursor() as cursor:
        cursor.execute(_NEAREST, parameters)
        return [Neighbour(id=key, status=status, cosine=cosine) for key, status, cosine in cursor.fetchall()]


_ALIKE = """
WITH compared AS MATERIALIZED (
    SELECT v.belief_id::text AS id, 1 - (v.vector <=> %s) AS cosine FROM memory_beliefembedding v
    WHERE v.workspace_id = %s AND v.model = %s AND v.belief_id IN ({among})
)
SELECT id FROM compared WHERE cosine > %s ORDER BY cosine DESC, id
"""


def alike_beliefs(
    *, workspace_id: int, among: QuerySet[Belief], model: str, vector: Vectors, above: float
) -> list[str]:
    """Return those of a workspace's beliefs that are above this raw cosine to a vector (768), the nearest first."""
    chosen, parameters = among.order_by().values("pk").query.sql_with_params()
    statement = _ALIKE.format(among=chosen).encode()
    with vector_cursor() as cursor:
        cursor.execute(statement, [HalfVector(vector), workspace_id, model, *parameters, above])
        return [key for (key,) in cursor.fetchall()]
