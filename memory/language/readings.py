"""A told sentence as the rules compare it: its telling words, slots, values, and what it denies or ends (E3)."""

import re
from dataclasses import dataclass
from functools import lru_cache

from memory.domain.lexicon import ENGLISH_STOPS
from memory.domain.matching.stems import stem_english, stem_german
from memory.domain.sentences import list_words
from memory.language.cues import common_words, dull_words, word_list
from memory.language.modes import denies, find_change
from memory.language.named_subjects import find_named_person, find_named_subject, find_owner
from memory.language.slots import fill_slots, without_ended
from memory.language.values import TITLE, Values, find_values

_CONTEXTS = tuple(
    (name, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE))
    for name, pattern in (
        ("home", r"at home|from home|home office|zu ?hause|daheim|im homeoffice"),
        (
            "work",
            r"at work|in the office|at the office|office|company|im büro|bei der arbeit|auf arbeit|in der firma|"
            r"dienstlich",
        ),
        ("field", r"in the field|outdoors?|outside|im gelände|draußen|im feld|im moor"),
        (
            "weekdays",
            r"on weekdays|weekdays?|during the week|school nights?|monday to (?:thursday|friday)|"
            r"mon(?:day)?\s?-\s?(?:thu|fri)\w*|unter der woche|werktags|wochentags",
        ),
        ("weekend", r"(?:at|on) (?:the )?weekends?|weekends?|am wochenende|wochenends"),
        ("saturday", r"on saturdays?|saturdays?|samstags?"),
        ("sunday", r"on sundays?|sundays?|sonntags?"),
        (
            "travel",
            r"when (?:\w+ )?travel\w*|on the road|travelling|traveling|journeys?|away|on trips?|auf reisen|unterwegs",
        ),
        ("staging", r"staging|stg|dev|test(?:ing)? environment"),
        ("production", r"production|prod(?:-\w+)?"),
        ("days off", r"days? off|free days?|an freien tagen"),
        ("working days", r"working days?|work days?|arbeitstage?n?"),
        ("summer", r"in (?:the )?summer|im sommer"),
        ("winter", r"in (?:the )?winter|im winter"),
        ("morning", r"in the mornings?|mornings?|morgens|vormittags"),
        ("evening", r"in the evenings?|evenings?|abends"),
        ("breakfast", r"for breakfast|breakfast|zum frühstück"),
    )
)


