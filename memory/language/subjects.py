"""Who and what a sentence is about and names.

`split_subject` parts a statement for a belief's card (B2), `find_entities` lists all names in a text.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from memory.domain.policy_memories import BoxPolicy
from memory.language.sentences import list_words
from memory.language.words import (
    ENGLISH_AUXILIARIES,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_STOPS,
    PEOPLE,
    is_verb_form,
    word_set,
)


class Timeframe(StrEnum):
    """When a statement holds (B2)."""

    PAST = "past"
    CURRENT = "current"
    ALWAYS = "always"


_SUBJECT_END = re.compile(
    r"\s(?=(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|never|always|usually|"
    r"ist|sind|war|hat|haben|wird|werden|kann|soll|sollen|muss|müssen|darf|will|mag|möchte)\b)",
    re.IGNORECASE,
)

_OPENS_WITH_CLAUSE = re.compile(
    r"(?:It|It's|There|To|When|While|If|Since|As|After|Before|Although|Because|In|On|At|With|For|Every|Next|Almost)\s"
)

_CALENDAR_PATTERN = re.compile(
    r"\w+day|January|February|March|April|May|June|July|August|September|October|November|December|I\b|[A-Z]+\b"
)
_CONTRACTED = re.compile(r"(\w+)'s (?=(?:a|an|the|so|very|always|all|been|great|important|awesome|normal|more)\b)")
_MAX_SUBJECT_WORDS = 6

_DETERMINERS = word_set(
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
    names = [place for place in range(1, len(written) - 1) if _may_be_name(written[place])]
    acting = [place for place in names if is_verb_form(written[place + 1].lower())]
    return written[(acting or names)[0]] if names else ""


def _may_be_name(word: str) -> bool:
    return word[0].isupper() and not _CALENDAR_PATTERN.match(word)


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


MOST = 8

_CALENDAR_NAMES = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
    "märz mai juni juli oktober dezember christmas easter weihnachten ostern"
)

_NO_NAMES = word_set(
    "i ok okay god mom mum dad user nutzer assistant assistent tbh lol btw fyi asap etc am pm gonna gotta wanna"
)

_OPENERS = word_set(
    "art music life love support health work nobody nothing something everything since when while after before if "
    "although because yesterday today tonight tomorrow last next every each"
)
_ABSTRACT = ("ing", "s", "ly", "ence", "ance", "ness", "tion", "sion", "ment", "ity", "ship", "hood")

# Looked at from where a run of letters begins and nowhere else: from each letter, a word costs its length squared.
_TECHNICAL = re.compile(r"(?<!\w)(?=\w*[a-z])(?=\w+[A-Z0-9+#])|[+#]|\w\.\w|_|^[A-Z]{2,}\d*$")


def find_entities(
    *, text: str, known: Collection[str] = (), own: Collection[str] = (), german: bool = False
) -> tuple[str, ...]:
    """List the names in a text, small and each once: `own` ones in any case, known ones, and what looks like a name.

    In German nouns are capitalised like names: there only known names and technical ones are found.
    """
    lowered = f" {' '.join(list_words(text)).casefold()} "
    spoken = [name for name in known if f" {name.casefold()} " in lowered or f" {name.casefold()}'s " in lowered]
    found = [*own, *sorted(spoken), *(_technical(text) if german else _capitalised(text))]
    return tuple(dict.fromkeys(normalise_entity(name) for name in found))[:MOST]


def normalise_entity(name: str) -> str:
    """Return the one form of a name that entities are kept and compared in: small, in single spaces."""
    return " ".join(name.casefold().split()).removesuffix("'s").removesuffix("’s")


def same_name(name: str) -> str:
    """Return what is left of an entity's name without accents and possessives: names with the same are one."""
    bare = "".join(
        one for one in unicodedata.normalize("NFKD", normalise_entity(name)) if not unicodedata.combining(one)
    )
    return normalise_entity(bare).removesuffix("'").removesuffix("’") or name


def _technical(text: str) -> Iterator[str]:
    return (word for word in list_words(text) if _TECHNICAL.search(word) and not word.isdigit())


def _capitalised(text: str) -> Iterator[str]:
    """Yield runs of capitalised words; one that begins the sentence counts if it is no ordinary word."""
    run: list[str] = []
    written = list_words(text)
    for place, word in enumerate(written):
        if _is_entity_word(word, is_first=place == 0 and not _leads_as_name(written)):
            run.append(word)
        else:
            yield from _close(run)
            run = []
    yield from _close(run)


def _leads_as_name(written: list[str]) -> bool:
    """Tell whether the first word, which is capitalised in any case, is a name: a verb or a further name follows it."""
    first, *rest = written
    plain = first.casefold().removesuffix("'s")
    if not rest or is_verb_form(plain) or plain in PEOPLE or plain in _OPENERS or plain.endswith(_ABSTRACT):
        return False
    follows = rest[0].casefold()
    return first.endswith("'s") or rest[0][0].isupper() or follows in ENGLISH_AUXILIARIES or _is_third_person(follows)


def _is_third_person(word: str) -> bool:
    return word.endswith("s") and is_verb_form(word)


def _close(run: list[str]) -> Iterator[str]:
    if run:
        yield " ".join(run)


def _is_entity_word(word: str, *, is_first: bool) -> bool:
    plain = word.casefold().removesuffix("'s")
    if (
        plain in ENGLISH_STOPS
        or plain in GERMAN_STOPS
        or {plain, plain.removesuffix("s")} & (_CALENDAR_NAMES | _NO_NAMES)
    ):
        return False
    if "'" in word.removesuffix("'s") or not word[0].isalpha():
        return False
    if _TECHNICAL.search(word):
        return True
    return word[0].isupper() and not is_first


_STOPS = ENGLISH_STOPS | GERMAN_STOPS


_SHORTEST_TOPIC = 3


def topics_of(*, names: Sequence[str], text: str, policy: BoxPolicy) -> tuple[str, ...]:
    """Return what a memory is about: whom and what it names, or else its longest words."""
    if names:
        return tuple(dict.fromkeys(names))
    words = dict.fromkeys(word.casefold() for word in list_words(text))
    telling = [word for word in words if len(word) >= _SHORTEST_TOPIC and word not in _STOPS]
    return tuple(sorted(telling, key=lambda word: (-len(word), word))[: policy.keywords])
