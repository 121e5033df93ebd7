"""Statements with numbered parameters, as the database itself knows them: what every recall sends goes this way.

Django's cursors write the parameters into the text, so that the database reads and plans it anew each time.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import psycopg

from memory.models.vectors import raw_cursor

_NONE: Mapping[str, int] = {}


def run_numbered(
    *, statement: str, parameters: Mapping[str, Any], keeps_plan: bool, constants: Mapping[str, int] = _NONE
) -> psycopg.Cursor[Any]:
    """Run a statement that names its parameters `%(name)s`, or `%(name)b` for binary; return its cursor.

    With `keeps_plan` the connection prepares it once: right where one plan serves all parameters. The planner knows
    what `constants` are, so that there is a plan for each of them. Else it is planned for the very values given, also
    in a transaction that makes its plans for any: that would hold of what is not prepared, too.
    """
    numbered, order = _number(statement, tuple(constants.items()))
    given = [parameters[name] for name in order]
    if keeps_plan:
        return raw_cursor(is_numbered=True).execute(numbered, given, prepare=True, binary=True)
    before = _plan_by("force_custom_plan")
    cursor = raw_cursor(is_numbered=True).execute(numbered, given, prepare=False, binary=True)
    _plan_by(before)  # where the statement fails, so does the transaction, which ends what was set
    return cursor


def _plan_by(mode: str) -> str:
    """Set for the rest of the transaction how prepared statements are planned; return how they were until now."""
    [(before, _)] = raw_cursor(is_numbered=True).execute(_PLAN_BY, [mode], prepare=True)
    return str(before)


@lru_cache(maxsize=1_024)  # limits, words and filters together make a great many statements
def _number(statement: str, constants: tuple[tuple[str, int], ...]) -> tuple[bytes, tuple[str, ...]]:
    """Give a statement's named parameters numbers, once: psycopg would take half a millisecond each time."""
    for name, value in constants:
        statement = statement.replace(f"%({name})s", str(int(value)))
    order: dict[str, int] = {}
    numbered = _PARAMETER.sub(lambda match: f"${order.setdefault(match[1], len(order) + 1)}", statement)
    return numbered.encode(), tuple(order)


_PARAMETER = re.compile(r"%\((\w+)\)[sb]")
_PLAN_BY = b"SELECT current_setting('plan_cache_mode'), set_config('plan_cache_mode', $1::text, true)"
