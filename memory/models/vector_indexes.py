"""Approximate indexes over vectors (HNSW, Malkov and Yashunin 2016): which there are, made and dropped.

One may lie over all active vectors of a kind and model, others over those of one workspace. A search is right whether
an index is there or not; it is only as fast as the index lets it be.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from psycopg import sql

from memory.models.search_statements import IN_SHARED_INDEX, indexed_part
from memory.models.vector_kinds import VectorKind, filled_dimensions

_BUILDER_LOCK = 4  # the first of the two numbers that name an advisory lock
_NAME = re.compile(r"^(?P<kind>episode|belief|claim)_vectors_hnsw(_((?P<workspace>\d+)|all)_[0-9a-f]{8})?$")


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
            table=sql.Identifier(_table(self.kind)),
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
def only_builder() -> Iterator[bool]:
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
            [_table(kind)],
        )
        rows = cursor.fetchall()
    found = [(_NAME.match(name), name, is_valid) for name, is_valid in rows]
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


def _table(kind: VectorKind) -> str:
    return f"memory_{kind}embedding"
