"""What was said in a conversation, turn by turn, and what a reader finds in it (L3)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.domain.category import Category


class Role(StrEnum):
    """Who a turn comes from: what a model said is not what the user said."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn:
    """One turn, redacted; its number is its place in the conversation, by which facts quote it."""

    role: Role
    speaker: str
    text: str
    occurred_at: datetime
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Whose conversation turns belong to; the project is a slug."""

    session: str
    user: str = ""
    agent: str = ""
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """L3: one thing that turns tell, standing alone, with the numbers of the turns that tell it.

    `confidence` and `importance` lie in [0, 1], `valence` in [-1, 1]; `causes` are the facts because of which it is so.
    """

    text: str
    category: Category
    confidence: float
    turns: tuple[int, ...]
    entities: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    importance: float = 0.5
    valence: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsFound:
    """What was read out of some turns: the facts, the ledger's call that each is from, and the turns left unread."""

    facts: tuple[Fact, ...]
    call_ids: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()  # numbers of turns that got no answer: they stay buffered
    failure: str = ""
    broken: tuple[tuple[int, str], ...] = ()  # numbers of turns over which our own code broke, and how (E6)
