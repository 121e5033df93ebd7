"""What an answer leaves behind is written in one statement, for which no answer fails and none waits long."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction

log = structlog.get_logger(__name__)


def note_answer(*, statement: str, parameters: Mapping[str, Any], failed: str) -> None:
    """Run a statement that notes what was answered; what the database refuses is logged, by the name in `failed`.

    The commit returns before it is on disk: a crash may lose the last notes, and nothing else. In a caller's
    transaction the commit, and how long a lock is waited for, are the caller's.
    """
    is_inside = connection.in_atomic_block
    try:
        with transaction.atomic() if is_inside else nullcontext(), connection.cursor() as cursor:
            cursor.execute(statement if is_inside else _UNHURRIED + statement, parameters)
    except DatabaseError as error:
        log.warning("recall.answer_not_noted", what=failed, error=str(error))


# Sent with the statement, in the one transaction that both make, so that not even a lock on a table is waited out.
_UNHURRIED = "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '100ms', true);"
