"""Send statements to the database: prepared once on a connection, with binary vectors, each within a time limit.

`run_prepared` runs one statement; Django's cursors write the parameters into the text, so that the database reads and
plans it anew each time. `TimedSearch` runs several within one transaction. `raw_cursor` sends a vector as 1.5 kB of
halves, where Django's cursor sends 15 kB of text (about 3 ms).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, lru_cache
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import sql
from psycopg.types import TypeInfo

Constant = int | str | tuple[int, ...]
_NO_CONSTANTS: Mapping[str, Constant] = {}


def run_prepared(
    *,
    statement: str,
    parameters: Mapping[str, Any],
    keeps_plan: bool,
    constants: Mapping[str, Constant] = _NO_CONSTANTS,
) -> psycopg.Cursor[Any]:
    """Run a statement that names its parameters `%(name)s`, or `%(name)b` for binary; return its cursor.

    The connection prepares it once. With `keeps_plan` that holds of its plan, too: right where one serves all values.
    Else it is planned for the very values given, also in a transaction that makes its plans for any. The planner knows
    what `constants` are, so that there is a statement for each of them. A list travels as text: the statement tells of
    what type it is. Raises Django's own errors.
    """
    numbered, order = _number_parameters(statement, tuple(constants.items()))
    given = [_as_array(parameters[name]) for name in order]
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
        after.execute(_RESTORE_PLANNING, prepare=True)


@lru_cache(maxsize=1_024)  # limits, words and filters together make a great many statements
def _number_parameters(statement: str, constants: tuple[tuple[str, Constant], ...]) -> tuple[bytes, tuple[str, ...]]:
    """Write constants into a statement and number its other parameters, once: psycopg would take half a millisecond."""
    known, order = dict(constants), dict[str, int]()

    def write(match: re.Match[str]) -> str:
        name = match[1]
        return _literal(known[name]) if name in known else f"${order.setdefault(name, len(order) + 1)}"

    numbered = _PARAMETER.sub(write, statement)
    return numbered.encode(), tuple(order)


def _as_array(value: Any) -> Any:
    """Write a list as the database reads it: psycopg looks at each element's type, and takes ten times as long."""
    if type(value) is not list or not _ARRAY_TYPES.issuperset(map(type, value)):
        return value
    return f"{{{','.join(map(_array_element, value))}}}"


def _array_element(value: str | int | float) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def _literal(value: Constant) -> str:
    if isinstance(value, tuple):
        return f"'{{{','.join(str(int(one)) for one in value)}}}'::bigint[]"
    return sql.Literal(value).as_string(None)


_ARRAY_TYPES = {str, int, float}
_PARAMETER = re.compile(r"%\((\w+)\)[sb]")

_PLAN_ANEW = b"""
SELECT set_config('engram.plan_cache_mode', current_setting('plan_cache_mode'), true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
"""
_RESTORE_PLANNING = b"SELECT set_config('plan_cache_mode', current_setting('engram.plan_cache_mode'), true)"
Result = TypeVar("Result")

# An invalid value of pgvector's settings only warns, and a scan then stops early: what is set is read back. The
# vector has its library loaded first. Half the time of a search in a small scope goes into planning it. So statements
# whose ways are all chosen beforehand keep one plan, made for anything (it would take a small scope for one of
# average size, and read all of a table, or sort what an index has in order: both are switched off). Tables are joined
# as they are written down, fewer ways are left to choose from, nothing is compiled (jit) and no worker started: that
# takes longer than these searches. A commit has no time of its own: what it waits for are locks. The last statement
# may wait until an answer was sent: a client that does not read it holds nothing up for longer than that.
_SEARCH_SETTINGS = """
SELECT set_config('hnsw.ef_search', %(effort)s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('statement_timeout', %(milliseconds)s::text, true), set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true), set_config('join_collapse_limit', '1', true),
    set_config('from_collapse_limit', '1', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_memoize', 'off', true), set_config('enable_material', 'off', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true), set_config('synchronous_commit', 'off', true),
    set_config('lock_timeout', %(milliseconds)s::text, true),
    set_config('idle_in_transaction_session_timeout', '10s', true)
FROM (SELECT '[1]'::halfvec) loaded
"""


