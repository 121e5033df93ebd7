"""What an answer leaves behind is written in one statement, for which no answer fails and none waits long."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import psycopg
import structlog
from django.db import DatabaseError, connection, transaction

from memory.search.prepared import TimedSearch, raw_cursor, run_prepared

log = structlog.get_logger(__name__)


def note_answer(
    *, statement: str, parameters: Mapping[str, Any], failed: str, timed: TimedSearch | None = None
) -> None:
    """Run a statement that notes what was answered; what the database refuses is logged, by the name in `failed`.

    It ends the search that found the answer, if that is given. The commit returns before it is on disk: a crash may
    lose the last notes, and nothing else. In a caller's transaction the commit, and how long a lock is waited for, are
    the caller's.
    """
    note = partial(run_prepared, statement=statement, parameters=parameters, keeps_plan=True)
    try:
        if timed and timed.end_with(note):
            return
        if connection.in_atomic_block:
            with transaction.atomic():
                note()
        else:
            _note_at_once(note)
    except (DatabaseError, psycopg.DatabaseError) as error:
        log.warning("recall.answer_not_noted", what=failed, error=str(error))


def _note_at_once(note: Callable[[], object]) -> None:
    """Send a whole transaction in one go, in which not even a lock on a table is waited out."""
    raw_cursor().close()  # there is a connection, and it is alive
    raw = connection.connection
    with raw.pipeline(), raw.transaction():
        raw.execute(_UNHURRIED)
        note()


_UNHURRIED = "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '100ms', true)"
