"""Whom or what a sentence is about, where it begins with a bare name: what is said of Vera is not said of Bruno."""

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile

from memory.domain.lexicon import (
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_STOPS,
    words,
)

_TOKEN = re.compile(r"[\w.&'’-]*\w")
_LEADS = words(
    "from since as until by in on at after before starting every now today yesterday tomorrow "
    "gestern morgen also and but so then next last these "
    "ab seit von bis im am in nach vor jeden jetzt heute auch und aber dann"
)
_MOST_LEADING = 7  # words of a time or place before the subject
_TITLES = words("dr prof mr mrs ms st frau herr")
# Days, months, and what is a plain noun though it stands without an article, and goes by many names.
_NO_NAMES = words(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays "
    "sundays january february march april may june july august september october november december "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember "
    "practice rehearsal training standup meeting lunch dinner breakfast class school work choir rent release "
    "everybody everyone somebody someone nobody anybody assistant user because although while though unless whether "
    "once"
)
_BETWEEN = words(
    "no longer never always also usually often only now still really just almost nearly hardly already currently again "
    "not finally sometimes generally rarely mostly nicht nie immer auch meist jetzt noch wieder"
)
_BE = words("is was ist war")
_PLURAL = words("are were have do sind waren haben")
_NOT_NAMES = _NO_NAMES | ENGLISH_STOPS | GERMAN_STOPS | _LEADS | _BETWEEN
_OF_ANOTHER = words("the my our your his her their der die das mein meine unser unsere called named now")
# What people do and things do not.
_DEEDS = words(
    "live work drink drank eat ate play like love hate prefer want think sleep slept read write wrote speak learn "
    "study teach taught drive drove cycle swim swam walk cook buy bought pay paid wear smoke know knew move quit marry "
    "sing sang paint travel wake ride rode jog hike climb visit hope enjoy practise practice attend earn volunteer "
    "retire commute bake dance ski surf row sail draw drew "
    "wohnt arbeitet trinkt isst spielt mag liebt hasst will denkt schläft liest schreibt spricht lernt studiert lehrt "
    "fährt schwimmt kocht kauft zahlt trägt raucht weiß joggt"
)
_STATES = words("a an vegan vegetarian allergic married single divorced retired pregnant ein eine")
_NOT_DEEDS = words("used to has have had is was will would can could must should does did been")


def find_named_person(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the words of the name of whom a sentence begins to tell what they do or are, or what is theirs."""
    name = find_named_subject(sentence, language=language)
    if not name or find_owner(sentence):
        return name
    rest = [token.lower() for token in _without_lead(sentence) if not _is_name(token)]
    said = [word for word in rest[:6] if word not in _BETWEEN | _NOT_DEEDS and not word.endswith(("n't", "n’t"))]
    is_somebody = len(rest) > 1 and rest[0] in _BE and rest[1] in _STATES
    return name if is_somebody or (said and not _DEEDS.isdisjoint(_lemmas(said[0]))) else frozenset()


def _lemmas(verb: str) -> list[str]:
    """Return what a verb may be a form of."""
    bare = [verb.removesuffix(end) for end in ("s", "es", "d", "ed", "ing") if verb.endswith(end)]
    return [verb, *bare, f"{verb[:-3]}y"]


def find_named_subject(sentence: str, *, language: str = "") -> frozenset[str]:
    """Return the words of the name that a sentence begins with and tells something of, in lower case; else nothing.

    A time or place may come first ("From June on Bruno works at the mill"). Of what is somebody's ("Bruno's sister
    Eva swims") both are named. Where it says who somebody is ("Dana is the manager"), it may be about either.
    """
    tokens = _without_lead(sentence)
    if tokens and _is_owner(tokens[0]):
        return _name_owned(tokens)
    name = list(takewhile(_is_name, tokens))
    rest = list(dropwhile(_BETWEEN.__contains__, (token.lower() for token in tokens[len(name) :])))
    if not name or len(name) > 3 or any(map(_is_owner, name)) or not _tells_of(rest, language):
        return frozenset()
    return frozenset(word.lower() for word in name) - _TITLES


def _tells_of(rest: Sequence[str], language: str) -> bool:
    """Tell whether what follows a name is a verb, and does not only say who that is."""
    if not rest or not _is_verb(rest[0], language):
        return False
    return rest[0] not in _BE or (len(rest) > 1 and rest[1] not in _OF_ANOTHER and not _is_owner(rest[1]))


def find_owner(sentence: str) -> str:
    """Return of whom a sentence begins to tell what is theirs, in lower case ("Bruno's car is red"), or ""."""
    tokens = _without_lead(sentence)
    return _OWNED.sub("", tokens[0]).lower() if tokens and _is_owner(tokens[0]) else ""


def _without_lead(sentence: str) -> list[str]:
    """Return the words of a sentence from its first name on, a time or place before it left out; none without one."""
    tokens: list[str] = _TOKEN.findall(sentence)
    start = next((place for place, token in enumerate(tokens[:_MOST_LEADING]) if _is_name(token)), None)
    return [] if start is None or (start and tokens[0].lower() not in _LEADS) else tokens[start:]


def _name_owned(tokens: Sequence[str]) -> frozenset[str]:
    """Return whose something is, and the name that follows what it is."""
    beside = takewhile(_is_name, dropwhile(str.islower, tokens[1:3]))
    return frozenset({_OWNED.sub("", tokens[0]).lower(), *(word.lower() for word in beside)})


def _is_name(token: str) -> bool:
    plain = token.lower().strip(".'’-")
    is_verb = plain.removesuffix("s") in ENGLISH_VERBS
    return token[:1].isupper() and len(plain) > 1 and not is_verb and plain not in _NOT_NAMES


def _is_owner(word: str) -> bool:
    return _OWNED.search(word) is not None


_OWNED = re.compile(r"['’]s?$")


def _is_verb(word: str, language: str) -> bool:
    if word in _PLURAL:
        return False
    if word in ENGLISH_AUXILIARIES | ENGLISH_PAST | _BE or word.endswith(("n't", "n’t", "ed")):
        return True
    ends = ("s", "t") if language == "de" else ("s",)
    return len(word) > 2 and word.endswith(ends) and not word.endswith("ss") and not _is_owner(word)
