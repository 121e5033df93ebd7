"""Name the values that go into and come out of a comparison of two texts."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A text, who says it (a belief's speaker is its subject) and its language ("" → detected)."""

    text: str
    speaker: str = ""
    language: str = ""


class GuardReason(StrEnum):
    """Why two texts may not be taken for the same claim without a model's word."""

    LANGUAGE = "language"
    UNLIKE = "unlike"
    SPEAKER = "speaker"
    QUESTION = "question"
    HEDGE = "hedge"
    LIMIT = "limit"
    NEGATION = "negation"
    NUMBER = "number"
    SWAPPED = "swapped"
    ANTONYM = "antonym"
    NAME = "name"
    ALTERNATIVE = "alternative"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingPolicy:
    """How much two texts must share before word-by-word checks mean anything."""

    least_shared: float = 0.4  # of the shorter text's content words
    same_words: float = 0.8  # of the longer text's content words: their order alone may tell the texts apart
    shortest: int = 4  # content words up to which any word between two others may be the verb
    framed: float = 0.5  # of the shorter text's content words, in one order: the texts have one frame


POLICY = MatchingPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """Whether the guard passes, and why not."""

    passed: bool
    reason: GuardReason | None
