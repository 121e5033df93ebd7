"""Whom "he" and "she" mean within a message: the person named last before it (E2)."""

import re

from memory.domain.lexicon import ENGLISH_STOPS, ENGLISH_VERBS, GERMAN_STOPS, words
from memory.language.cues import common_words, word_list
from memory.language.values import TITLE
from memory.language.wording import tell_of

_RELATIVES = "|".join(word_list("relatives"))
_PRONOUN = re.compile(
    r"^(?P<before>(?:(?:and|but|so|because|since|und|aber|denn|weil|also|then|now|dann|jetzt) )*)(?P<pronoun>he|she|"
    r"er|sie|die(?= \w+t\b)|der(?= \w+t\b))"
    r"(?P<rest>'s|'d|'ll)?(?= [a-zäöüß'])", re.IGNORECASE,
)  # fmt: skip
_NAME = re.compile(r"(?<![\w@/.-])[A-ZÀ-Þ][a-zß-ÿ]+(?:-[A-ZÀ-Þ][a-zß-ÿ]+)?(?: [A-ZÀ-Þ][a-zß-ÿ]+)?\b")
_SMALL_NAME = re.compile(r"^(?:(?:and|but|so|also) )*(?P<name>[a-zß-ÿ]{3,})(?:'s| is| has) ")
_OWN = re.compile(
    rf"\b(?:my|our|mein\w*|unser\w*) (?P<who>(?:\w+ )?(?:{_RELATIVES}))\b(?: (?P<name>(?-i:[A-ZÄÖÜ][a-zäöüß]+)))?",
    re.IGNORECASE,
)
_TITLED = re.compile(rf"\b(?P<who>{TITLE} [A-ZÄÖÜ][\w-]+)")
_ACTS = frozenset(word_list("acts_of_people"))


def people_in(*, text: str, speaker: str, german: bool, before: str = "") -> str:
    """Return who a later pronoun would mean after this clause: who is named in it, else who was meant `before`."""
    return _named_in(text, speaker, german=german) or ("" if _SOMEBODY_ELSE.match(text) else before)


def name_relative(subject: str) -> str:
    """Return the words of a subject from which on it names one of somebody's people ("colleague tamsin"); else ""."""
    found = _ONES_PEOPLE.search(subject)
    return found["who"].casefold() if found else ""


_ONES_PEOPLE = re.compile(
    rf"(?:['’]s?|\bmy|\bour|\bmein\w*|\bunser\w*) (?P<who>(?:\w+ )?(?:{_RELATIVES})\b.*)", re.IGNORECASE
)
_SOMEBODY_ELSE = re.compile(
    r"(?:(?:and|but|so|und|aber) )*(?:the|a|an|another|some|der|die|ein|eine) (?:\w+ )?(?:supervisor|teacher|doctor|"
    r"physio|nurse|man|woman|lady|guy|customer|"
    r"driver|neighbour|neighbor|boss|manager|vet|friend|colleague|kollege|kollegin|ärztin|arzt|frau|mann|lehrerin|"
    r"lehrer|professorin)\b",
    re.IGNORECASE,
)


def _named_in(text: str, speaker: str, *, german: bool) -> str:
    if own := _last(_OWN, text):
        return own["name"] or tell_of(clause=own.group(), name=speaker, german=german).rstrip(".")
    if titled := _last(_TITLED, text):
        return titled["who"]
    for found in _NAME.finditer(text):
        name = _without_verb(found.group())
        follows = text[found.end() :].lstrip().split(" ", 1)[0].lower().strip(",")
        is_word = not name or name.split()[0].lower() in common_words() | ENGLISH_STOPS | GERMAN_STOPS
        if not is_word and (follows in _ACTS or (not german and _is_person_place(text, found, name))):
            return name
    return _named_small(text) if not german else ""


def _named_small(text: str) -> str:
    """Return the name with which a clause typed in small letters begins ("jenna's on nights"), "" for none."""
    found = _SMALL_NAME.match(text)
    known = common_words() | ENGLISH_STOPS | ENGLISH_VERBS
    return found["name"].capitalize() if found and found["name"] not in known else ""


def _without_verb(name: str) -> str:
    """Drop the verb with which an order begins from what looks like two names ("Ask Devika")."""
    first, _, rest = name.partition(" ")
    return rest if first.lower() in ENGLISH_VERBS else name


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007  (the last one is meant)
        pass
    return found


def _is_person_place(text: str, found: re.Match[str], name: str) -> bool:
    """Tell whether a name stands where people do: asked, told, given, or with somebody."""
    before = text[: found.end() - len(name)].rstrip().rsplit(" ", 1)[-1].lower()
    return before in words(
        "ask asked tell told remind with for from and give gave call called meet met write mail send sent thank by"
    )


def name_pronoun(*, clause: str, person: str, german: bool) -> str:
    """Say who "he" or "she" is at the head of a clause, where somebody was named before; else return it as it is."""
    found = _PRONOUN.match(clause)
    if not found or not person or (german and found["pronoun"] == "Sie"):
        return clause
    if german != (found["pronoun"].lower() in ("er", "sie", "die", "der")):
        return clause
    rest = {"'s": " is", "'d": " would", "'ll": " will"}.get(found["rest"] or "", "")
    has = re.match(r" (?:got|been|gone|had|taken|moved|done|lost|left|sent|asked|made)\b", clause[found.end() :])
    return f"{found['before']}{person}{' has' if rest == ' is' and has else rest}{clause[found.end() :]}"


_THAT_ONE = re.compile(
    r"^(?:(?:and|but|so) )*(?P<it>that one|this one|it)(?P<rest>'s)?(?= (?:is|must|has|goes|costs|will|should|now|"
    r"stays)\b|'s)",
    re.IGNORECASE,
)
_TOPIC = re.compile(r"^(?:\w+ ){0,2}?(?P<thing>(?:the|our|my) [\w-]+), ", re.IGNORECASE)


def name_thing(*, clause: str, sentence: str) -> str:
    """Say what "that one" is at the head of a clause whose sentence began with the thing (`the rye, …, that one …`)."""
    found, topic = _THAT_ONE.match(clause), _TOPIC.match(sentence)
    if not found or not topic or clause == sentence:
        return clause
    return f"{topic['thing']}{' is' if found['rest'] else ''}{clause[found.end() :]}"
