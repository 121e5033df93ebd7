"""The format of an exported file: tables and columns in their order, the header, and values as JSON.

Ids of episodes, beliefs and cycles stay as they are. Other rows are numbered from 1 in the order of their keys, and
projects are named by their slugs: these keys are the database's own, and elsewhere other rows may have them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Literal, NoReturn, Protocol

import numpy as np
from django.db import connection
from django.db.models import ForeignKey, Model
from pgvector import HalfVector
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict, Field

from memory.domain.errors import EngramError
from memory.ingest.json_lines import NotJson, read_json
from memory.models import (
    DIMENSIONS,
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    BeliefEvent,
    Box,
    BoxMember,
    ChildVerdict,
    Claim,
    ClaimEmbedding,
    ClusterJob,
    ClusterMember,
    ContradictionCandidate,
    Conversation,
    Cycle,
    CycleStep,
    Edge,
    Entity,
    Episode,
    EpisodeAccess,
    EpisodeEmbedding,
    Erased,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    Link,
    Mention,
    ModelCall,
    ModelCallEpisode,
    Project,
    RememberedFact,
    RememberJob,
    RevokedEvidence,
    RevokedLineage,
    ShownMemory,
    StructuralChild,
    StructuralJob,
    Trace,
    Transition,
    Turn,
    TurnEpisode,
    Workspace,
)

ROW = "row"  # what the number of a row is called
ORDER_OF_EPISODES = "memory_episode_number"  # the sequence that numbers episodes over all workspaces
_LENGTH = re.compile(r"\([^)]*\)")
_OWN_IDS = (Episode, Belief, Cycle)  # whose ids are the same everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, and what stands for its value in a file."""

    name: str  # in the file
    column: str  # in the database
    sql_type: str  # in the database, without a length
    is_nullable: bool
    refers_to: type[Model] | None = None
    series: str = ""  # of numbers that stand for keys, or for places in an order, of the database's own
    is_required: bool = True
    default: Any = field(default=None, hash=False)  # in a file from before there was the column


def _default_of(column: Any) -> dict[str, Any]:
    """Tell what a row without the column has; a value that only the database can make is required."""
    default = column.db_default if column.has_db_default() else None
    is_plain = not hasattr(default, "resolve_expression")
    return {"is_required": not (is_plain and (column.null or default is not None)), "default": default}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, under the name that its rows have in a file."""

    kind: str
    model: type[Model]
    is_numbered: bool  # its keys are the database's own
    order: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """Return the table's name in the database."""
        return self.model._meta.db_table

    @property
    def names(self) -> set[str]:
        """Name all that a row of a file has."""
        return {column.name for column in self.columns} | ({ROW} if self.is_numbered else set())

    @property
    def former_names(self) -> frozenset[str]:
        """Name what a row of an older file may have, and nobody needs any more."""
        return _FORMER_NAMES.get(self.kind, frozenset())


_KINDS: dict[str, type[Model]] = {
    "project": Project,
    "cycle": Cycle,
    "cycle_step": CycleStep,
    "episode": Episode,
    "episode_vector": EpisodeEmbedding,
    "episode_use": EpisodeAccess,
    "claim": Claim,
    "claim_vector": ClaimEmbedding,
    "conversation": Conversation,
    "turn": Turn,
    "turn_episode": TurnEpisode,
    "belief": Belief,
    "belief_vector": BeliefEmbedding,
    "belief_use": BeliefAccess,
    "belief_change": BeliefEvent,
    "transition": Transition,
    "cluster": ClusterJob,
    "cluster_member": ClusterMember,
    "structural_job": StructuralJob,
    "structural_child": StructuralChild,
    "call": ModelCall,
    "call_episode": ModelCallEpisode,
    "verdict": JobVerdict,
    "child_verdict": ChildVerdict,
    "evidence": Evidence,
    "lineage": Lineage,
    "undone_evidence": RevokedEvidence,
    "undone_lineage": RevokedLineage,
    "decision": GateDecision,
    "remembrance": RememberJob,
    "remembered_fact": RememberedFact,
    "link": Link,
    "rival": ContradictionCandidate,
    "surfaced": ShownMemory,
    "entity": Entity,
    "mention": Mention,
    "edge": Edge,
    "box": Box,
    "box_member": BoxMember,
    "trace": Trace,
    "erased": Erased,
}


