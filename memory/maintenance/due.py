"""Which workspaces are to be maintained: after so many extractions, and once a day if there is anything to do (L8)."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from memory.domain.policy import Policy


def note_extraction(*, workspace_id: int) -> None:
    """Count an extraction; whoever looks for workspaces that are due finds it in the row."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [workspace_id])


def find_due(*, now: datetime, policy: Policy) -> list[int]:
    """List the workspaces that are due."""
    parameters: dict[str, Any] = {
        "extractions": policy.maintenance.extractions,
        "now": now,
        "before": now - timedelta(hours=policy.maintenance.hours),
        "idle": now - timedelta(minutes=policy.box.idle_minutes),
    }
    with connection.cursor() as cursor:
        cursor.execute(_DUE, parameters)
        return [workspace_id for (workspace_id,) in cursor.fetchall()]


def count_waiting(*, workspace_id: int) -> int:
    """Return how many extractions there were since a workspace was maintained last."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extractions FROM memory_upkeep WHERE workspace_id = %s", [workspace_id])
        row = cursor.fetchone()
    return row[0] if row else 0


def note_maintained(*, workspace_id: int, waiting: int, now: datetime) -> None:
    """Note that a workspace was maintained; extractions that came meanwhile wait for the next time."""
    with connection.cursor() as cursor:
        cursor.execute(_MAINTAINED, {"workspace": workspace_id, "waiting": waiting, "now": now})


_COUNT = """
INSERT INTO memory_upkeep AS u (workspace_id, linked_number, next_number, extractions) VALUES (%s, 0, 0, 1)
ON CONFLICT (workspace_id) DO UPDATE SET extractions = u.extractions + 1
"""
_DUE = """
SELECT w.id FROM memory_workspace w LEFT JOIN memory_upkeep u ON u.workspace_id = w.id
WHERE u.extractions >= %(extractions)s OR (
    (u.maintained_at IS NULL OR u.maintained_at < %(before)s) AND (
        u.extractions > 0
        OR EXISTS (SELECT FROM memory_edge e WHERE e.workspace_id = w.id AND e.decays_at <= %(now)s)
        OR EXISTS (
            SELECT FROM memory_box b WHERE b.workspace_id = w.id AND b.sealed_at IS NULL AND b.last_at < %(idle)s)
    )
)
ORDER BY w.id
"""
_MAINTAINED = """
INSERT INTO memory_upkeep AS u (workspace_id, linked_number, next_number, extractions, maintained_at)
VALUES (%(workspace)s, 0, 0, 0, %(now)s)
ON CONFLICT (workspace_id) DO UPDATE
SET extractions = greatest(u.extractions - %(waiting)s, 0), maintained_at = %(now)s
"""
