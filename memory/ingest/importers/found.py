"""What a reader finds in a file of conversations: turns, what is left out of them, and what cannot be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from memory.ingest.arrival import Rejected


class Reason(StrEnum):
    """Why something in a file is no turn."""

    NO_TEXT = "without text"
    OTHER_BRANCH = "on a branch that was left"
    TOOL = "of tools"
    THOUGHT = "thoughts"
    ATTACHMENT = "attachments"
    BROKEN_OFF = "still being written"
    SYSTEM = "of the system"
    HIDDEN = "hidden from the person"
    SUBAGENT = "of a helper of the agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTurn:
    """A message as a turn's line has it, not checked yet, of whatever length, and where it stands."""

    place: str
    line: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is no turn of a conversation."""

    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """What stands at a place and cannot be read."""

    place: str
    rejected: Rejected = field(default_factory=lambda: Rejected(status=422, detail="It cannot be read."))


Found = FoundTurn | LeftOut | Unreadable


def found_turn(
    *, place: str, session: str, role: str, text: str, turn_id: str, occurred_at: str | None
) -> FoundTurn | LeftOut:
    """Make a turn of a message, however long its text is."""
    if not text.strip():
        return LeftOut(reason=Reason.NO_TEXT)
    line = {"session": session, "role": role, "content": text, "turn_id": turn_id, "occurred_at": occurred_at}
    return FoundTurn(place=place, line=line)
