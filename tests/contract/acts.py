"""What workers do between the requests of a scene, at once and in this process."""

from collections.abc import Callable
from datetime import datetime

from memory.consolidation.cycle import open_cycle
from memory.ingest.turns.extracting import extract_conversation
from memory.linking.linking import link_memories
from memory.models import Conversation, Cycle, Remembrance, Trigger, Workspace
from memory.remembering.working import work_remembrance
from tests.consolidation.inline import run_to_end


def consolidate(workspace: Workspace, now: datetime) -> None:
    """Take the open cycle to its end, or one that is opened now."""
    under_way = Cycle.objects.for_workspace(workspace).open().first()
    cycle = under_way or open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.PERSON)[0]
    run_to_end(cycle.pk)


def read_turns(workspace: Workspace, now: datetime) -> None:
    """Read what waits of all conversations."""
    for conversation in Conversation.objects.for_workspace(workspace).order_by("pk"):
        extract_conversation(conversation_id=conversation.pk, now=now)


def remember(workspace: Workspace, now: datetime) -> None:
    """Let the texts that wait to be remembered meet what is believed."""
    for waiting in Remembrance.objects.queued().filter(episode__workspace=workspace).order_by("pk"):
        work_remembrance(remembrance_id=waiting.pk, now=now)


def link(workspace: Workspace, now: datetime) -> None:
    """Link the memories that wait for it."""
    link_memories(workspace_id=workspace.pk)


ACTS: dict[str, Callable[[Workspace, datetime], None]] = {
    "consolidate": consolidate,
    "link": link,
    "read turns": read_turns,
    "remember": remember,
}
