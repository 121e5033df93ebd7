"""Statements with numbered parameters, as the database itself knows them: what every recall sends goes this way.

Django's cursors write the parameters into the text, so that the database reads and plans it anew each time.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from memory.models.vectors import raw_cursor

Constant = int | str | tuple[int, ...]
_NONE: Mapping[str, Constant] = {}


def run_numbered(
    *, statement: str, parameters: Mapping[str, Any], keeps_plan: bool, constants: Mapping[str, Constant] = _NONE
) -> psycopg.Cursor[Any]:
    """Run a statement that names its parameters `%(name)s`, or `%(name)b` for binary; return its cursor.

    The connection prepares it once. With `keeps_plan` that holds of its plan, too: right where one serves all values.
    Else it is planned for the very values given, also in a transaction that makes its plans for any. The planner knows
    what `constants` are, so that there is a statement for each of them. A list travels as text: the statement tells of
    what type it is. Raises Django's own errors.
    """
    numbered, order = _number(statement, tuple(constants.items()))
    given = [_plain(parameters[name]) for name in order]
    with connection.wrap_database_errors, nullcontext() if keeps_plan else _planned_anew():
        return raw_cursor(is_numbered=True).execute(numbered, given, prepare=True, binary=True)


@contextmanager
def _planned_anew() -> Iterator[None]:
    """Have what is prepared planned for its values, and then as before; all of it is sent in one go.

    Where a statement fails, so does the transaction, which ends what was set.
    """
    before, after = raw_cursor(is_numbered=True), raw_cursor(is_numbered=True)
    with before.connection.pipeline():
        before.execute(_PLAN_ANEW, prepare=True)
        yield
        after.execute(_PLAN_AS_BEFORE, prepare=True)


@lru_cache(maxsize=1_024)  # limits, words and filters together make a great many statements
def _number(statement: str, constants: tuple[tuple[str, Constant], ...]) -> tuple[bytes, tuple[str, ...]]:
    """Write constants into a statement and number its other parameters, once: psycopg would take half a millisecond."""
    known, order = dict(constants), dict[str, int]()

    def write(match: re.Match[str]) -> str:
        name = match[1]
        return _literal(known[name]) if name in known else f"${order.setdefault(name, len(order) + 1)}"

    numbered = _PARAMETER.sub(write, statement)
    return numbered.encode(), tuple(order)


def _plain(value: Any) -> Any:
    """Write a list as the database reads it: psycopg looks at each element's type, and takes ten times as long."""
    if type(value) is not list or not _PLAIN.issuperset(map(type, value)):
        return value
    return f"{{{','.join(map(_element, value))}}}"


def _element(value: str | int | float) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def _literal(value: Constant) -> str:
    if isinstance(value, tuple):
        return f"'{{{','.join(str(int(one)) for one in value)}}}'::bigint[]"
    return sql.Literal(value).as_string(None)


_PLAIN = {str, int, float}
_PARAMETER = re.compile(r"%\((\w+)\)[sb]")
_PLAN_ANEW = b"""
SELECT set_config('engram.plan_cache_mode', current_setting('plan_cache_mode'), true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
"""
_PLAN_AS_BEFORE = b"SELECT set_config('plan_cache_mode', current_setting('engram.plan_cache_mode'), true)"
