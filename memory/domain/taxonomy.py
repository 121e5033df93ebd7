"""The kinds that memories fall into, and the turns and facts of conversations.

Four taxonomies: category (what an episode tells, L3), kind (event or note, L5), knowledge (fact, procedure or
narrative, by category, D2) and tier (how sure an extraction is, L3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.domain.policy_memories import ExtractionPolicy


class Category(StrEnum):
    """The categories that an extraction, or whoever stores an episode, may give."""

    FACT = "fact"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    ENTITY = "entity"
    DECISION = "decision"
    RELATIONSHIP = "relationship"
    PRINCIPLE = "principle"
    COMMITMENT = "commitment"
    MOMENT = "moment"
    SKILL = "skill"


class Kind(StrEnum):
    """L5: what a memory is to those who maintain it; notes may be superseded, episodes stay as they were."""

    EPISODE = "episode"
    NOTE = "note"


PROCEDURAL = "procedural"  # the type of fact that a belief about how to do something has


class Knowledge(StrEnum):
    """D2: the type of a memory."""

    FACT = "fact"
    PROCEDURE = "procedure"
    NARRATIVE = "narrative"


class RecallMode(StrEnum):
    """D2: which types a recall answers with."""

    FACTS_ONLY = "facts_only"
    FACTS_PLUS_RULES = "facts_plus_rules"
    FULL_CONTEXT = "full_context"


_WANTED: Mapping[RecallMode, frozenset[Knowledge]] = {
    RecallMode.FACTS_ONLY: frozenset({Knowledge.FACT}),
    RecallMode.FACTS_PLUS_RULES: frozenset({Knowledge.FACT, Knowledge.PROCEDURE}),
    RecallMode.FULL_CONTEXT: frozenset(Knowledge),
}

# By the category of an episode (L5): what happened is told, what holds is noted. Without a category it is told.
_KNOWN: Mapping[str, Knowledge] = {
    Category.SKILL: Knowledge.PROCEDURE,
    Category.PRINCIPLE: Knowledge.PROCEDURE,
    Category.MOMENT: Knowledge.NARRATIVE,
    Category.FACT: Knowledge.FACT,
    Category.ENTITY: Knowledge.FACT,
    Category.PREFERENCE: Knowledge.FACT,
    Category.DECISION: Knowledge.FACT,
    Category.COMMITMENT: Knowledge.FACT,
    Category.CORRECTION: Knowledge.FACT,
    Category.RELATIONSHIP: Knowledge.FACT,
}


def knowledge_of_episode(*, category: str) -> Knowledge:
    """Return the type of an episode of this category, "" where it has none."""
    return _KNOWN.get(category, Knowledge.NARRATIVE)


def knowledge_of_belief(*, fact_type: str) -> Knowledge:
    """Return the type of a belief of this type of fact."""
    return Knowledge.PROCEDURE if fact_type == PROCEDURAL else Knowledge.FACT


def categories_of(*, mode: RecallMode) -> tuple[str, ...] | None:
    """Return the categories of the episodes that a mode asks for; None for all, those without a category too."""
    wanted = _WANTED[mode]
    if Knowledge.NARRATIVE in wanted:
        return None
    return tuple(str(category) for category, knowledge in _KNOWN.items() if knowledge in wanted)


def asks_for_procedures(*, mode: RecallMode) -> bool:
    """Tell whether a mode asks for beliefs about how to do something."""
    return Knowledge.PROCEDURE in _WANTED[mode]


_EXTRACTION_DEFAULTS = ExtractionPolicy()


class Tier(StrEnum):
    """L3: the tier of an extraction's confidence."""

    EXPLICIT = "explicit"
    IMPLIED = "implied"
    INFERRED = "inferred"
    SPECULATIVE = "speculative"


def tier_of(*, confidence: float, policy: ExtractionPolicy = _EXTRACTION_DEFAULTS) -> Tier:
    """Return the tier of a confidence in [0, 1]."""
    if confidence >= policy.explicit_confidence:
        return Tier.EXPLICIT
    if confidence >= policy.implied_confidence:
        return Tier.IMPLIED
    return Tier.INFERRED if confidence >= policy.inferred_confidence else Tier.SPECULATIVE


class Role(StrEnum):
    """Who a turn comes from: what a model said is not what the user said."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """One turn, redacted; its number is its place in the conversation, by which facts quote it."""

    role: Role
    speaker: str
    text: str
    occurred_at: datetime
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Whose conversation turns belong to; the project is a slug."""

    session: str
    user: str = ""
    agent: str = ""
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedFact:
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
class ExtractionResult:
    """What was read out of some turns: the facts, the ledger's call that each is from, and the turns left unread."""

    facts: tuple[ExtractedFact, ...]
    call_ids: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()  # numbers of turns that got no answer: they stay buffered
    failure: str = ""
    broken: tuple[tuple[int, str], ...] = ()  # numbers of turns over which our own code broke, and how (E6)
