"""What was shown to a session is remembered, so that its echo is known for one (Echo)."""

from collections.abc import Iterable
from datetime import datetime

from memory.models import Surfaced, Workspace
from memory.recall.noting import note_answer
from memory.recall.reading import RecalledMemory


def note_surfaced(*, workspace: Workspace, session: str, memories: Iterable[RecalledMemory], now: datetime) -> None:
    """Remember that these memories were shown to a session, in one statement; the first time counts.

    An answer is not lost because it could not be noted: what was erased meanwhile is passed over.
    """
    ids = [memory.id for memory in memories]
    parameters = {"workspace": workspace.pk, "session": session, "ids": ids, "now": now}
    if ids:
        note_answer(statement=_SURFACE, parameters=parameters, failed="surfacing")


def surfaced_beliefs(*, workspace: Workspace, session: str) -> set[str]:
    """Name the beliefs that were shown to a session."""
    rows = Surfaced.objects.for_workspace(workspace).filter(session=session, belief__isnull=False)
    return set(rows.values_list("belief_id", flat=True))


# Rows are written in one order, so that two recalls never wait for each other in a circle.
_SURFACE = """
INSERT INTO memory_surfaced (workspace_id, session, belief_id, episode_id, surfaced_at)
SELECT %(workspace)s::bigint, %(session)s::text, shown.belief_id, shown.episode_id, %(now)s::timestamptz FROM (
    SELECT id AS belief_id, NULL::varchar AS episode_id FROM memory_belief WHERE id = ANY(%(ids)s::text[])
    UNION ALL SELECT NULL::varchar, id FROM memory_episode WHERE id = ANY(%(ids)s::text[])
) shown ORDER BY shown.belief_id, shown.episode_id
ON CONFLICT DO NOTHING
"""
