"""Read a workspace's memory from a file into an empty workspace: all of it, in one transaction, or nothing (R14).

`import_workspace` checks the header, fills the tables in their order (WorkspaceLoader) and recomputes what does not
follow from the evidence. What rows name must be of the same file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import psycopg
import structlog
from django.db import connection, transaction
from django.db.models import Model
from psycopg import sql
from pydantic import ValidationError

from memory.domain.errors import EngramError
from memory.domain.identity import KEY_BYTES, Actor
from memory.export.file_format import (
    HEADER,
    ORDER_OF_EPISODES,
    ROW,
    USER_FORMAT,
    VERSION,
    WORKSPACE_FORMAT,
    BadValue,
    BrokenFile,
    Column,
    FileLines,
    Header,
    Stream,
    Table,
    numbered_tables,
    read_bytes,
    reader_of,
    tables,
)
from memory.history import attribute_changes
from memory.ledger.confidence import find_drift, recompute_beliefs
from memory.ledger.transactions import lock_beliefs, lock_workspace
from memory.models import Belief, BeliefEvent, Cycle, Episode, Project, Workspace
from memory.redaction.redact import redact
from memory.search.prepared import raw_cursor
from memory.search.words import count_words

log = structlog.get_logger(__name__)


@transaction.atomic
def import_workspace(
    *,
    workspace: Workspace,
    stream: Stream,
    actor: Actor,
    now: datetime,
    on_bytes: Callable[[int], object] = lambda count: None,
) -> ImportResult:
    """Read a file of `export_workspace` into an empty workspace; projects of the same slugs may be there.

    Raise BrokenFile, WorkspaceNotEmpty or IdTaken, and leave all as it was.
    """
    lock_workspace(workspace.pk)
    _check_empty(workspace)
    lines = FileLines(stream=stream, on_bytes=on_bytes)
    header = _read_header(lines)
    _apply_settings(workspace, header, lines)
    with WorkspaceLoader(workspace=workspace, rows=header.rows) as filling:
        _read_rows(lines, filling)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    published = Belief.objects.for_workspace(workspace).exclude(promoted_at=None)
    published.update(promoted_at=None, demoted_at=None, published_confidence=None)  # in a file of another machine (P2)
    recomputed = _recompute_beliefs(workspace, actor=actor, now=now)
    count_words(workspace_id=workspace.pk, waits=True)
    log.info("workspace_imported", workspace=workspace.pk, actor=str(actor), rows=sum(header.rows.values()))
    return ImportResult(rows=header.rows, recomputed=recomputed, with_secrets=filling.with_secrets)


RECOMPUTED = "counted anew when it was imported"


class WorkspaceNotEmpty(EngramError, ValueError):
    """A memory is read into a workspace that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What was read, by kind of row; beliefs without the numbers that their evidence gives, memories with secrets."""

    rows: Mapping[str, int]
    recomputed: int
    with_secrets: int

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers that people ask for first."""
        names = {"episodes": "episode", "beliefs": "belief", "cycles": "cycle", "evidence": "evidence"}
        found = {name: self.rows.get(kind, 0) for name, kind in names.items()}
        rows = sum(self.rows.values())
        return {**found, "rows": rows, "recomputed": self.recomputed, "with_secrets": self.with_secrets}


def _check_empty(workspace: Workspace) -> None:
    for table in tables():
        if table.model is not Project and table.model._default_manager.filter(workspace=workspace.pk).exists():
            raise WorkspaceNotEmpty(f"Workspace {workspace.name} has memories: a file is read into an empty one.")


