"""Score how well a sentence would serve as a standing belief, before any model reads it."""

import re
from dataclasses import dataclass

from memory.domain.cards import is_past

_STANDING = re.compile(
    r"\b(?:always|never|usually|prefers?|likes?|loves?|hates?|wants?|needs?|uses?|keeps?|must|should|rule|every|each|"
    r"only|believes?|thinks?|values?|enjoys?|avoids?|insists?|tends?|means|matters?|important|passion(?:ate)?|favou?rite|"
    r"dream|goals?|is allergic|immer|nie|niemals|bevorzugt|mag|liebt|trinkt|jede[nmrs]?|grundsätzlich|nur|will|braucht|"
    r"soll|sollen|muss|müssen|lieber|gern|stets)\b",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|ago|just|recently|lately|last|next|"
    r"this (?:morning|week|weekend|month|year)|soon|upcoming|on (?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|"
    r"heute|gestern|morgen|neulich|gerade|letzte[nrs]?|nächste[nrs]?|\d{1,2}(?:st|nd|rd|th)|"
    r"january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:so|such|one|here|there|thing|things|stuff|too|also|again|another|more|both|same|kinda|though)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[,;:–—(]|\s-\s")
_INVERTED = re.compile(
    r"(?:on|for|while|every|in|at|after|when|by|before|with|um|im|am|nach|vor|bei|auch)\b", re.IGNORECASE
)
_UNSHARED = re.compile(r"(?:The|Some|Another)\b|It's normal\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralityWeights:
    """What a trait of a sentence is worth, in cosine; tried on conversations and notes of ours."""

    speaker: float = 0.12
    standing: float = 0.08
    dated: float = -0.10
    past: float = -0.08
    vague: float = -0.04
    word: float = -0.002  # of two that say as much the shorter one
    inverted: float = -0.05  # "While coding Mia …": the same is mostly said with its subject first as well
    aside: float = -0.05  # what a second clause adds is seldom what all episodes of a cluster say


WEIGHTS = GeneralityWeights()


def is_shareable(statement: str, *, speaker: str, german: bool) -> bool:
    """Tell whether a sentence from a conversation says enough without it: who is meant, or something general."""
    if not speaker:
        return True
    if speaker in statement:
        return not (_UNSHARED.match(statement) and is_past(statement, german=german))
    is_dated = _DATED.search(statement) or is_past(statement, german=german)
    return not is_dated and not _UNSHARED.match(statement)


def score_generality(
    statement: str, *, speaker: str = "", german: bool = False, weights: GeneralityWeights = WEIGHTS
) -> float:
    """Prefer habits, wishes and rules of a named person to one event on one day."""
    names_speaker = bool(speaker) and speaker in statement
    traits = (
        (weights.speaker, names_speaker),
        (weights.standing, _STANDING.search(statement)),
        (weights.dated, _DATED.search(statement)),
        (weights.past, is_past(statement, german=german)),
        (weights.vague, _VAGUE.search(statement)),
        (weights.inverted, _INVERTED.match(statement)),
        (weights.aside, _ASIDE.search(statement)),
    )
    return sum(weight for weight, applies in traits if applies) + weights.word * len(statement.split())
