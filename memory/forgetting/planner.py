"""What the database's planner keeps of columns: their commonest words and values, which must not outlive a memory."""

from collections.abc import Sequence

from django.db import connection, transaction

_FORGET = """
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE schemaname = current_schema() AND tablename = ANY(%s)
"""


@transaction.atomic
def forget_columns(*, tables: Sequence[str]) -> None:
    """Let the planner forget these tables' columns: by itself it keeps for ever what it knew of a table now empty.

    Nobody else can have it look at them until the transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE UPDATE EXCLUSIVE MODE")
        cursor.execute("SELECT to_regproc('pg_clear_attribute_stats') IS NOT NULL")  # from PostgreSQL 18 on
        if cursor.fetchone()[0]:
            cursor.execute(_FORGET, [list(tables)])


def look_anew(*, tables: Sequence[str]) -> None:
    """Let the planner know these tables as they are now, and nothing of what they were."""
    forget_columns(tables=tables)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(tables)}")
