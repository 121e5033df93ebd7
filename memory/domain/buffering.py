"""When the buffered turns of a conversation are read (L2)."""

from datetime import timedelta
from enum import StrEnum

from memory.domain.policy import TurnsPolicy


class TurnState(StrEnum):
    """How far a turn has come; the last three are ends."""

    BUFFERED = "buffered"
    LEASED = "leased"
    EXTRACTED = "extracted"
    ECHO = "echo"
    FAILED = "failed"


class DueReason(StrEnum):
    """Why buffered turns are read now."""

    SIGNAL = "a turn with a high signal"
    COUNT = "enough turns"
    AGE = "time since the last extraction"
    SURPRISE = "a surprising turn"
    PERSON = "a person asked for it"


def why_due(*, buffered: int, has_high: bool, since_extraction: timedelta, policy: TurnsPolicy) -> DueReason | None:
    """Name what makes buffered turns due, None where nothing does; surprise is looked for by whoever has vectors."""
    if not buffered:
        return None
    if has_high:
        return DueReason.SIGNAL
    if buffered >= policy.buffer:
        return DueReason.COUNT
    return DueReason.AGE if since_extraction >= timedelta(minutes=policy.age_minutes) else None


def is_surprising(*, surprise: float | None, policy: TurnsPolicy) -> bool:
    """Tell whether a turn is so far from all that is remembered that its buffer is read early."""
    return surprise is not None and surprise > policy.surprise