class SearchFailed(RuntimeError):
    """A statement failed or took too long; the connection can be used on."""


class TimedSearch:
    """Statements in one transaction, begun with the first and again after one that failed; the last one may write.

    Its settings end with it: a transaction that was open before is taken back to where it stood.
    """

    def __init__(self, *, effort: int) -> None:
        self._effort = effort
        self._open = ExitStack()
        self._is_inside = False  # another, which was open before
        self._milliseconds = 0  # that the open transaction gives a statement; 0 if none is open

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(has_failed=kind is not None and self._milliseconds > 0)

    def run(self, search: Callable[[], Result], *, seconds: float) -> Result:
        """Return what a search finds, none of whose statements takes longer than that; else raise SearchFailed."""
        if seconds <= 0:
            raise SearchFailed("there is no time left")
        try:
            self._begin(max(1, round(seconds * 1000)))
            return search()
        except DatabaseError as error:
            self._end(has_failed=True)
            if not connection.is_usable():
                raise
            raise SearchFailed(str(error).strip()) from error

    def step_out(self, work: Callable[[], Result]) -> Result:
        """Do what takes its time elsewhere with no transaction open, then begin another as the one before."""
        milliseconds = self._milliseconds
        self._end()
        try:
            return work()
        finally:
            if milliseconds:
                self._begin(milliseconds)

    def end_with(self, write: Callable[[], object]) -> bool:
        """Write something as the last of the transaction, within its time; raise what the database says.

        Return whether it was written: not so where there is no transaction, or one that will be taken back. The commit
        returns before it is on disk.
        """
        if not self._milliseconds or self._is_inside:
            self._end()
            return False
        try:
            write()
        except DatabaseError:
            self._end(has_failed=True)
            raise
        self._end()
        return True

    def _begin(self, milliseconds: int) -> None:
        if self._milliseconds == milliseconds:
            return
        if not self._milliseconds:
            self._is_inside = connection.in_atomic_block
            self._open.enter_context(transaction.atomic())
            if self._is_inside:
                self._open.callback(transaction.set_rollback, True)
        asked = {"milliseconds": milliseconds, "effort": self._effort}
        row = run_prepared(statement=_SEARCH_SETTINGS, parameters=asked, keeps_plan=True).fetchone()
        if row is None or row[:2] != (str(self._effort), "relaxed_order"):
            raise DatabaseError("The database does not take the settings of a search.")
        self._milliseconds = milliseconds

    def _end(self, *, has_failed: bool = False) -> None:
        if has_failed and connection.in_atomic_block:
            transaction.set_rollback(True)
        self._milliseconds = 0
        self._open.close()


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
    if raw not in _KNOWN_CONNECTIONS:
        register_halfvec_info(raw, _halfvec_type(own.alias, str(own.settings_dict["NAME"])))
        _KNOWN_CONNECTIONS.add(raw)
    return psycopg.RawCursor(raw) if is_numbered else psycopg.Cursor(raw)


@contextmanager
def vector_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open such a cursor for as long as it is needed; what the database refuses is an error of Django's."""
    with connection.wrap_database_errors, raw_cursor() as cursor:
        yield cursor


_KNOWN_CONNECTIONS: WeakSet[psycopg.Connection[Any]] = WeakSet()  # connections that know vectors


@cache
def _halfvec_type(alias: str, database: str) -> TypeInfo:
    """Look up the type's number once a process and database."""
    info: TypeInfo | None = TypeInfo.fetch(connection.connection, "halfvec")
    if info is None:
        raise VectorFormatError(f"The database {database} lacks the pgvector extension (type halfvec).")
    return info
