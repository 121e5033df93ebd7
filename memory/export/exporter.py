"""Write a workspace's memory, or a user's, as lines of JSON: a header, then a line for each row (R14).

`export_workspace` yields blocks of lines: rows leave in batches as the database gives them, so that little is held at
once. All lines tell of one moment.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import connection, transaction
from psycopg import sql

from memory.consolidation.rebuild import check_no_cycle_open
from memory.export.file_format import (
    HEADER,
    ORDER_OF_EPISODES,
    ROW,
    Column,
    Table,
    as_json,
    header_of,
    header_of_user,
    numbered_tables,
    tables,
)
from memory.models import Project, Workspace
from memory.search.prepared import raw_cursor


def export_workspace(*, workspace: Workspace, user: str | None = None) -> Iterator[ExportBlock]:
    """Yield a workspace's memory, or that of one of its users, block by block, in one transaction that reads alone.

    Raise CycleIsOpen, before the first block, while a cycle of the workspace is under way.
    """
    source = _Source(workspace=workspace, user=user)
    with _snapshot():
        check_no_cycle_open(workspace=workspace)
        workspace.refresh_from_db()
        counts = {table.kind: _count(source, table) for table in source.tables}
        total = sum(counts.values())
        header = header_of(workspace=workspace, rows=counts) if user is None else header_of_user(user=user, rows=counts)
        yield ExportBlock(data=_line(HEADER, header), rows=0, of=total)
        source.series[ORDER_OF_EPISODES] = _series_of(source, "memory_episode", "number")
        numbered = (table for table in source.tables if table.name in numbered_tables())
        source.series.update(
            {table.name: _series_of(source, table.name, "id", source.where(table)) for table in numbered}
        )
        for table in source.tables:
            for rows in _read(source, table):
                yield ExportBlock(data=b"".join(rows), rows=len(rows), of=total)


_BATCH = 200
_ALL = sql.SQL("t.workspace_id = %(workspace)s")
_MINE = 't."user" = %(user)s'
_OF_EPISODE = 'EXISTS (SELECT FROM memory_episode e WHERE e.id = t.episode_id AND e."user" = %(user)s)'
_OF_BELIEF = 'EXISTS (SELECT FROM memory_belief b WHERE b.id = t.{}_id AND b."user" = %(user)s)'

_OF_REMEMBRANCE = """EXISTS (
    SELECT FROM memory_rememberjob r JOIN memory_episode e ON e.id = r.episode_id
    WHERE r.id = t.remembrance_id AND e."user" = %(user)s
)"""
_OF_ENDS = 'EXISTS (SELECT FROM memory_episode e WHERE e.id = t.{}_id AND e."user" = %(user)s)'
_OF_BOX = 'EXISTS (SELECT FROM memory_box b WHERE b.id = t.{}_id AND b."user" = %(user)s)'

_OF_TURN = """EXISTS (
    SELECT FROM memory_turn r JOIN memory_conversation c ON c.id = r.conversation_id
    WHERE r.id = t.turn_id AND c."user" = %(user)s
)"""

# Somebody else may have called an entity otherwise: it is theirs where they use its name, too.
_NAMED = """EXISTS (
    SELECT FROM memory_mention m JOIN memory_episode e ON e.id = m.episode_id
    WHERE m.entity_id = t.id AND m.name = t.name AND e."user" = %(user)s
)"""

_OF_CLAIM = """EXISTS (
    SELECT FROM memory_claim c JOIN memory_episode e ON e.id = c.episode_id
    WHERE c.id = t.claim_id AND e."user" = %(user)s
)"""
_OF_PROJECT = 'EXISTS (SELECT FROM memory_{} m WHERE m.project_id = t.id AND m."user" = %(user)s)'

# A user's data: their episodes and conversations, the beliefs that are theirs alone, and what speaks of these and of
# nothing else.
_OF_USER = {
    "project": f"({' OR '.join(map(_OF_PROJECT.format, ('episode', 'belief', 'conversation')))})",
    "episode": _MINE,
    "episode_vector": _OF_EPISODE,
    "episode_use": _OF_EPISODE,
    "claim": _OF_EPISODE,
    "claim_vector": _OF_CLAIM,
    "conversation": _MINE,
    "turn": 'EXISTS (SELECT FROM memory_conversation c WHERE c.id = t.conversation_id AND c."user" = %(user)s)',
    "turn_episode": f"{_OF_EPISODE} AND {_OF_TURN}",
    "belief": _MINE,
    "belief_vector": _OF_BELIEF.format("belief"),
    "belief_use": _OF_BELIEF.format("belief"),
    "belief_change": _OF_BELIEF.format("pgh_obj"),
    "transition": f"({_OF_EPISODE} OR {_OF_BELIEF.format('belief')})",
    "evidence": f"{_OF_EPISODE} AND {_OF_BELIEF.format('belief')}",
    "lineage": f"{_OF_BELIEF.format('parent')} AND {_OF_BELIEF.format('child')}",
    "remembrance": _OF_EPISODE,
    "remembered_fact": f"{_OF_REMEMBRANCE} AND (t.belief_id IS NULL OR {_OF_BELIEF.format('belief')})"
    f" AND (t.rival_id IS NULL OR {_OF_BELIEF.format('rival')})",
    "link": f"{_OF_BELIEF.format('belief')} AND {_OF_BELIEF.format('other')}",
    "rival": f"{_OF_BELIEF.format('first')} AND {_OF_BELIEF.format('second')}",
    "entity": _NAMED,
    "mention": _OF_EPISODE,
    "edge": f"{_OF_ENDS.format('source')} AND {_OF_ENDS.format('target')}",
    "box": _MINE,
    "box_member": f"{_OF_EPISODE} AND {_OF_BOX.format('box')}",
    "trace": f"{_OF_BOX.format('earlier')} AND {_OF_BOX.format('later')}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportBlock:
    """Some lines of a file, and how many rows they tell of out of how many."""

    data: bytes
    rows: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Whose rows are written, and the numbers that stand for keys of the database's own."""

    workspace: Workspace
    user: str | None
    series: dict[str, array[int]] = field(default_factory=dict)

    @property
    def tables(self) -> Sequence[Table]:
        return [table for table in tables() if self.user is None or table.kind in _OF_USER]

    @property
    def parameters(self) -> dict[str, Any]:
        return {"workspace": self.workspace.pk, "user": self.user}

    def where(self, table: Table) -> sql.SQL:
        mine = "" if self.user is None else f" AND {_OF_USER[table.kind]}"
        return sql.SQL(f"t.workspace_id = %(workspace)s{mine}")  # from the table above

    def number(self, column: Column, key: int | None) -> int | None:
        """Return the number that stands for a key; None where a user's file does not have the row."""
        if key is None or column.series not in self.series:
            return None
        keys = self.series[column.series]
        place = bisect_left(keys, key)
        return place + 1 if place < len(keys) and keys[place] == key else None


