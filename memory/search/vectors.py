"""Vectors in the database: stored, read, compared exactly, and approximate indexes over them.

The indexes are HNSW (Malkov and Yashunin 2016). One may lie over all active vectors of a kind and model, others over
those of one workspace. A search is right whether an index is there or not; it is only as fast as the index lets it be.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from memory.domain.lifecycle import BeliefStatus
from memory.models.beliefs import Belief
from memory.models.episodes import DIMENSIONS
from memory.models.fields import VectorKind
from memory.search.prepared import VectorFormatError, vector_cursor

Vectors = NDArray[np.float32]
_ID_LENGTH = 15
_HEADER_LENGTH = 19
_TRAILER_LENGTH = 2

# One row of `COPY … (FORMAT binary)`: two fields, each behind its length; a halfvec behind its dimensions.
_ROW = np.dtype(
    [
        ("fields", ">i2"),
        ("id_length", ">i4"),
        ("id", f"S{_ID_LENGTH}"),
        ("vector_length", ">i4"),
        ("dimensions", ">i2"),
        ("unused", ">i2"),
        ("vector", ">f2", (DIMENSIONS,)),
    ]
)


def read_episode_vectors(*, model: str, ids: Sequence[str]) -> tuple[list[str], Vectors]:
    """Read the vectors that these episodes have under a model, in the order of their ids.

    Returns the ids found and their vectors, float32 of shape (n, 768).
    """
    return _copy_out(
        "SELECT episode_id::text, vector FROM memory_episodeembedding "
        "WHERE episode_id = ANY(%s) AND model = %s ORDER BY episode_id",
        [list(ids), model],
    )


def read_belief_vectors(*, model: str, ids: Sequence[str]) -> tuple[list[str], Vectors]:
    """Read the vectors that these beliefs have under a model, in the order of their ids."""
    return _copy_out(
        "SELECT belief_id::text, vector FROM memory_beliefembedding "
        "WHERE belief_id = ANY(%s) AND model = %s ORDER BY belief_id",
        [list(ids), model],
    )


def store_claim_vectors(
    *, workspace_id: int, model: str, vectors: Mapping[int, Vectors], is_beside: bool = False
) -> None:
    """Store or replace claims' vectors, as those of episodes are."""
    if not is_beside:
        _replace_other_models(b"memory_claimembedding", b"claim_id", workspace_id, model, list(vectors))
    _execute(
        b"""
        INSERT INTO memory_claimembedding (claim_id, workspace_id, model, vector)
        SELECT c.id, c.workspace_id, %s, given.vector
        FROM unnest(%b::bigint[], %b::halfvec[]) AS given (key, vector) JOIN memory_claim c ON c.id = given.key
        WHERE c.workspace_id = (SELECT %s::bigint)
        ON CONFLICT (claim_id, model) DO UPDATE SET vector = EXCLUDED.vector
        """,
        [model, list(vectors), [HalfVector(vector) for vector in vectors.values()], workspace_id],
    )


def store_episode_vectors(
    *,
    workspace_id: int,
    model: str,
    vectors: Mapping[str, Vectors],
    chunked: Collection[str] = (),
    is_beside: bool = False,
) -> None:
    """Store or replace episodes' vectors, with the columns that searches filter by copied from the episode.

    They replace those of any other model, which may be of another text by now; `is_beside` keeps these.
    """
    if not is_beside:
        _replace_other_models(b"memory_episodeembedding", b"episode_id", workspace_id, model, list(vectors))
    _execute(
        b"""
        INSERT INTO memory_episodeembedding
            (episode_id, workspace_id, project_id, "user", is_active, model, is_chunked, vector)
        SELECT id, workspace_id, project_id, "user", status = 'active', %s, id = ANY(%s), given.vector
        FROM unnest(%b::text[], %b::halfvec[]) AS given (key, vector) JOIN memory_episode ON id = given.key
        WHERE workspace_id = (SELECT %s::bigint)
        ON CONFLICT (episode_id, model) DO UPDATE SET
            project_id = EXCLUDED.project_id, "user" = EXCLUDED."user", is_active = EXCLUDED.is_active,
            is_chunked = EXCLUDED.is_chunked, vector = EXCLUDED.vector
        """,
        [model, list(chunked), *_as_arrays(vectors), workspace_id],
    )


def store_belief_vectors(
    *, workspace_id: int, model: str, vectors: Mapping[str, Vectors], is_beside: bool = False
) -> None:
    """Store or replace beliefs' vectors, as those of episodes are."""
    if not is_beside:
        _replace_other_models(b"memory_beliefembedding", b"belief_id", workspace_id, model, list(vectors))
    _execute(
        b"""
        INSERT INTO memory_beliefembedding (belief_id, workspace_id, project_id, "user", is_active, model, vector)
        SELECT id, workspace_id, project_id, "user", status = 'active', %s, given.vector
        FROM unnest(%b::text[], %b::halfvec[]) AS given (key, vector) JOIN memory_belief ON id = given.key
        WHERE workspace_id = (SELECT %s::bigint)
        ON CONFLICT (belief_id, model) DO UPDATE SET
            project_id = EXCLUDED.project_id, "user" = EXCLUDED."user", is_active = EXCLUDED.is_active,
            vector = EXCLUDED.vector
        """,
        [model, *_as_arrays(vectors), workspace_id],
    )


