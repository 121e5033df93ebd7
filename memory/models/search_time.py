"""Searches within a time: each statement is cancelled by the database when its time is over."""

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self, TypeVar

from django.db import DatabaseError, connection, transaction

from memory.models.numbered import run_numbered

Result = TypeVar("Result")

# An invalid value of pgvector's settings only warns, and a scan then stops early: what is set is read back. The
# vector has its library loaded first. Half the time of a search in a small scope goes into planning it. So statements
# whose ways are all chosen beforehand keep one plan, made for anything (it would take a small scope for one of
# average size, and read all of a table, or sort what an index has in order: both are switched off). Tables are joined
# as they are written down, fewer ways are left to choose from, nothing is compiled (jit) and no worker started: that
# takes longer than these searches. A commit has no time of its own: what it waits for are locks. The last statement
# may wait until an answer was sent: a client that does not read it holds nothing up for longer than that.
_SETTINGS = """
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
        row = run_numbered(statement=_SETTINGS, parameters=asked, keeps_plan=True).fetchone()
        if row is None or row[:2] != (str(self._effort), "relaxed_order"):
            raise DatabaseError("The database does not take the settings of a search.")
        self._milliseconds = milliseconds

    def _end(self, *, has_failed: bool = False) -> None:
        if has_failed and connection.in_atomic_block:
            transaction.set_rollback(True)
        self._milliseconds = 0
        self._open.close()
