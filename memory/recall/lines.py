"""Memories as lines that are put into a conversation, made so that their echo is known by its marks (B16, Echo)."""

from datetime import UTC, datetime

from memory.recall.ranking import MemoryType
from memory.recall.reading import RecalledMemory

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ROUND = str.maketrans("[]", "()")  # a bracket inside a mark could end it early
_CUT = "…"
_FORMERLY = "formerly: "


def format_line(*, memory: RecalledMemory, now: datetime) -> str:
    """Write a memory as `[B] (Feb 24, confidence: 0.85) … — ID: bl_…`, an episode as `[E] (Feb 24) … — ID: ep_…`.

    One that does not hold any more reads `[E] (Feb 24, superseded by bl_…) …`; a belief may say since and until when it
    holds: `[B] (Feb 24, since Feb 1, until Apr 1, confidence: 0.85) …`.
    """
    day, text = _day(memory.dated, now), _one_line(memory.text)
    if memory.superseded_by:
        day += f", superseded by {memory.superseded_by}"
    if memory.confidence is None:
        return f"[E] ({day}) {text} — ID: {memory.id}"
    holds = ", ".join([day, *_validity(memory, now)])
    return f"[B] ({holds}, confidence: {memory.confidence:.2f}) {text} — ID: {memory.id}"


def _validity(memory: RecalledMemory, now: datetime) -> list[str]:
    """Word since and until when a memory holds, as far as that is known."""
    named = (("since", memory.valid_from), ("until", memory.valid_until))
    return [f"{word} {_day(moment, now)}" for word, moment in named if moment]


def format_bite(*, memory: RecalledMemory, characters: int, now: datetime) -> str:
    """Write a memory as `[Memory flash: …]`, a belief as `[Belief (0.85): …]`, at most so long between the marks.

    One that does not hold any more reads `[Memory flash: formerly: …]`, and a belief may say since and until when it
    holds, `[Belief (0.85): … (until Dec 1)]`: neither is counted.
    """
    text = _around(_one_line(memory.text), _one_line(memory.passage), characters).translate(_ROUND)
    if memory.type == MemoryType.EPISODE:
        return f"[Memory flash: {_FORMERLY if memory.superseded_by else ''}{text}]"
    holds = f" ({', '.join(validity)})" if (validity := _validity(memory, now)) else ""
    return f"[Belief ({memory.confidence:.2f}): {text}{holds}]"


def _around(text: str, passage: str, characters: int) -> str:
    """Cut a text to what stands around a passage, which is in sight from its beginning."""
    place = text.find(passage)
    if place < 0 or len(text) <= characters or place + len(passage) <= characters:
        return shorten(text=text, characters=characters)
    room = max(characters - len(passage) - 2, 0)
    start = max(min(place - room // 2, len(text) - characters), 0)
    head = text[start:place]
    head = head.partition(" ")[2] if start else head
    return shorten(text=_CUT + head + text[place:], characters=characters)


def shorten(*, text: str, characters: int) -> str:
    """Cut a text between two words so that it is at most so long, its ellipsis included."""
    if len(text) <= characters:
        return text
    head, space, _ = text[:characters].rpartition(" ")
    return (head if space else text[: characters - 1]).rstrip() + _CUT


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _day(moment: datetime, now: datetime) -> str:
    """Name a day, with its year where that is another one."""
    day = moment.astimezone(UTC)
    name = f"{_MONTHS[day.month - 1]} {day.day}"
    return name if day.year == now.astimezone(UTC).year else f"{name}, {day.year}"
