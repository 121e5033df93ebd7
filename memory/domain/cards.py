"""Read the parts of a belief's card (B2) off its statement."""

import re
from enum import StrEnum
from itertools import pairwise

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST, ENGLISH_VERBS, words
from memory.domain.references import is_verb_form
from memory.domain.sentences import list_words


class Timeframe(StrEnum):
    """When a statement holds (B2)."""

    PAST = "past"
    CURRENT = "current"
    ALWAYS = "always"


_CONTEXT = re.compile(
    r"\b(?:when|while|during|if|unless|in (?:the )?(?:morning|evening|winter|summer)s?|at (?:work|home|night)|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)days|wenn|beim|während|im (?:Winter|Sommer|Büro)|zu Hause|"
    r"morgens|abends|freitags|montags|for (?=\w+ (?:projects?|work|releases?|reports?|trips?)))\b[^,.;]*",
    re.IGNORECASE,
)
_MAX_CONTEXT = 80


def read_context(statement: str) -> str:
    """Read the condition under which a statement is said to hold; 'general' if none (B10)."""
    found = _CONTEXT.search(statement)
    return found.group().strip()[:_MAX_CONTEXT] if found else "general"


_ALWAYS = re.compile(
    r"\b(?:always|never|every|must|rule|immer|nie|niemals|jede[nmrs]?|muss|grundsätzlich)\b", re.IGNORECASE
)


def read_timeframe(statement: str, *, german: bool) -> Timeframe:
    """Read when a statement holds from its adverbs and its tense."""
    if _ALWAYS.search(statement):
        return Timeframe.ALWAYS
    return Timeframe.PAST if is_past(statement, german=german) else Timeframe.CURRENT


_SUBJECT_END = re.compile(
    r"\s(?=(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|never|always|usually|"
    r"ist|sind|war|hat|haben|wird|werden|kann|soll|sollen|muss|müssen|darf|will|mag|möchte)\b)",
    re.IGNORECASE,
)
_OPENS_WITH_CLAUSE = re.compile(
    r"(?:It|It's|There|To|When|While|If|Since|As|After|Before|Although|Because|In|On|At|With|For|Every|Next|Almost)\s"
)
_CALENDAR = re.compile(
    r"\w+day|January|February|March|April|May|June|July|August|September|October|November|December|I\b|[A-Z]+\b"
)
_CONTRACTED = re.compile(r"(\w+)'s (?=(?:a|an|the|so|very|always|all|been|great|important|awesome|normal|more)\b)")
_MAX_SUBJECT_WORDS = 6
_DETERMINERS = words(
    "the a an all every each no some any most both his her their its "
    "der die das ein eine alle jede jeder jedes kein keine"
)


def split_subject(statement: str, *, speaker: str = "") -> tuple[str, str]:
    """Part a statement into who or what it is about and what it says of them."""
    statement = statement.rstrip(".")
    if speaker and statement.startswith(f"{speaker} "):
        return speaker, statement.removeprefix(speaker).strip()
    named = _find_name(statement, speaker=speaker) if _OPENS_WITH_CLAUSE.match(statement) else ""
    if named:
        return named, statement
    contracted = _CONTRACTED.match(statement)
    if contracted:
        return contracted[1], f"is {statement[contracted.end() :]}"
    end = _SUBJECT_END.search(statement)
    if end and len(statement[: end.start()].split()) <= _MAX_SUBJECT_WORDS:
        return statement[: end.start()], statement[end.end() :]
    return _lead_by_name(statement)


def _find_name(statement: str, *, speaker: str) -> str:
    """Find who a sentence is about that opens with something else: the speaker, else the first name in it."""
    if speaker and speaker in statement:
        return speaker
    written = list_words(statement)
    names = [place for place in range(1, len(written) - 1) if _is_name(written[place])]
    acting = [place for place in names if is_verb_form(written[place + 1].lower())]
    return written[(acting or names)[0]] if names else ""


def _is_name(word: str) -> bool:
    return word[0].isupper() and not _CALENDAR.match(word)


def _lead_by_name(statement: str) -> tuple[str, str]:
    """End the subject before the first word that is a verb; a command has the first word for its subject."""
    listed = statement.split()
    if not listed:
        return "", ""
    first = 2 if listed[0].lower() in _DETERMINERS else 1
    for count in range(first, min(len(listed), _MAX_SUBJECT_WORDS + 1)):
        word = listed[count].lower()
        if is_verb_form(word) and not word.endswith("ing") and listed[0].lower() not in ENGLISH_VERBS:
            return " ".join(listed[:count]), " ".join(listed[count:])
    return " ".join(listed[:first]), " ".join(listed[first:])


_PAST_GERMAN = re.compile(
    r"\b(?:war|waren|hatte|hatten|wurde|wurden|ging|kam|gab|sagte|machte|wollte|"
    r"brauchte|fragte|konnte|musste|stellte|zeigte|merkte|kaufte|arbeitete|[a-zäöüß]{2,}(?:ierte|elte|erte|tete))\b"
)


def is_past(statement: str, *, german: bool) -> bool:
    """Tell whether the statement's first verb is in the past."""
    if german:
        return _PAST_GERMAN.search(statement) is not None
    written = ["", *(word.lower() for word in list_words(statement))]
    return any(
        (word in _CLEARLY_PAST or _is_past_form(word)) and before not in ENGLISH_AUXILIARIES
        for before, word in pairwise(written[:5])
    )


_CLEARLY_PAST = (ENGLISH_PAST | words("was had did were")) - words("put set let cut read cost quit hit")


def _is_past_form(word: str) -> bool:
    return word.endswith("ed") and word not in {"need", "feed", "speed", "shared", "used", "red"}