def _read_header(lines: FileLines) -> Header:
    kind, content = lines.read() or ("", {})
    if kind != HEADER:
        lines.number = 1
        lines.refuse("is no header of an export")
    if content.get("format") == USER_FORMAT:
        lines.refuse("says that this is one user's data, which is no workspace's memory")
    if content.get("format") != WORKSPACE_FORMAT or content.get("version") != VERSION:
        lines.refuse(f"says that this is not {WORKSPACE_FORMAT} in version {VERSION}")
    try:
        return Header.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        lines.refuse(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _apply_settings(workspace: Workspace, header: Header, lines: FileLines) -> None:
    """Let the workspace choose as the one chose whose memory this is; numbers of beliefs hang on it."""
    try:
        key = None if header.erasure_key is None else read_bytes(header.erasure_key)
    except BadValue as error:
        lines.refuse(f"erasure_key: {error}")
    if key is not None and len(key) != KEY_BYTES:
        lines.refuse(f"erasure_key: {KEY_BYTES} bytes are expected")
    Workspace.objects.filter(pk=workspace.pk).update(**header.settings.model_dump(), erasure_key=key)
    workspace.refresh_from_db()


def _read_rows(lines: FileLines, filling: WorkspaceLoader) -> None:
    """Read tables in their order, each with as many rows as the header says."""
    left = {table.kind: place for place, table in enumerate(tables())}
    unknown = sorted(filling.rows.keys() - left.keys())
    if unknown:
        lines.refuse(f"rows: there is no kind {unknown[0]!r}")
    current: Table | None = None
    while found := lines.read():
        kind, row = found
        if kind not in left or (current and left[kind] < left[current.kind]):
            lines.refuse(f"{kind!r} is not expected here")
        if current is None or kind != current.kind:
            filling.end_table(line=lines.number)
            current = tables()[left[kind]]
            filling.begin_table(current)
        filling.add(row, line=lines.number)
    filling.end_table(line=lines.number + 1)
    filling.check_complete(line=lines.number + 1)


def _recompute_beliefs(workspace: Workspace, *, actor: Actor, now: datetime) -> int:
    """Compute anew what does not follow from the evidence (B4); return how many beliefs those are."""
    _, drifts = find_drift(workspace=workspace)
    ids = sorted({drift["id"] for drift in drifts})
    if ids:
        attribute_changes(actor=actor, reason=RECOMPUTED)
        recompute_beliefs(beliefs=lock_beliefs(ids), now=now)
    return len(ids)


_BATCH = 500
_KEYS_AT_ONCE = 10_000
_MOST_KEYS = 10_000_000  # of one kind: a single row may name the last that the header promises, and have all drawn

# What a memory says. It goes in as it is: hashes, vectors and the record hang on it; but who reads the file is told.
_TEXT_FIELDS: Mapping[type[Model], str] = {Episode: "text", Belief: "statement"}

# What psycopg calls the types of columns.
_TYPES = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "boolean": "bool",
    "double precision": "float8",
    "timestamp with time zone": "timestamptz",
}


class IdTaken(EngramError, ValueError):
    """An id of the file belongs to another workspace of this database."""


