"""The one place that knows how vectors travel: raw cursors, binary parameters, binary COPY.

Django's own cursor sends a vector as 15 kB of text (about 3 ms); here it is 1.5 kB of halves.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakSet

import numpy as np
import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import sql
from psycopg.types import TypeInfo

from memory.models.episodes import DIMENSIONS

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


class VectorFormatError(RuntimeError):
    """The database answered with vectors of another shape than the schema promises."""


def raw_cursor(*, is_numbered: bool = False) -> psycopg.Cursor[Any]:
    """Open a psycopg cursor on Django's connection that takes and gives `HalfVector` in binary.

    Queries through it do not show in Django's query log. It shares Django's transaction. With `is_numbered`, parameters
    are a list, and named $1, $2, … in the statement.
    """
    own = connections[DEFAULT_DB_ALIAS]  # looked up once: `connection` asks for itself at each name
    own.close_if_health_check_failed()  # as Django's own cursors do
    own.ensure_connection()
    raw = own.connection
    if raw not in _KNOWING:
        register_halfvec_info(raw, _halfvec_type(own.alias, str(own.settings_dict["NAME"])))
        _KNOWING.add(raw)
    return psycopg.RawCursor(raw) if is_numbered else psycopg.Cursor(raw)


@contextmanager
def vector_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open such a cursor for as long as it is needed; what the database refuses is an error of Django's."""
    with connection.wrap_database_errors, raw_cursor() as cursor:
        yield cursor


_KNOWING: WeakSet[psycopg.Connection[Any]] = WeakSet()  # connections that know vectors


@cache
def _halfvec_type(alias: str, database: str) -> TypeInfo:
    """Look up the type's number once a process and database."""
    info: TypeInfo | None = TypeInfo.fetch(connection.connection, "halfvec")
    if info is None:
        raise VectorFormatError(f"The database {database} lacks the pgvector extension (type halfvec).")
    return info


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


def read_claim_vectors(*, model: str, ids: Sequence[int]) -> tuple[list[int], Vectors]:
    """Read the vectors that these claims have under a model, in the order of their keys."""
    keys, vectors = _copy_out(
        f"SELECT lpad(claim_id::text, {_ID_LENGTH}, '0'), vector FROM memory_claimembedding "  # noqa: S608  (a number)
        "WHERE claim_id = ANY(%s) AND model = %s ORDER BY claim_id",
        [list(ids), model],
    )
    return [int(key) for key in keys], vectors


def store_claim_vectors(
    *, workspace_id: int, model: str, vectors: Mapping[int, Vectors], is_beside: bool = False
) -> None:
    """Store or replace claims' vectors, as those of episodes are."""
    if not is_beside:
        _take_the_place(b"memory_claimembedding", b"claim_id", workspace_id, model, list(vectors))
    _store(
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
        _take_the_place(b"memory_episodeembedding", b"episode_id", workspace_id, model, list(vectors))
    _store(
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
        [model, list(chunked), *_arrays(vectors), workspace_id],
    )


def store_belief_vectors(
    *, workspace_id: int, model: str, vectors: Mapping[str, Vectors], is_beside: bool = False
) -> None:
    """Store or replace beliefs' vectors, as those of episodes are."""
    if not is_beside:
        _take_the_place(b"memory_beliefembedding", b"belief_id", workspace_id, model, list(vectors))
    _store(
        b"""
        INSERT INTO memory_beliefembedding (belief_id, workspace_id, project_id, "user", is_active, model, vector)
        SELECT id, workspace_id, project_id, "user", status = 'active', %s, given.vector
        FROM unnest(%b::text[], %b::halfvec[]) AS given (key, vector) JOIN memory_belief ON id = given.key
        WHERE workspace_id = (SELECT %s::bigint)
        ON CONFLICT (belief_id, model) DO UPDATE SET
            project_id = EXCLUDED.project_id, "user" = EXCLUDED."user", is_active = EXCLUDED.is_active,
            vector = EXCLUDED.vector
        """,
        [model, *_arrays(vectors), workspace_id],
    )


def _take_the_place(table: bytes, owner: bytes, workspace_id: int, model: str, ids: Sequence[str | int]) -> None:
    """Drop other models' vectors of some owners; a workspace's first vectors decide which model is its own."""
    with vector_cursor() as cursor:
        cursor.execute(b"DELETE FROM %s WHERE %s = ANY(%%s) AND model <> %%s" % (table, owner), [list(ids), model])
        cursor.execute(
            b"UPDATE memory_workspace SET embedding_model = %s WHERE id = %s AND embedding_model = ''",
            [model, workspace_id],
        )


def _arrays(vectors: Mapping[str, Vectors]) -> tuple[list[str], list[HalfVector]]:
    """Give ids and vectors as two arrays: one statement for all is four times as fast as one for each."""
    return list(vectors), [HalfVector(vector) for vector in vectors.values()]


def _store(statement: bytes, parameters: list[Any]) -> None:
    with vector_cursor() as cursor:
        cursor.execute(statement, parameters)


def _copy_out(query: str, parameters: list[Any]) -> tuple[list[str], Vectors]:
    with vector_cursor() as cursor, cursor.copy(_copy_statement(query), parameters) as copy:
        data = b"".join(copy)
    return _parse(data)


def _copy_statement(query: str) -> sql.Composed:
    return sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(sql.SQL(query))


def _parse(data: bytes) -> tuple[list[str], Vectors]:
    """Turn binary COPY into ids and vectors; every row has one length, so that no loop is needed."""
    body = memoryview(data)[_HEADER_LENGTH:-_TRAILER_LENGTH]
    if len(body) % _ROW.itemsize:
        raise VectorFormatError(f"A row of vectors is not {_ROW.itemsize} bytes long.")
    rows = np.frombuffer(body, dtype=_ROW)
    if len(rows) and not (rows["dimensions"] == DIMENSIONS).all():
        raise VectorFormatError(f"A vector has not {DIMENSIONS} dimensions.")
    return [key.decode() for key in rows["id"].tolist()], rows["vector"].astype(np.float32)
