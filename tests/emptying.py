"""What tests commit is taken away again after each of them."""

from functools import cache

from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected

# Migrations and what follows them fill these; no test changes them.
_KEPT = {"django_content_type", "auth_permission"}
_LARGE_BYTES = 4_000_000
_TRIES = 5


def empty_tables() -> None:
    """Delete the rows of all models: Django's flush takes thirty times as long, most of it to make permissions again.

    As a TRUNCATE does, this waits for whoever still reads or writes. No trigger fires: those of histories forbid it. A
    worker that outlives a test locks one table after another, as this does: where each waits for the other, and it is
    this that the database ends, the worker goes first.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            _empty_at_once()
        except OperationalError as error:
            if not tries_left or not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return


def _empty_at_once() -> None:
    tables = _tables()
    names = list(map(connection.ops.quote_name, tables))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(names)}")
        cursor.execute("SELECT sum(pg_table_size(name::regclass)) FROM unnest(%s::text[]) AS name", [names])
        if cursor.fetchone()[0] > _LARGE_BYTES:
            cursor.execute(f"TRUNCATE {', '.join(names)}")
        else:
            cursor.execute("SET LOCAL session_replication_role = replica")
            cursor.execute("; ".join(f"DELETE FROM {name}" for name in names))  # noqa: S608  # quoted names


@cache
def _tables() -> list[str]:
    return sorted({*connection.introspection.django_table_names(only_existing=True, include_views=False)} - _KEPT)
