"""Cycles that do nothing but publish, and the file that a person had before."""

from datetime import timedelta

from memory.models import Cycle, Workspace
from memory.publishing.publish import publish_after_cycle
from tests import factories

NOW = factories.NOW
MINE = b"# My notes\n\n- milk\n"


def cycle(workspace: Workspace, *, days: float = 0.0) -> dict[str, int]:
    """Let a cycle end that publishes so many days later; return its counts."""
    now = NOW + timedelta(days=days)
    ended = Cycle.objects.create(
        workspace=workspace, now=now, opened_at=now, trigger="person", state="finished", finished_at=now, counts={}
    )
    publish_after_cycle(cycle_id=ended.pk)
    ended.refresh_from_db()
    counts: dict[str, int] = ended.counts
    return counts
