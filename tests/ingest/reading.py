"""Conversations that are read in a test, by a reader who answers as told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from memory.consolidation.cycle import database_now
from memory.domain.taxonomy import Category, ConversationTurn, ExtractedFact, ExtractionResult
from memory.ingest.buffer import TurnAnswer, buffer_raw_turns
from memory.ingest.extract import extract_conversation
from memory.ingest.scheduling import wake_conversations
from memory.ingest.schemas import IngestContext
from memory.models import Conversation, Turn, Workspace
from tests.factories import NOW

MINUTE = timedelta(minutes=1)
HIGH = "Never moor at the east pier."


def say(*contents: str, workspace: Workspace, after: timedelta = timedelta(), **given: Any) -> list[TurnAnswer]:
    """Take turns of one session in one batch."""
    lines = [{"session": "s", "role": "user", "content": content, **given} for content in contents]
    return buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=workspace, now=NOW + after))


def read(*, after: timedelta = timedelta()) -> bool:
    """Read the only conversation."""
    return extract_conversation(conversation_id=Conversation.objects.get().pk, now=NOW + after)


def wake(*, after: timedelta = timedelta()) -> int:
    """Sweep as if nobody had been told of anything."""
    Conversation.objects.update(sent_at=None)
    return wake_conversations(now=NOW + after)


@dataclass(slots=True, kw_only=True)
class Reader:
    """Finds a fact in every turn, unless told to do something else; keeps what it was asked."""

    asked: list[list[str]] = field(default_factory=list)
    does: Callable[[Sequence[ConversationTurn]], ExtractionResult] | None = None

    def __call__(self, *, workspace_id: int, turns: Sequence[ConversationTurn], **_: Any) -> ExtractionResult:
        self.asked.append([turn.text for turn in turns])
        return self.does(turns) if self.does else facts_of(turns)


def facts_of(turns: Sequence[ConversationTurn], *, unread: Sequence[int] = ()) -> ExtractionResult:
    """Find what each turn says as a fact, but for those that stay unread."""
    told = [turn for turn in turns if turn.number not in unread]
    facts = [
        ExtractedFact(text=f"Noted: {turn.text}", category=Category.FACT, confidence=0.8, turns=(turn.number,))
        for turn in told
    ]
    return ExtractionResult(
        facts=tuple(facts), call_ids=(), unread=tuple(unread), failure="malformed: no JSON" if unread else ""
    )


def states() -> list[str]:
    """Return the states of all turns, in their order."""
    return list(Turn.objects.order_by("number").values_list("state", flat=True))


def conversation() -> Conversation:
    """Return the only conversation."""
    found: Conversation = Conversation.objects.get()
    return found


def let_leases_run_out() -> None:
    """Let whoever holds a conversation have lost it."""
    Conversation.objects.exclude(leased_until=None).update(leased_until=database_now(plus=-1))


def end_waits() -> None:
    """Let the time pass that a server asked for."""
    Conversation.objects.update(not_before=None)
