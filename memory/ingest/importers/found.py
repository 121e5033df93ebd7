"""What a reader finds in a file of conversations: turns, what is left out of them, and what cannot be read."""

from collections.abc import Iterator, Mapping
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
    """A turn as a turn's line has it, not checked yet, and where it stands."""

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
    *, place: str, session: str, role: str, text: str, turn_id: str, occurred_at: str | None, longest: int
) -> Iterator[Found]:
    """Make a turn of a message; of a text that is longer than `longest` bytes of UTF-8, a turn for each part."""
    if not text.strip():
        yield LeftOut(reason=Reason.NO_TEXT)
        return
    for number, part in enumerate(split_text(text, longest=longest), start=1):
        line = {
            "session": session,
            "role": role,
            "content": part,
            "turn_id": turn_id if number == 1 else f"{turn_id}:{number}",
            "occurred_at": occurred_at,
        }
        yield FoundTurn(place=place, line=line)


def split_text(text: str, *, longest: int) -> Iterator[str]:
    """Cut a text into parts of at most so many bytes of UTF-8: between paragraphs, lines or words, if there are any."""
    rest = text
    while len(raw := rest.encode("utf-8", "replace")) > longest:
        head = raw[:longest].decode("utf-8", "ignore")
        ends = (head.rfind(mark) for mark in ("\n\n", "\n", " "))
        cut = next((end for end in ends if end > len(head) // 2), len(head))
        if part := rest[:cut].rstrip():
            yield part
        rest = rest[cut:].lstrip()
    if rest.strip():
        yield rest
