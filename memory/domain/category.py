"""What kind of thing an episode tells (L3)."""

from enum import StrEnum


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
