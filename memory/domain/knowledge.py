"""What kind of knowledge a memory is, and which kinds a recall asks for (D2)."""

from collections.abc import Mapping
from enum import StrEnum

from memory.domain.category import Category

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
