"""The kinds that memories fall into, and the turns and facts of conversations.

Four taxonomies: category (what an episode tells, L3), kind (event or note, L5), knowledge (fact, procedure or
narrative, by category, D2) and tier (how sure an extraction is, L3).
"""

import re
from collections.abc import Collection, Mapping
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


class Mode(StrEnum):
    """How a claim is meant; only what is asserted or announces a change is evidence of anything (E1, E2)."""

    ASSERTED = "asserted"
    CHANGE = "change"
    ADVISED = "advised"
    ASKED = "asked"
    HYPOTHETICAL = "hypothetical"
    WISHED = "wished"
    QUOTED = "quoted"
    IRONIC = "ironic"
    PLANNED = "planned"


EVIDENCE_MODES = frozenset({Mode.ASSERTED, Mode.CHANGE})


class Kind(StrEnum):
    """L5: what a memory is to those who maintain it; notes may be superseded, episodes stay as they were."""

    EPISODE = "episode"
    NOTE = "note"


_KIND_OF: Mapping[str, Kind] = {
    Category.PREFERENCE: Kind.NOTE,
    Category.DECISION: Kind.NOTE,
    Category.COMMITMENT: Kind.NOTE,
    Category.PRINCIPLE: Kind.NOTE,
    Category.CORRECTION: Kind.NOTE,
    Category.RELATIONSHIP: Kind.NOTE,
    Category.SKILL: Kind.NOTE,
    Category.MOMENT: Kind.EPISODE,
}
_NOTE_TAGS = frozenset(
    {
        "note", "preference", "decision", "rule", "principle", "policy", "convention", "profile", "skill", "howto",
        "reference",
    }
)  # fmt: skip
# 2026-03-01, 1.3.2026, 3/1/26: the same in any language.
_DATE = re.compile(
    r"(?<![\w.-])(?:\d{4}-\d{2}-\d{2}|\d{1,2}(?P<mark>[./])\d{1,2}(?P=mark)(?:\d{4}|\d{2}))(?![\w-]|[./]\d)"
)


def kind_of(*, text: str, category: str = "", tags: Collection[str] = ()) -> Kind:
    """L5: return the kind of a memory by the first of these that speaks: a date in figures, the category, the tags.

    A note tag makes a note; what nobody has said anything of is an episode.
    """
    if _DATE.search(text):
        return Kind.EPISODE
    if category in _KIND_OF:
        return _KIND_OF[category]
    named = {tag.casefold() for tag in tags}
    return Kind.NOTE if named & _NOTE_TAGS else Kind.EPISODE


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