_MAIL = re.compile(r"\be-?mails?\b", re.IGNORECASE)
_TITLE = re.compile(rf"\b{TITLE} (?=[A-ZÄÖÜ])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Possession:
    """What a sentence names as somebody's: "Nora's phone plan is with Telmo"; in lower case."""

    thing: str
    where: str  # the preposition before the name, if any
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence as the rules compare it: content stems, slots and values, contexts, what it denies or ends."""

    sentence: str
    language: str
    stems: frozenset[str]
    subject: str
    is_of_person: bool  # the one whose claims these are, and not of what is theirs
    named: frozenset[str]  # of whom it tells, by name
    owner: str  # of what it tells, where it begins with whose that is
    possession: Possession | None
    owned: frozenset[str]  # stems of the subject where it is a group or place of theirs ("Ida's team")
    slots: dict[str, frozenset[str]]
    values: Values
    contexts: frozenset[str]
    is_denial: bool  # of what its main clause says
    denies: bool  # anything at all
    is_change: bool
    ended: tuple[str, ...]
    ended_by: frozenset[str]  # who gave it up, by name
    names: frozenset[str]


@lru_cache(maxsize=8192)
def read_sentence(sentence: str, *, person: str, subject: str = "", language: str = "en") -> Reading:
    """Read a told sentence about `person` as the rules compare it."""
    spoken = _as_spoken(sentence, person) if person else sentence
    change = find_change(spoken)
    ended = change.ended if change else ()
    values = find_values(sentence)
    slots = without_ended(_without_person(fill_slots(sentence, values), person), ended)
    return Reading(
        sentence=sentence,
        language=language,
        stems=content_stems(sentence, language=language) - content_stems(person, language=language),
        subject=subject,
        is_of_person=bool(subject) and subject.lower() == person.lower(),
        named=_name_person(sentence, person, language),
        owner=_name_owner(sentence, person),
        possession=_find_possession(sentence),
        owned=_owned(subject, person, language),
        slots=slots,
        values=values,
        contexts=frozenset(name for name, pattern in _CONTEXTS if pattern.search(sentence)),
        is_denial=denies(_head(sentence)),
        denies=denies(sentence),
        is_change=change is not None,
        ended=ended,
        ended_by=change.ended_by if change else frozenset(),
        names=frozenset(_names_in(sentence, person)) if language != "de" else frozenset(),
    )


def _with_person(sentence: str, person: str) -> str:
    """Let the person, who may be called "The user", be one name where a sentence tells of them."""
    found = (
        re.search(rf"^(?:[\w.]+ ){{0,6}}?(?P<person>{re.escape(person)})(?!\w)", sentence, re.IGNORECASE)
        if person
        else None
    )
    return f"{sentence[: found.start('person')]}{_PERSON}{sentence[found.end('person') :]}" if found else sentence


_PERSON = "Person"


def _name_person(sentence: str, person: str, language: str) -> frozenset[str]:
    """Name of whom a sentence tells: the person, whatever they do, or somebody else, by what people do.

    Who is not known by a name may be anybody.
    """
    told = _with_person(sentence, person)
    if find_owner(told):
        return frozenset()
    if _PERSON.lower() in find_named_subject(told, language=language):
        return frozenset(person.lower().split()) if _is_named(person) else frozenset()
    return find_named_person(told, language=language)


def _name_owner(sentence: str, person: str) -> str:
    """Name whose something is of which a sentence tells; "" for what is nobody's, or of somebody without a name."""
    owner = find_owner(_with_person(sentence, person))
    if owner != _PERSON.lower():
        return owner
    return person.lower() if _is_named(person) else ""


def _find_possession(sentence: str) -> Possession | None:
    found = _IS_OF_IT.match(sentence)
    if found is None or _OF_A_COUNTRY.search(found["name"]):
        return None
    return Possession(thing=found["thing"].lower(), where=found["where"] or "", name=found["name"].lower())


_IS_OF_IT = re.compile(
    r"^[\w ]+?['’]s? (?P<thing>[a-z][\w-]+(?: [a-z][\w-]+)?) is (?:now |called |named )*"
    r"(?P<where>with |at |from |in |by |on )?(?:now )?(?P<name>(?:(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr)\.? )?[A-Z][\w-]+"
    r"(?: [A-Z][\w-]+)?)(?: (?:now|these days))?\.?$"
)
_OF_A_COUNTRY = re.compile(
    r"(?:ish|ese|ian|ean|can|man)$|^(?:French|Dutch|Greek|Czech|Swiss|Thai|Welsh|Icelandic)$"
)  # no name, though written like one


def _is_named(person: str) -> bool:
    return not person.lower().startswith(("the ", "der ", "die "))


def _owned(subject: str, person: str, language: str) -> frozenset[str]:
    owner, _, what = subject.lower().partition(" ")
    is_owned = bool(person) and owner.startswith(person.lower()) and not _GROUPS.isdisjoint(what.split())
    return content_stems(subject, language=language) if is_owned else frozenset()


_GROUPS = frozenset(word_list("groups"))


def _as_spoken(sentence: str, person: str) -> str:
    spoken = re.sub(rf"\b{re.escape(person)}(?:'s|’s|'|s)?(?= )", "I", sentence, flags=re.IGNORECASE)
    return re.sub(r"\bI (is|has)\b", lambda found: {"is": "I am", "has": "I have"}[found[1]], spoken)


def _names_in(sentence: str, person: str) -> list[str]:
    """List the words of a sentence that are written like names: a capital within it, or a capital or digit inside."""
    found = (word.removesuffix("'s") for word in list_words(sentence) if word not in person)
    return [
        word.lower() for word in found if _NAMED.search(word) and word.lower() not in common_words() | ENGLISH_STOPS
    ]


_NAMED = re.compile(r"^[A-ZÄÖÜ][a-zäöüß]{2,}|[a-z][A-Z]|[A-Za-z]\d|^[A-Z]{2,}$")


def _head(sentence: str) -> str:
    """Return a sentence up to its first comma, where that is a clause: what follows may deny something else."""
    head = sentence.partition(",")[0]
    return head if len(head.split()) > 2 else sentence


def content_stems(text: str, *, language: str) -> frozenset[str]:
    """Return the stems of the words of a text that are not said everywhere."""
    german = language == "de"
    stem = stem_german if german else stem_english
    dull = dull_words(language)
    found = set()
    for word in list_words(_TITLE.sub("", _MAIL.sub("email", text))):
        lower = word.lower().removesuffix("'s").removesuffix("’s")
        if len(lower) > 1 and lower not in dull:
            stemmed = stem(lower)
            if german or stemmed not in dull:
                found.add(stemmed)
    return frozenset(found)


def _without_person(slots: dict[str, frozenset[str]], person: str) -> dict[str, frozenset[str]]:
    own = {person.lower(), f"{person.lower()}s"}
    return {
        name: kept
        for name, found in slots.items()
        if (kept := frozenset(v for v in found if v.removesuffix("'s") not in own))
    }
