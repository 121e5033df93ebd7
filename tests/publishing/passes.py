"""Beliefs that are published, cycles that do nothing else, and the file that a person had before."""

from datetime import timedelta
from typing import Any

from memory.models import Belief, Cycle, Workspace
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


def trusted(workspace: Workspace, statement: str, *, supports: int = 4, **given: Any) -> Belief:
    """Store a belief that episodes of as many origins support, the first of them a person's."""
    belief = factories.belief(
        workspace=workspace, statement=statement, alpha=1.0 + supports, evidence_count=supports, **given
    )
    for number in range(supports):
        episode = factories.episode(
            workspace=workspace, source="ai" if number else "human", project=given.get("project")
        )
        factories.evidence(belief=belief, episode=episode)
    return belief
