"""A value on its way between the database and JSON: exact there and back, and always written in the same way."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from memory.models import DIMENSIONS
from memory.transfer.tables import Column

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
