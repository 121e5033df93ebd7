"""Erased rows leave the database's files: until then they lie there as dead ones (B19)."""

from collections.abc import Iterator

from django.apps import apps
from django.db import connection
from django.db.utils import ProgrammingError

# The admin's log, and what the planner keeps of columns' values.
_BESIDE = ("django_admin_log", "pg_catalog.pg_statistic")


def tables_to_scrub() -> list[str]:
    """List the tables in which words may have stood."""
    ours = (model._meta.db_table for model in apps.get_app_config("memory").get_models())
    return [*sorted(ours), *_BESIDE]


def scrub_tables() -> Iterator[str]:
    """Write each table and its indexes anew and yield its name; nobody reads or writes it meanwhile.

    Outside of any transaction. In the end the files that the old ones were are gone from their folders.
    """
    with connection.cursor() as cursor:
        for table in tables_to_scrub():
            cursor.execute(f"VACUUM (FULL, ANALYZE) {table}")
            yield table
        try:
            cursor.execute("CHECKPOINT")
        except ProgrammingError:  # not for every role; the server makes one by itself within minutes
            return
