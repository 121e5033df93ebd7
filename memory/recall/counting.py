"""How common words are is counted beside recall, not by it: the text arm reads what was counted last."""

from collections.abc import Iterator

import structlog
from django.db import DatabaseError, connection, transaction

from memory.domain.breaking import OF_ONE_WORKSPACE
from memory.domain.policy import RecallPolicy

log = structlog.get_logger(__name__)

_COUNT_LOCKS = 3  # the first of the two numbers that name an advisory lock


def count_due_words(*, policy: RecallPolicy) -> int:
    """Count the words of every workspace that grew enough since it was counted last; return of how many."""
    return sum(_try_to_count(workspace_id) for workspace_id in list(_due(policy)))


def _try_to_count(workspace_id: int) -> bool:
    """Count, or log why not: those that come after it are counted all the same."""
    try:
        return count_words(workspace_id=workspace_id)
    except (DatabaseError, *OF_ONE_WORKSPACE) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "words_not_counted", workspace=workspace_id, error=str(error), exc_info=not isinstance(error, DatabaseError)
        )
        return False


def _due(policy: RecallPolicy) -> Iterator[int]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"least": policy.recount_least, "share": policy.recount_share})
        yield from (workspace_id for (workspace_id,) in cursor.fetchall())


@transaction.atomic
def count_words(*, workspace_id: int, waits: bool = False) -> bool:
    """Count in how many of a workspace's active episodes each word stands; false if somebody else is counting.

    With `waits` their counting is waited for instead. Readers see the old numbers until the new ones are complete.
    """
    key = [_COUNT_LOCKS, workspace_id % 2**31]
    with connection.cursor() as cursor:
        if waits:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", key)
        else:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", key)
            if not cursor.fetchone()[0]:
                return False
        parameters = {"workspace": workspace_id}
        cursor.execute("DELETE FROM memory_termfrequency WHERE workspace_id = %(workspace)s", parameters)
        cursor.execute(_COUNT_TERMS, parameters)
        terms = cursor.rowcount
        cursor.execute(_COUNT_TEXTS, parameters)
    log.info("words_counted", workspace=workspace_id, terms=terms)
    return True


# Looks at no more than the newest rows of each workspace: enough to tell whether enough are new.
_DUE = """
SELECT w.id FROM memory_workspace w LEFT JOIN memory_textstatistics s ON s.workspace_id = w.id
CROSS JOIN LATERAL (
    SELECT count(*) AS fresh FROM (
        SELECT FROM memory_episode e WHERE e.workspace_id = w.id AND e.number > coalesce(s.last_number, 0)
        LIMIT greatest(%(least)s, ceil(%(share)s * coalesce(s.documents, 0)))::bigint
    ) e
) grown
WHERE grown.fresh >= CASE WHEN s.workspace_id IS NULL THEN 1 ELSE greatest(%(least)s, ceil(%(share)s * s.documents)) END
ORDER BY w.id
"""
_COUNT_TERMS = """
INSERT INTO memory_termfrequency (workspace_id, lexeme, documents)
SELECT %(workspace)s, u.lexeme, count(*) FROM memory_episode e, unnest(e.search) u
WHERE e.workspace_id = %(workspace)s AND e.status = 'active'
GROUP BY u.lexeme
"""
_COUNT_TEXTS = """
INSERT INTO memory_textstatistics (workspace_id, documents, mean_length, last_number, counted_at)
SELECT %(workspace)s, count(*) FILTER (WHERE status = 'active'),
    coalesce(avg(length(search)) FILTER (WHERE status = 'active'), 1), coalesce(max(number), 0), now()
FROM memory_episode WHERE workspace_id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE SET documents = EXCLUDED.documents, mean_length = EXCLUDED.mean_length,
    last_number = EXCLUDED.last_number, counted_at = EXCLUDED.counted_at
"""
