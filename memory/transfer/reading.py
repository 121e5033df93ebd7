"""A workspace's memory from a file into an empty workspace: all of it, in one transaction, or nothing (R14)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, Protocol

import structlog
from django.db import connection, transaction
from pydantic import ValidationError

from memory.domain.actor import Actor
from memory.domain.erasure import KEY_BYTES
from memory.history.attribution import attribute_changes
from memory.ingest.json_text import NotJson, read_json
from memory.ledger.confidence import find_drift, recompute_beliefs
from memory.ledger.transactions import lock_beliefs, lock_workspace
from memory.models import Project, Workspace
from memory.search.words import count_words
from memory.transfer.filling import BrokenFile, Filling
from memory.transfer.header import HEADER, USER_FORMAT, VERSION, WORKSPACE_FORMAT, Header
from memory.transfer.tables import Table, tables
from memory.transfer.values import BadValue, read_bytes

log = structlog.get_logger(__name__)

LONGEST_LINE = 8 * 2**20  # bytes: no row comes near, and a file without line ends is no reason to run out of memory

RECOUNTED = "counted anew when it was imported"


class Stream(Protocol):
    """Bytes that come line by line."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line, or as much of it as `size` allows; nothing at the end."""


class NotEmpty(ValueError):
    """A memory is read into a workspace that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
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


@transaction.atomic
def import_workspace(
    *,
    workspace: Workspace,
    stream: Stream,
    actor: Actor,
    now: datetime,
    on_bytes: Callable[[int], object] = lambda count: None,
) -> Imported:
    """Read a file of `export_workspace` into an empty workspace; projects of the same slugs may be there.

    Raise BrokenFile, NotEmpty or IdTaken, and leave all as it was.
    """
    lock_workspace(workspace.pk)
    _check_empty(workspace)
    lines = _Lines(stream=stream, on_bytes=on_bytes)
    header = _read_header(lines)
    _choose(workspace, header, lines)
    with Filling(workspace=workspace, rows=header.rows) as filling:
        _read_rows(lines, filling)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    recomputed = _count_beliefs(workspace, actor=actor, now=now)
    count_words(workspace_id=workspace.pk, waits=True)
    log.info("workspace_imported", workspace=workspace.pk, actor=str(actor), rows=sum(header.rows.values()))
    return Imported(rows=header.rows, recomputed=recomputed, with_secrets=filling.with_secrets)


def _check_empty(workspace: Workspace) -> None:
    for table in tables():
        if table.model is not Project and table.model._default_manager.filter(workspace=workspace.pk).exists():
            raise NotEmpty(f"Workspace {workspace.name} has memories: a file is read into an empty one.")


class _Lines:
    """The lines of a file as JSON, and where one is."""

    def __init__(self, *, stream: Stream, on_bytes: Callable[[int], object]) -> None:
        self._stream, self._on_bytes, self.number = stream, on_bytes, 0

    def read(self) -> tuple[str, dict[str, Any]] | None:
        """Return the next line's kind and content, None at the end."""
        line = self._stream.readline(LONGEST_LINE + 1)
        if not line:
            return None
        self.number += 1
        self._on_bytes(len(line))
        if len(line) > LONGEST_LINE:
            self.refuse("is too long")
        try:
            content = read_json(line)
        except NotJson as error:
            self.refuse(f"is not JSON; {error}")
        if not isinstance(content, dict) or len(content) != 1:
            self.refuse("is not one row")
        ((kind, row),) = content.items()
        if not isinstance(row, dict):
            self.refuse("is not one row")
        return kind, row

    def refuse(self, reason: str) -> NoReturn:
        """Raise BrokenFile about the line that was read last."""
        raise BrokenFile(line=self.number, reason=reason)


def _read_header(lines: _Lines) -> Header:
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


def _choose(workspace: Workspace, header: Header, lines: _Lines) -> None:
    """Let the workspace choose as the one chose whose memory this is; numbers of beliefs hang on it."""
    try:
        key = None if header.erasure_key is None else read_bytes(header.erasure_key)
    except BadValue as error:
        lines.refuse(f"erasure_key: {error}")
    if key is not None and len(key) != KEY_BYTES:
        lines.refuse(f"erasure_key: {KEY_BYTES} bytes are expected")
    Workspace.objects.filter(pk=workspace.pk).update(**header.settings.model_dump(), erasure_key=key)
    workspace.refresh_from_db()


def _read_rows(lines: _Lines, filling: Filling) -> None:
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


def _count_beliefs(workspace: Workspace, *, actor: Actor, now: datetime) -> int:
    """Compute anew what does not follow from the evidence (B4); return how many beliefs those are."""
    _, drifts = find_drift(workspace=workspace)
    ids = sorted({drift["id"] for drift in drifts})
    if ids:
        attribute_changes(actor=actor, reason=RECOUNTED)
        recompute_beliefs(beliefs=lock_beliefs(ids), now=now)
    return len(ids)