@cache
def tables() -> tuple[Table, ...]:
    """List the tables in the order of a file."""
    return tuple(_table(kind, model) for kind, model in _KINDS.items())


def _table(kind: str, model: type[Model]) -> Table:
    key: Any = model._meta.pk
    has_own_key = not key.column or key.get_internal_type() != "BigAutoField"
    keys = tuple(field.column for field in getattr(key, "fields", ())) or (key.column,)
    columns = [_column(field) for field in _stored(model) if has_own_key or not field.primary_key]
    return Table(
        kind=kind,
        model=model,
        is_numbered=not has_own_key and model is not Project,
        order=("slug",) if model is Project else keys,
        columns=tuple(columns),
    )


def _stored(model: type[Model]) -> Iterator[Any]:
    """Yield the columns that neither the database fills in nor the place in which a row is."""
    fields: Iterator[Any] = iter(model._meta.concrete_fields)
    return (field for field in fields if field.column and not field.generated and field.name != "workspace")


def _column(field: Any) -> Column:
    target: Any = field.related_model if isinstance(field, ForeignKey) else None
    db_type = field.rel_db_type(connection) if field.primary_key else field.db_type(connection)
    return Column(
        name=_NAMES_IN_FILES.get(field.name, field.name),
        column=field.column,
        sql_type=_LENGTH.sub("", str(db_type)),
        is_nullable=field.null,
        refers_to=target,
        series=_series_of(field, target),
        **_default_of(field),
    )


_FORMER_NAMES = {"verdict": frozenset({"has_challenged"})}
_NAMES_IN_FILES = {"created_in": "born_in"}  # a file keeps the words that its readers know


def _series_of(field: Any, target: Any) -> str:
    if target is not None:
        return "" if target in (*_OWN_IDS, Project) else str(target._meta.db_table)
    return ORDER_OF_EPISODES if field.model is Episode and field.name == "number" else ""


def numbered_tables() -> set[str]:
    """Name the tables with keys of the database's own that other rows refer to."""
    return {column.series for table in tables() for column in table.columns if column.refers_to and column.series}


HEADER = "engram"  # the kind of the first line
VERSION = 1
WORKSPACE_FORMAT = "engram-workspace"
USER_FORMAT = "engram-user"


# What of a workspace its memory hangs on. Its name, its caps and who belongs to it are its own affair.
class WorkspaceSettings(BaseModel):
    """What the workspace had chosen, by the names of its fields; a file has the words of its first readers."""

    model_config = ConfigDict(strict=True, extra="forbid")

    beliefs_enabled: Annotated[bool, Field(alias="is_believing")]
    confidence_model: Literal["beta", "additive"]
    discount_repeats: Annotated[bool, Field(alias="counts_origins")]
    embedding_model: Annotated[str, Field(max_length=100)]


class Header(BaseModel):
    """The header of a workspace's file."""

    model_config = ConfigDict(strict=True, extra="forbid")

    format: str
    version: int
    settings: WorkspaceSettings
    erasure_key: str | None
    rows: dict[str, Annotated[int, Field(ge=0)]]


