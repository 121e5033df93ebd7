"""Erased rows leave the database's files: until then they lie there as dead ones (B19)."""

import time
from collections.abc import Iterator

from django.apps import apps
from django.db import connection
from django.db.utils import ProgrammingError

from memory.forgetting.planner import forget_columns

_ADMIN_LOG = "django_admin_log"
_POLL_SECONDS = 0.25  # between two looks whether the last transaction that sees erased rows has ended


class StillSeen(RuntimeError):
    """Some transaction began before the erasing ended: what it still sees would only be copied into the new files."""


def tables_to_scrub() -> list[str]:
    """List the tables in which words may have stood, and at last where the planner keeps columns' values."""
    return [*_own_tables(), "pg_catalog.pg_statistic"]


def _own_tables() -> list[str]:
    ours = (model._meta.db_table for model in apps.get_app_config("memory").get_models())
    return [*sorted(ours), _ADMIN_LOG]


def scrub_tables(*, wait_seconds: float) -> Iterator[str]:
    """Write each table and its indexes anew and yield its name; nobody reads or writes it meanwhile.

    Outside of any transaction. In the end the files that the old ones were are gone from their folders. Raise StillSeen
    where an older transaction does not end in time: nothing is written then.
    """
    forget_columns(tables=_own_tables())
    _await_older_transactions(wait_seconds)
    with connection.cursor() as cursor:
        for table in tables_to_scrub():
            cursor.execute(f"VACUUM (FULL, ANALYZE) {table}")
            yield table
        try:
            cursor.execute("CHECKPOINT")
        except ProgrammingError:  # not for every role; the server makes one by itself within minutes
            return


def _await_older_transactions(seconds: float) -> None:
    """Wait until whatever could see a row that is dead by now is over."""
    gives_up_at = time.monotonic() + seconds
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::xid::text")
        (mark,) = cursor.fetchone()
        while True:
            cursor.execute(_OLDER, {"mark": mark})
            older = [who for (who,) in cursor.fetchall()]
            if not older:
                return
            if time.monotonic() > gives_up_at:
                raise StillSeen(f"What was erased can still be seen by {', '.join(older)}.")
            time.sleep(_POLL_SECONDS)


# What holds back dead rows of this database, as VACUUM counts it: sessions, prepared transactions, and what replicas
# and slots ask to keep. A plain VACUUM shows as if it did, and does not.
_OLDER = """
SELECT format('process %%s (%%s%%s since %%s)', pid, coalesce(nullif(application_name, '') || ', ', ''),
    coalesce(state, backend_type), to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS'))
FROM pg_stat_activity WHERE (datname = current_database() OR datname IS NULL)
    AND greatest(age(backend_xmin), age(backend_xid)) > age(%(mark)s::xid)
    AND pid <> pg_backend_pid() AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL SELECT format('prepared transaction %%s', gid) FROM pg_prepared_xacts
WHERE database = current_database() AND age(transaction) > age(%(mark)s::xid)
UNION ALL SELECT format('replication slot %%s', slot_name) FROM pg_replication_slots
WHERE greatest(age(xmin), age(catalog_xmin)) > age(%(mark)s::xid)
"""