def _replace_other_models(table: bytes, owner: bytes, workspace_id: int, model: str, ids: Sequence[str | int]) -> None:
    """Drop other models' vectors of some owners; a workspace's first vectors decide which model is its own."""
    with vector_cursor() as cursor:
        cursor.execute(b"DELETE FROM %s WHERE %s = ANY(%%s) AND model <> %%s" % (table, owner), [list(ids), model])
        cursor.execute(
            b"UPDATE memory_workspace SET embedding_model = %s WHERE id = %s AND embedding_model = ''",
            [model, workspace_id],
        )


def _as_arrays(vectors: Mapping[str, Vectors]) -> tuple[list[str], list[HalfVector]]:
    """Give ids and vectors as two arrays: one statement for all is four times as fast as one for each."""
    return list(vectors), [HalfVector(vector) for vector in vectors.values()]


def _execute(statement: bytes, parameters: list[Any]) -> None:
    with vector_cursor() as cursor:
        cursor.execute(statement, parameters)


def _copy_out(query: str, parameters: list[Any]) -> tuple[list[str], Vectors]:
    with vector_cursor() as cursor, cursor.copy(_copy_statement(query), parameters) as copy:
        data = b"".join(copy)
    return _parse_binary_copy(data)


def _copy_statement(query: str) -> sql.Composed:
    return sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(sql.SQL(query))


def _parse_binary_copy(data: bytes) -> tuple[list[str], Vectors]:
    """Turn binary COPY into ids and vectors; every row has one length, so that no loop is needed."""
    body = memoryview(data)[_HEADER_LENGTH:-_TRAILER_LENGTH]
    if len(body) % _ROW.itemsize:
        raise VectorFormatError(f"A row of vectors is not {_ROW.itemsize} bytes long.")
    rows = np.frombuffer(body, dtype=_ROW)
    if len(rows) and not (rows["dimensions"] == DIMENSIONS).all():
        raise VectorFormatError(f"A vector has not {DIMENSIONS} dimensions.")
    return [key.decode() for key in rows["id"].tolist()], rows["vector"].astype(np.float32)


_NEAREST_OLDER = """
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
class NearEpisode:
    """An older episode, and its raw cosine to a new one."""

    id: str
    cosine: float


def nearest_older_episodes(
    *, workspace_id: int, model: str, ids: Sequence[str], count: int
) -> dict[str, list[NearEpisode]]:
    """Return for each new episode that has a vector the older active ones nearest to it, nearest first.

    Of the same user and project, derived ones apart; older is what was stored before it.
    """
    parameters: dict[str, Any] = {"workspace": workspace_id, "model": model, "ids": list(ids), "count": count}
    with connection.cursor() as cursor:
        cursor.execute(_EMBEDDED, parameters)
        found: dict[str, list[NearEpisode]] = {key: [] for (key,) in cursor.fetchall()}
        cursor.execute(_NEAREST_OLDER, parameters)
        for key, older, cosine in cursor.fetchall():
            found[key].append(NearEpisode(id=older, cosine=cosine))
    return found


_NEAREST_COSINES = b"""
    SELECT 1 - ((v.vector <=> %b) + 0) AS cosine
    FROM memory_episodeembedding v JOIN memory_episode e ON e.id = v.episode_id
    WHERE v.workspace_id = %s AND v.model = %s AND v.is_active AND v."user" = %s
        AND v.project_id IS NOT DISTINCT FROM %s AND NOT e.is_derived
    ORDER BY cosine DESC LIMIT %s
"""


def nearest_episode_cosines(
    *, workspace_id: int, model: str, user: str, project_id: int | None, vector: Vectors, count: int
) -> list[float]:
    """Return the raw cosines of a vector (768) to the active episodes of a user and project nearest to it."""
    with vector_cursor() as cursor:
        cursor.execute(_NEAREST_COSINES, [HalfVector(vector), workspace_id, model, user, project_id, count])
        return [float(cosine) for (cosine,) in cursor.fetchall()]


# The distances are computed before they are sorted (MATERIALIZED), so that no approximate index serves the order.
_NEAREST_BELIEFS = b"""
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
class ComparisonScope:
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
class NearBelief:
    """A belief, its status, and its raw cosine to the vector."""

    id: str
    status: str
    cosine: float


def nearest_beliefs(
    *, within: ComparisonScope, model: str, vector: Vectors, statuses: Collection[BeliefStatus], least: float, most: int
) -> list[NearBelief]:
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
        cursor.execute(_NEAREST_BELIEFS, parameters)
        return [NearBelief(id=key, status=status, cosine=cosine) for key, status, cosine in cursor.fetchall()]


