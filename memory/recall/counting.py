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
    """Count how common each word is in a workspace's active memories; false if somebody else is counting.

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
# A word is as common as it is among episodes, or among beliefs where it is commoner there: the name of whose memory it
# is stands in nearly every belief, and tells none from another. Of few beliefs a share says little: one word is taken
# off, and four beliefs are added.
_COUNT_TERMS = """
WITH texts AS (
    SELECT search, true AS is_episode FROM memory_episode
    WHERE workspace_id = %(workspace)s AND status = 'active'
    UNION ALL SELECT search, false FROM memory_belief WHERE workspace_id = %(workspace)s AND status = 'active'
), counted AS (
    SELECT count(*) FILTER (WHERE is_episode) AS episodes, count(*) FILTER (WHERE NOT is_episode) AS beliefs FROM texts
), terms AS (
    SELECT u.lexeme, count(*) FILTER (WHERE is_episode) AS in_episodes,
        count(*) FILTER (WHERE NOT is_episode) AS in_beliefs
    FROM texts t, unnest(t.search) u GROUP BY u.lexeme
)
INSERT INTO memory_termfrequency (workspace_id, lexeme, documents)
SELECT %(workspace)s, lexeme,
    greatest(in_episodes, round((in_beliefs - 1) * c.episodes / (c.beliefs + 4.0))) AS documents
FROM terms CROSS JOIN counted c WHERE in_episodes > 0 OR in_beliefs > 1
"""
_COUNT_TEXTS = """
INSERT INTO memory_textstatistics (workspace_id, documents, mean_length, last_number, counted_at)
SELECT %(workspace)s, count(*) FILTER (WHERE status = 'active'),
    coalesce(avg(length(search)) FILTER (WHERE status = 'active'), 1), coalesce(max(number), 0), now()
FROM memory_episode WHERE workspace_id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE SET documents = EXCLUDED.documents, mean_length = EXCLUDED.mean_length,
    last_number = EXCLUDED.last_number, counted_at = EXCLUDED.counted_at
"""
