"""Of whom or what a sentence tells, where it begins with a name: what is said of Vera is not said of Bruno (E3)."""

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST, ENGLISH_STOPS, ENGLISH_VERBS, GERMAN_STOPS
from memory.domain.matching.stems import stem_english
from memory.domain.relative_dates import WEEKDAY_OF
from memory.language.cues import word_list
from memory.language.values import MONTH_OF

_TOKEN = re.compile(r"[\w.&'’-]*\w")
_OWNED = re.compile(r"['’]s?$")
_MOST_LEADING = 7  # words of a time or place before the subject
_TIMES = frozenset(word_list("leading_words"))
_BETWEEN = frozenset(word_list("between_name_and_verb"))
_NOT_NAMES = _TIMES | _BETWEEN | frozenset(word_list("not_names")) | ENGLISH_STOPS | GERMAN_STOPS
_CALENDAR = WEEKDAY_OF.keys() | MONTH_OF.keys()
_TITLES = frozenset(("dr", "prof", "mr", "mrs", "ms", "st", "frau", "herr"))
_BE = frozenset(("is", "was", "ist", "war"))
_PLURAL = frozenset(("are", "were", "have", "do", "sind", "waren", "haben"))
_SAYS_WHO = frozenset(word_list("says_who_it_is"))
_STATES = frozenset(word_list("states_of_people"))
_DEEDS = frozenset(word_list("deeds_of_people"))
_STEMS_OF_DEEDS = frozenset(map(stem_english, _DEEDS))


def find_named_subject(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the words of the name that a sentence begins with and tells something of, in lower case; else nothing.

    A time or place may come first ("From June on Bruno works at the mill"). Where it says who somebody is ("Dana is
    the manager"), it may be about either, and of what is somebody's it is not about them.
    """
    tokens = _without_time(sentence)
    name = list(takewhile(_is_name, tokens))
    rest = _after_name(tokens)
    if not name or len(name) > 3 or any(map(_is_owner, name)) or not _tells_of(rest, language):
        return frozenset()
    return frozenset(word.lower() for word in name) - _TITLES


def find_named_person(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the same where it tells what people do or are, and things are not."""
    first, *rest = _after_name(_without_time(sentence)) or [""]
    said = next((word for word in (first, *rest) if not _is_helping(word)), "")
    is_somebody = first in _BE and bool(rest) and rest[0] in _STATES
    is_deed = said in _DEEDS or (language != "de" and stem_english(said) in _STEMS_OF_DEEDS)
    return find_named_subject(sentence, language=language) if is_somebody or is_deed else frozenset()


def find_owner(sentence: str) -> str:
    """Return of whom a sentence begins to tell what is theirs, in lower case ("Bruno's car is red"), or ""."""
    tokens = _without_time(sentence)
    return _OWNED.sub("", tokens[0]).lower() if tokens and _is_owner(tokens[0]) else ""


def _without_time(sentence: str) -> list[str]:
    """Return the words of a sentence from its first name on, a time or place before it left out; none without one."""
    tokens: list[str] = _TOKEN.findall(sentence)
    start = next((place for place, token in enumerate(tokens[:_MOST_LEADING]) if _is_name(token)), None)
    return [] if start is None or (start and tokens[0].lower() not in _TIMES) else tokens[start:]


def _after_name(tokens: Sequence[str]) -> list[str]:
    """Return what follows a name, from the verb on."""
    return list(dropwhile(_BETWEEN.__contains__, (token.lower() for token in dropwhile(_is_name, tokens))))


def _is_name(token: str) -> bool:
    plain = token.lower().strip(".'’-")
    is_word = plain in _NOT_NAMES or plain.removesuffix("s") in ENGLISH_VERBS | _CALENDAR
    return token[:1].isupper() and len(plain) > 1 and not is_word


def _is_owner(word: str) -> bool:
    return _OWNED.search(word) is not None


def _tells_of(rest: Sequence[str], language: str) -> bool:
    """Tell whether what follows a name is a verb, and does not only say who that is."""
    if not rest or not _is_verb(rest[0], language):
        return False
    return rest[0] not in _BE or (len(rest) > 1 and rest[1] not in _SAYS_WHO and not _is_owner(rest[1]))


def _is_verb(word: str, language: str) -> bool:
    if word in _PLURAL:
        return False
    if word in ENGLISH_AUXILIARIES | ENGLISH_PAST | _BE or word.endswith(("n't", "n’t", "ed")):
        return True
    ends = ("s", "t") if language == "de" else ("s",)
    return len(word) > 2 and word.endswith(ends) and not word.endswith("ss") and not _is_owner(word)


def _is_helping(word: str) -> bool:
    return word in ENGLISH_AUXILIARIES | _BETWEEN or word in ("used", "to") or word.endswith(("n't", "n’t"))
