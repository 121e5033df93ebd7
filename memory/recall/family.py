"""The line of a belief: all that it came from, and all that came of it (B2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from memory.access import Viewer, visible_beliefs
from memory.models import Belief, Lineage

# UNION, not UNION ALL: a row that was reached before is not followed again, so that the walk ends whatever is stored.
_LINE = """
WITH RECURSIVE
    earlier (belief) AS (
        SELECT %(belief)s::varchar COLLATE "C" UNION
        SELECT parent_id FROM memory_lineage JOIN earlier ON child_id = belief WHERE workspace_id = %(ws)s
    ),
    later (belief) AS (
        SELECT %(belief)s::varchar COLLATE "C" UNION
        SELECT child_id FROM memory_lineage JOIN later ON parent_id = belief WHERE workspace_id = %(ws)s
    )
SELECT belief FROM earlier UNION SELECT belief FROM later
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Beliefs, oldest first, and the changes that lead from one to another, in their order."""

    beliefs: Sequence[Belief]
    changes: Sequence[Lineage]


def read_family(*, belief: Belief, viewer: Viewer) -> Family:
    """Gather a belief's ancestors and descendants, as far as the viewer may see them."""
    with connection.cursor() as cursor:
        cursor.execute(_LINE, {"belief": belief.pk, "ws": belief.workspace_id})
        line = [key for (key,) in cursor.fetchall()]
    beliefs = visible_beliefs(viewer=viewer).filter(pk__in=line).select_related("project")
    seen = list(beliefs.order_by("created_at", "pk"))
    ids = {one.pk for one in seen}
    return Family(
        beliefs=seen, changes=list(Lineage.objects.filter(parent__in=ids, child__in=ids).order_by("created_at", "pk"))
    )