@dataclass(slots=True, kw_only=True)
class _Series:
    """Keys, or places in an order, that the database gives for the numbers of a file."""

    sequence: str  # SQL that names it
    of: int
    keys: array[int] = field(default_factory=lambda: array("q"))

    def key(self, number: int, *, before_drawing: Callable[[], object]) -> int:
        """Return the key for a number from 1 to `of`."""
        if not 1 <= number <= self.of:
            raise BadValue(f"a number from 1 to {self.of} is expected")
        while len(self.keys) < number:
            before_drawing()
            self._draw(min(_KEYS_AT_ONCE, self.of - len(self.keys)))
        return self.keys[number - 1]

    def _draw(self, count: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT nextval({self.sequence}) FROM generate_series(1, %s)", [count])  # noqa: S608
            self.keys.extend(sorted(key for (key,) in cursor.fetchall()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row that waits to be stored, and the line that it came from."""

    line: int
    values: Mapping[str, Any]  # by column


class WorkspaceLoader:
    """One workspace on its way to being full; the caller holds a transaction.

    While rows are read the database stores those before them; whoever asks it anything else calls `_finish` first.
    """

    def __init__(self, *, workspace: Workspace, rows: Mapping[str, int]) -> None:
        self.workspace, self.rows = workspace, rows
        self._series = {ORDER_OF_EPISODES: _series(f"'{ORDER_OF_EPISODES}'", rows, "episode")}
        for table in tables():
            if table.name in numbered_tables():
                sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                self._series[table.name] = _series(sequence, rows, table.kind)
        self.with_secrets = 0
        self._projects: dict[str, int] = {}
        self._table: Table | None = None
        self._names: set[str] = set()
        self._readers: list[tuple[Column, Callable[[Any, Column], Any]]] = []
        self._waiting: list[_Row] = []
        self._stored: list[_Row] = []  # or nearly so: the database is at it
        self._storing = ExitStack()
        self._count: dict[str, int] = {}
        self._named: dict[Column, dict[str, int]] = {}  # rows of the table that is read, and by which line
        self._named_ahead: dict[tuple[Table, Column], dict[str, int]] = {}  # rows of tables that come later
        self._places = {table.model: place for place, table in enumerate(tables())}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BrokenFile):
            self._finish()  # where the database refuses an earlier line, that is the one to name
        self._storing.__exit__(kind, error, trace)

    def begin_table(self, table: Table) -> None:
        """Take rows of a table from here on."""
        self._table, self._count[table.kind] = table, 0
        self._names, self._readers = table.names, [(column, self._reader(column)) for column in table.columns]

    def add(self, content: Mapping[str, Any], *, line: int) -> None:
        """Take a row; it is stored with others. Raise BrokenFile, IdTaken."""
        table = self._current
        self._count[table.kind] += 1
        try:
            self._waiting.append(_Row(line=line, values=self._read(table, content)))
        except BadValue as error:
            raise BrokenFile(line=line, reason=f"{table.kind}: {error}") from None
        if len(self._waiting) >= _BATCH:
            self._store()

    def end_table(self, *, line: int) -> None:
        """Store what waits; the table must have the rows that the header promised."""
        if self._table is None:
            return
        self._store()
        self._finish()
        for column, named in self._named.items():
            _check_known(self.workspace, self._table, column, named)
        self._named = {}
        kind = self._table.kind
        if self._count[kind] != self.rows.get(kind, 0):
            reason = f"{kind}: {self._count[kind]} rows, where the header says {self.rows.get(kind, 0)}"
            raise BrokenFile(line=line, reason=reason)
        if self._table.model is Project:
            self._projects = dict(Project.objects.for_workspace(self.workspace).values_list("slug", "pk"))

    def check_complete(self, *, line: int) -> None:
        """See that no table is missing."""
        missing = [kind for kind, count in self.rows.items() if count and kind not in self._count]
        if missing:
            raise BrokenFile(line=line, reason=f"the file ends before its rows of {missing[0]}")
        for (table, column), named in self._named_ahead.items():
            _check_known(self.workspace, table, column, named)

    @property
    def _current(self) -> Table:
        assert self._table  # begin_table comes before rows
        return self._table

    def _read(self, table: Table, content: Mapping[str, Any]) -> dict[str, Any]:
        if content.keys() != self._names:
            _check_names(table, content)
        if table.is_numbered and content[ROW] != self._count[table.kind]:
            raise BadValue(f"{ROW}: {self._count[table.kind]} is expected, in the order of rows")
        values = self._values(content)
        self.with_secrets += bool(redact(str(values.get(_TEXT_FIELDS.get(table.model, "")) or "")).counts)
        if table.is_numbered and table.name in self._series:
            values["id"] = self._drawn(table.name, content[ROW])
        return values

    def _values(self, content: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for column, read in self._readers:
            value = content.get(column.name, column.default)
            try:
                if value is None and not column.is_nullable:
                    raise BadValue("null is not expected")
                values[column.column] = None if value is None else read(value, column)
            except BadValue as error:
                raise BadValue(f"{column.name}: {error}") from None
        return values

    def _reader(self, column: Column) -> Callable[[Any, Column], Any]:
        if column.refers_to is Project:
            return self._project
        return self._key if column.series else reader_of(column)

    def _key(self, value: Any, column: Column) -> int:
        return self._drawn(column.series, reader_of(column)(value, column))

    def _drawn(self, series: str, number: int) -> int:
        return self._series[series].key(number, before_drawing=self._finish)

    def _project(self, slug: object, _: Column) -> int:
        if not isinstance(slug, str) or slug not in self._projects:
            raise BadValue("a project of this file is expected")
        return self._projects[slug]

    def _store(self) -> None:
        """Begin to store what waits, once what came before it is stored."""
        self._finish()
        table, rows, self._waiting = self._current, self._waiting, []
        if not rows:
            return
        self._check_references(table, rows)
        _check_ids_are_free(table, rows)
        self._stored = rows
        self._storing.enter_context(self._storing_rows(table, rows))

    def _finish(self) -> None:
        """Wait for what is being stored, and find the line where the database refuses it."""
        table, rows, self._stored = self._table, self._stored, []
        if not table or not rows:
            return
        try:
            self._storing.close()
        except psycopg.Error:
            for row in rows:
                self._store_alone(table, row)
            raise
        if table.model is Belief:  # of each the triggers noted that it was made; the file tells what truly was
            BeliefEvent.objects.for_workspace(self.workspace).delete()

    def _store_alone(self, table: Table, row: _Row) -> None:
        try:
            with self._storing_rows(table, [row]):
                pass
        except psycopg.Error as error:
            reason = error.diag.message_primary or "the database cannot hold it"
            raise BrokenFile(line=row.line, reason=f"{table.kind}: {reason}") from None

    @contextmanager
    def _storing_rows(self, table: Table, rows: Sequence[_Row]) -> Iterator[None]:
        """Have the database store rows, and wait for it in the end."""
        with transaction.atomic(), raw_cursor() as cursor, ThreadPoolExecutor(1) as thread:
            if table.model is Project:
                self._store_projects(rows)
                yield
            else:
                storing = thread.submit(_copy_in, cursor, table, self.workspace, rows)
                yield
                storing.result()

    def _store_projects(self, rows: Sequence[_Row]) -> None:
        Project.objects.bulk_create(
            [Project(workspace=self.workspace, **row.values) for row in rows],
            update_conflicts=True,
            unique_fields=["workspace", "slug"],
            update_fields=["path", "created_at"],
        )

    def _check_references(self, table: Table, rows: Sequence[_Row]) -> None:
        """See that ids which rows name are this workspace's: another's must not be drawn in.

        A row may name a later one: of its own table, that is seen to at the table's end, of another, at the file's.
        """
        for column in table.columns:
            if column.refers_to in (Episode, Belief, Cycle):
                named = {row.values[column.column]: row.line for row in reversed(rows)}
                named.pop(None, None)
                if column.refers_to is table.model:
                    self._named[column] = named | self._named.get(column, {})
                elif self._places[column.refers_to] > self._places[table.model]:
                    self._named_ahead[table, column] = named | self._named_ahead.get((table, column), {})
                else:
                    _check_known(self.workspace, table, column, named)


def _series(sequence: str, rows: Mapping[str, int], kind: str) -> _Series:
    count = rows.get(kind, 0)
    if count > _MOST_KEYS:
        raise BrokenFile(line=1, reason=f"rows: more than {_MOST_KEYS} of {kind}")
    return _Series(sequence=sequence, of=count)


def _check_names(table: Table, content: Mapping[str, Any]) -> None:
    if unknown := sorted(content.keys() - table.names - table.former_names):
        raise BadValue(f"there is no column {unknown[0]!r}")
    optional = {column.name for column in table.columns if not column.is_required}
    if missing := sorted(table.names - optional - content.keys()):
        raise BadValue(f"{missing[0]}: it is missing")


def _check_known(workspace: Workspace, table: Table, column: Column, named: Mapping[str, int]) -> None:
    assert column.refers_to
    rows = column.refers_to._default_manager.filter(workspace=workspace.pk, pk__in=named)
    known = set(rows.values_list("pk", flat=True))
    for key, line in sorted(named.items(), key=lambda pair: pair[1]):
        if key not in known:
            raise BrokenFile(line=line, reason=f"{table.kind}: {column.name}: the file has no {key}")


def _check_ids_are_free(table: Table, rows: Iterable[_Row]) -> None:
    if table.model not in (Episode, Belief, Cycle):
        return
    with connection.cursor() as cursor:  # as one parameter: Django takes long to compose a list of many
        cursor.execute(f"SELECT id FROM {table.name} WHERE id = ANY(%s)", [[row.values["id"] for row in rows]])  # noqa: S608
        taken = [key for (key,) in cursor.fetchall()]
    if found := sorted(taken):
        raise IdTaken(
            f"{found[0]} exists in this database already. Ids stay as they are: read the file into another database, "
            f"or erase the memory of the workspace that has it first."
        )


def _copy_in(cursor: psycopg.Cursor[Any], table: Table, workspace: Workspace, rows: Sequence[_Row]) -> None:
    names = ["workspace_id", *rows[0].values]
    types = {column.column: _TYPES.get(column.sql_type, column.sql_type) for column in table.columns}
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with cursor.copy(statement) as copy:
        copy.set_types(["int8", *(types.get(name, "int8") for name in names[1:])])
        for row in rows:
            copy.write_row([workspace.pk, *row.values.values()])
