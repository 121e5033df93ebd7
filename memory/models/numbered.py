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
    what `constants` are, so that there is a plan for each of them.
    """
    numbered, order = _number(statement, tuple(constants.items()))
    cursor = raw_cursor(is_numbered=True)
    return cursor.execute(numbered, [parameters[name] for name in order], prepare=keeps_plan, binary=True)


@lru_cache(maxsize=1_024)  # limits, words and filters together make a great many statements
def _number(statement: str, constants: tuple[tuple[str, int], ...]) -> tuple[bytes, tuple[str, ...]]:
    """Give a statement's named parameters numbers, once: psycopg would take half a millisecond each time."""
    for name, value in constants:
        statement = statement.replace(f"%({name})s", str(int(value)))
    order: dict[str, int] = {}
    numbered = _PARAMETER.sub(lambda match: f"${order.setdefault(match[1], len(order) + 1)}", statement)
    return numbered.encode(), tuple(order)


_PARAMETER = re.compile(r"%\((\w+)\)[sb]")
