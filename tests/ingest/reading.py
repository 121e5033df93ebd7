"""Conversations that are stored and read in a test, by a reader who answers as told."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection

from memory.consolidation.cycle import database_now
from memory.ingest.buffer import TurnAnswer, buffer_raw_turns
from memory.ingest.extract import extract_conversation
from memory.ingest.scheduling import wake_conversations
from memory.ingest.schemas import IngestContext
from memory.llm import offline
from memory.llm.replies import AboutBelief, BeliefWord, NewStatement, Reading, Reply, Summary
from memory.llm.requests import ReadingRequest, Request, SummaryRequest
from memory.models import Conversation, Episode, Turn, Workspace
from tests.factories import NOW

MINUTE = timedelta(minutes=1)
HIGH = "Never moor at the east pier."
_really_answer = offline._answer


def say(*contents: str, workspace: Workspace, after: timedelta = timedelta(), **given: Any) -> list[TurnAnswer]:
    """Take turns of one session in one batch."""
    lines = [{"session": "s", "role": "user", "content": content, **given} for content in contents]
    return buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=workspace, now=NOW + after))


def read(*, session: str = "s", after: timedelta = timedelta()) -> bool:
    """Store and read a conversation."""
    return extract_conversation(conversation_id=conversation(session).pk, now=NOW + after)


def wake(*, after: timedelta = timedelta()) -> int:
    """Sweep as if nobody had been told of anything."""
    Conversation.objects.update(sent_at=None)
    return wake_conversations(now=NOW + after)


@dataclass(slots=True, kw_only=True)
class Reader:
    """Answers in the place of the offline model: a reading says nothing unless told to; keeps what it was asked."""

    asked: list[list[str]] = field(default_factory=list)
    requests: list[ReadingRequest] = field(default_factory=list)
    summed_up: list[SummaryRequest] = field(default_factory=list)
    does: Callable[[ReadingRequest], Reading] | None = None
    summary: str = ""

    def __call__(self, request: Request) -> Reply:
        if isinstance(request, SummaryRequest):
            self.summed_up.append(request)
            return Summary(summary=self.summary)
        if not isinstance(request, ReadingRequest):
            return _really_answer(request)
        self.asked.append([message.text for message in request.read])
        self.requests.append(request)
        try:
            return self.does(request) if self.does else Reading()
        finally:
            if threading.current_thread() is not threading.main_thread():
                connection.close()


def state_each(request: ReadingRequest) -> Reading:
    """Read a lasting statement out of every message: its own words."""
    return Reading(new=[told(number, message.text) for number, message in enumerate(request.read, start=1)])


def told(m: int, statement: str, **given: Any) -> NewStatement:
    """Make a statement of a message."""
    return NewStatement(m=m, statement=statement, **given)


def says(m: int, b: str, verdict: BeliefWord = BeliefWord.SUPPORTS, **given: Any) -> AboutBelief:
    """Make what a message says of a belief, which is shown by its number."""
    return AboutBelief(m=m, b=b, verdict=verdict, **given)


def states() -> list[str]:
    """Return the states of all turns, in their order."""
    return list(Turn.objects.order_by("number").values_list("state", flat=True))


def kept() -> list[tuple[str, str, bool]]:
    """Return text, state and whether it was read of all episodes but summaries, in the order of storing."""
    rows = Episode.objects.filter(is_derived=False).order_by("number")
    return [(row.text, row.state, row.read_at is not None) for row in rows]


def conversation(session: str = "s") -> Conversation:
    """Return a conversation."""
    found: Conversation = Conversation.objects.get(session=session)
    return found


def let_leases_run_out() -> None:
    """Let whoever holds a conversation have lost it."""
    Conversation.objects.exclude(leased_until=None).update(leased_until=database_now(plus=-1))


def end_waits() -> None:
    """Let the time pass that a server asked for."""
    Conversation.objects.update(not_before=None)
