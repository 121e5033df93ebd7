"""Which memory stands for one that was merged, however often it was merged on (D3)."""

from collections.abc import Collection

from django.db import connection

_MOST_STEPS = 100  # merging leads to the last survivor at once; a longer way is no way, but a circle

_SURVIVORS = """
WITH RECURSIVE way AS (
    SELECT id AS began, id, merged_into_id, status, 0 AS steps FROM memory_episode WHERE id = ANY(%(ids)s)
    UNION ALL
    SELECT way.began, e.id, e.merged_into_id, e.status, way.steps + 1
    FROM way JOIN memory_episode e ON e.id = way.merged_into_id WHERE way.steps < %(most)s
)
SELECT DISTINCT ON (began) began, id, status FROM way ORDER BY began, steps DESC
"""


def survivors_of(*, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return by episode the one that it became one with in the end, and its status; itself, where none is known."""
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SURVIVORS, {"ids": list(ids), "most": _MOST_STEPS})
        return {began: (key, status) for began, key, status in cursor.fetchall()}