def header_of(*, workspace: Workspace, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the header of a workspace's file."""
    return {
        "format": WORKSPACE_FORMAT,
        "version": VERSION,
        "settings": {
            field.alias or name: getattr(workspace, name) for name, field in WorkspaceSettings.model_fields.items()
        },
        "erasure_key": None if workspace.erasure_key is None else as_json(bytes(workspace.erasure_key)),
        "rows": dict(rows),
    }


def header_of_user(*, user: str, rows: Mapping[str, int]) -> dict[str, Any]:
    """Return the header of a user's file."""
    return {"format": USER_FORMAT, "version": VERSION, "user": user, "rows": dict(rows)}


LONGEST_LINE = 8 * 2**20  # bytes: no row comes near, and a file without line ends is no reason to run out of memory


class Stream(Protocol):
    """Bytes that come line by line."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line, or as much of it as `size` allows; nothing at the end."""


class FileLines:
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


class BrokenFile(EngramError, ValueError):
    """A file that is no workspace's memory; `line` is where that shows."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self, *, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line

    def members(self) -> dict[str, Any]:
        return {"line": self.line}


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_HALVES = ">f2"  # as PostgreSQL sends them
_INTEGERS = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}


class BadValue(ValueError):
    """A value that its column cannot hold; the message says what is expected."""


def as_json(value: Any) -> Any:
    """Return a value of the database as JSON has it."""
    match value:
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='microseconds')}Z"
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case HalfVector():
            return _as_text(value.to_numpy().astype(_HALVES).tobytes())
        case bytes() | memoryview():
            return _as_text(bytes(value))
        case _:
            return value


def reader_of(column: Column) -> Callable[[Any, Column], Any]:
    """Return what gives the database's value for one of a file that is not null, and raises BadValue for no such."""
    return _READERS[column.sql_type]


def _as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _text(value: Any, _: Column) -> str:
    if not isinstance(value, str) or _UNSTORABLE.search(value):
        raise BadValue("a text without NUL and halves of surrogate pairs is expected")
    return value


def _texts(value: Any, column: Column) -> list[str]:
    if not isinstance(value, list):
        raise BadValue("a list of texts is expected")
    return [_text(item, column) for item in value]


def _integer(value: Any, column: Column) -> int:
    beyond = _INTEGERS[column.sql_type]
    if not isinstance(value, int) or isinstance(value, bool) or not -beyond <= value < beyond:
        raise BadValue("a whole number is expected")
    return value


def _number(value: Any, _: Column) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not np.isfinite(value):
        raise BadValue("a number is expected")
    return float(value)


def _boolean(value: Any, _: Column) -> bool:
    if not isinstance(value, bool):
        raise BadValue("true or false is expected")
    return value


def _moment(value: Any, _: Column) -> datetime:
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise BadValue("a time such as 2026-03-01T12:00:00.000000Z is expected")
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise BadValue("there is no such time") from None


def _day(value: Any, _: Column) -> date:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise BadValue("a day such as 2026-03-01 is expected")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise BadValue("there is no such day") from None


def _decimal(value: Any, _: Column) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal("nan")
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite():
        raise BadValue("a decimal number, as text, is expected")
    return number


def _json(value: Any, _: Column) -> Jsonb:
    return Jsonb(value)


def _vector(value: Any, _: Column) -> HalfVector:
    data = read_bytes(value)
    numbers = np.frombuffer(data, dtype=_HALVES) if len(data) == DIMENSIONS * 2 else None
    if numbers is None or not np.isfinite(numbers).all():
        raise BadValue(f"{DIMENSIONS} finite half-precision numbers, big-endian, in base64, are expected")
    return HalfVector(numbers.astype(np.float32))


def read_bytes(value: Any) -> bytes:
    """Read base64; raise BadValue for anything else."""
    try:
        return base64.b64decode(value if isinstance(value, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("base64 is expected") from None


_READERS: Mapping[str, Callable[[Any, Column], Any]] = {
    "varchar": _text,
    "text": _text,
    "varchar[]": _texts,
    "text[]": _texts,
    "smallint": _integer,
    "integer": _integer,
    "bigint": _integer,
    "double precision": _number,
    "boolean": _boolean,
    "timestamp with time zone": _moment,
    "date": _day,
    "numeric": _decimal,
    "jsonb": _json,
    "halfvec": _vector,
}