_SIMILAR_BELIEFS = """
WITH compared AS MATERIALIZED (
    SELECT v.belief_id::text AS id, 1 - (v.vector <=> %s) AS cosine FROM memory_beliefembedding v
    WHERE v.workspace_id = %s AND v.model = %s AND v.belief_id IN ({among})
)
SELECT id FROM compared WHERE cosine > %s ORDER BY cosine DESC, id
"""


def find_similar_beliefs(
    *, workspace_id: int, among: QuerySet[Belief], model: str, vector: Vectors, above: float
) -> list[str]:
    """Return those of a workspace's beliefs that are above this raw cosine to a vector (768), the nearest first."""
    chosen, parameters = among.order_by().values("pk").query.sql_with_params()
    statement = _SIMILAR_BELIEFS.format(among=chosen).encode()
    with vector_cursor() as cursor:
        cursor.execute(statement, [HalfVector(vector), workspace_id, model, *parameters, above])
        return [key for (key,) in cursor.fetchall()]


_BUILDER_LOCK = 4  # the first of the two numbers that name an advisory lock
_INDEX_NAME = re.compile(r"^(?P<kind>episode|belief|claim)_vectors_hnsw(_((?P<workspace>\d+)|all)_[0-9a-f]{8})?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndex:
    """An approximate index over vectors of a model: those of one workspace, or (without it) all of a kind."""

    kind: VectorKind
    model: str
    workspace_id: int | None = None

    @property
    def name(self) -> str:
        """Return its name in the database; one that knows other dimensions has another."""
        known = f"{self.model} {filled_dimensions(model=self.model) or ''}".rstrip()
        digest = hashlib.sha256(known.encode()).hexdigest()[:8]
        return f"{self.kind}_vectors_hnsw_{self.workspace_id or 'all'}_{digest}"

    def definition(self) -> sql.Composed:
        """Return the statement that makes it beside readers and writers."""
        own: sql.Composable = sql.SQL(IN_SHARED_INDEX)
        if self.workspace_id is not None:
            own = sql.SQL("workspace_id = {}::bigint").format(sql.Literal(self.workspace_id))
        return sql.SQL(
            "CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (({vector}) halfvec_cosine_ops) "
            "WITH (m = 24, ef_construction = 200) WHERE {active} AND {own} AND model = {model}"
        ).format(
            active=sql.SQL("is_active" if self.kind.is_scoped else "true"),
            name=sql.Identifier(self.name),
            table=sql.Identifier(_embedding_table(self.kind)),
            vector=sql.SQL(indexed_part("vector", filled_dimensions(model=self.model))),
            own=own,
            model=sql.Literal(self.model),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredIndex:
    """An index as the database has it; one that is not valid was left by a build that was cut short.

    One over everybody's vectors is of no workspace.
    """

    name: str
    workspace_id: int | None
    is_valid: bool


@contextmanager
def index_builder_lock() -> Iterator[bool]:
    """Hold the lock of whoever makes indexes; yields False where somebody else does. It ends with the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, 0)", [_BUILDER_LOCK])
        (is_ours,) = cursor.fetchone()
        try:
            yield is_ours
        finally:
            if is_ours:
                cursor.execute("SELECT pg_advisory_unlock(%s, 0)", [_BUILDER_LOCK])


def stored_indexes(*, kind: VectorKind) -> list[StoredIndex]:
    """List the approximate indexes over a kind's vectors."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "WHERE i.indrelid = %s::regclass ORDER BY c.relname",
            [_embedding_table(kind)],
        )
        rows = cursor.fetchall()
    found = [(_INDEX_NAME.match(name), name, is_valid) for name, is_valid in rows]
    return [
        StoredIndex(name=name, workspace_id=int(own) if (own := match["workspace"]) else None, is_valid=is_valid)
        for match, name, is_valid in found
        if match
    ]


def build_index(*, index: VectorIndex, memory_megabytes: int) -> None:
    """Make an index while the table stays in use; takes minutes, and cannot be part of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = %s", [f"{memory_megabytes}MB"])
        try:
            cursor.execute(index.definition())
        finally:
            cursor.execute("RESET maintenance_work_mem")


def drop_index(*, name: str) -> None:
    """Drop an index while the table stays in use."""
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))


def _embedding_table(kind: VectorKind) -> str:
    return f"memory_{kind}embedding"


_FILLED = {"wordllama-l2-supercat-256": 256}


def filled_dimensions(*, model: str) -> int | None:
    """Return how many of a vector's dimensions a model fills, if it is known to leave the others 0; else None."""
    return _FILLED.get(model)


# True of every vector, which the planner does not know: only a statement that says so is answered by the index that has
# it as its condition. Else it might take that one for a workspace that has one of its own.
IN_SHARED_INDEX = "length(model) > 0"


def index_order(filled: int | None) -> str:
    """Name the distance by which an index over so many dimensions has v's vectors in order."""
    return f"{indexed_part('v.vector', filled)} <=> {indexed_part('%(vector)b::halfvec', filled)}"


def indexed_part(vector: str, filled: int | None) -> str:
    """Name what an index knows of a vector: what is 0 in all would only make it larger."""
    return vector if filled is None else f"subvector({vector}, 1, {filled})::halfvec({filled})"
