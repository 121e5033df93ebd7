"""What was shown to a session is remembered, so that its echo is known for one (Echo)."""

from collections.abc import Iterable
from datetime import datetime

from memory.models import Surfaced, Workspace
from memory.recall.ranking import MemoryType
from memory.recall.reading import RecalledMemory


def note_surfaced(*, workspace: Workspace, session: str, memories: Iterable[RecalledMemory], now: datetime) -> None:
    """Remember that these memories were shown to a session, in one statement; the first time counts."""
    Surfaced.objects.bulk_create(
        [
            Surfaced(workspace=workspace, session=session, surfaced_at=now, **{_column(memory): memory.id})
            for memory in sorted(memories, key=lambda memory: memory.id)
        ],
        ignore_conflicts=True,
    )


def surfaced_beliefs(*, workspace: Workspace, session: str) -> set[str]:
    """Name the beliefs that were shown to a session."""
    rows = Surfaced.objects.for_workspace(workspace).filter(session=session, belief__isnull=False)
    return set(rows.values_list("belief_id", flat=True))


def _column(memory: RecalledMemory) -> str:
    return "belief_id" if memory.type == MemoryType.BELIEF else "episode_id"