@contextmanager
def _snapshot() -> Iterator[None]:
    """See the database as of one moment; within somebody's transaction, as that sees it."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _count(source: _Source, table: Table) -> int:
    query = sql.SQL("SELECT count(*) FROM {} t WHERE {}").format(sql.Identifier(table.name), source.where(table))
    with raw_cursor() as cursor:
        row = cursor.execute(query, source.parameters).fetchone()
    return int(row[0]) if row else 0


def _series_of(source: _Source, table: str, column: str, where: sql.SQL = _ALL) -> array[int]:
    """Read a column of numbers in their order: eight bytes a row."""
    query = sql.SQL("SELECT {1} FROM {0} t WHERE {2} ORDER BY {1}")
    with _streaming(query.format(sql.Identifier(table), sql.Identifier(column), where), source.parameters) as cursor:
        return array("q", (key for (key,) in cursor))


def _read(source: _Source, table: Table) -> Iterator[list[bytes]]:
    query = sql.SQL("SELECT {} FROM {} t WHERE {} ORDER BY {}").format(
        sql.SQL(", ").join(map(_expression, table.columns)),
        sql.Identifier(table.name),
        source.where(table),
        sql.SQL(", ").join(_ordered(table)),
    )
    number = 0
    with _streaming(query, source.parameters) as cursor:
        while rows := cursor.fetchmany(_BATCH):
            first, number = number + 1, number + len(rows)
            yield [_row(source, table, place, row) for place, row in enumerate(rows, first)]


def _expression(column: Column) -> sql.Composable:
    name = sql.SQL("t.{}").format(sql.Identifier(column.column))
    if column.refers_to is Project:
        return sql.SQL("(SELECT p.slug FROM memory_project p WHERE p.id = {})").format(name)
    return sql.SQL("{}::text").format(name) if column.sql_type == "jsonb" else name


def _ordered(table: Table) -> Iterator[sql.Composable]:
    """Order by keys; texts by their bytes, which no server sorts otherwise."""
    texts = {column.column for column in table.columns if column.sql_type == "varchar"}
    for name in table.order:
        collation = sql.SQL(' COLLATE "C"' if name in texts else "")
        yield sql.SQL("t.{}{}").format(sql.Identifier(name), collation)


@contextmanager
def _streaming(query: sql.Composed, parameters: Mapping[str, Any]) -> Iterator[psycopg.ServerCursor[Any]]:
    """Read a query's rows as they come, in binary."""
    raw_cursor().close()  # makes the connection know vectors
    raw: psycopg.Connection[Any] = connection.connection
    with psycopg.ServerCursor(raw, "export_of_workspace") as cursor:
        cursor.itersize = _BATCH
        cursor.execute(query, parameters, binary=True)
        yield cursor


def _row(source: _Source, table: Table, number: int, values: Sequence[Any]) -> bytes:
    row: dict[str, Any] = {ROW: number} if table.is_numbered else {}
    for column, value in zip(table.columns, values, strict=True):
        if column.sql_type == "jsonb" and value is not None:
            row[column.name] = json.loads(value)
        elif column.series:
            row[column.name] = source.number(column, value)
        else:
            row[column.name] = as_json(value)
    return _line(table.kind, row)


def _line(kind: str, content: Mapping[str, Any]) -> bytes:
    text = json.dumps({kind: content}, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"{text}\n".encode()
