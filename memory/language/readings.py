"""A told sentence as the rules compare it: its subject, telling words, slots, values, what it denies or ends (E3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.language.clauses import denies, find_change
from memory.language.lexicon import load_lexicon
from memory.language.quantities import TITLE, Values, find_values
from memory.language.sentences import list_words
from memory.language.slots import fill_slots, without_ended
from memory.language.subjects import find_named_person, find_named_subject, find_owner
from memory.language.words import (
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    common_words,
    dull_words,
    stem_english,
    stem_german,
    word_list,
)

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


PERSON = "quidam"  # the person in a subject's words; no other word of either language is like it
_PERSON_NAME = PERSON.capitalize()
_MOST_WORDS = 4  # of a subject
_MOST_LEADING = 10  # words before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose it is, "" for nobody's, and the concepts of its own words; none where nobody can tell."""

    owner: str
    words: frozenset[str]

    def may_be(self, other: "Subject") -> bool:
        """Tell whether two may be one: of the same owner, and one has the words of the other."""
        if self.owner and other.owner and self.owner != other.owner:
            return False
        if not self.words or not other.words:
            return self.owner == other.owner
        if self.owner in other.words or other.owner in self.words:
            return False  # somebody, and what is theirs
        return self.words <= other.words or other.words <= self.words


@lru_cache(maxsize=8192)
def read_subject(sentence: str, *, person: str, language: str) -> Subject:
    """Read whom or what a sentence tells of; `person` is the one whose beliefs these are."""
    tokens: list[str] = _TOKEN.findall(put_name(sentence, person=person))
    start = _find_start(tokens, language)
    if start is None:
        return Subject(owner="", words=frozenset())
    owner = _owner_of_subject(tokens[start:], language)
    words = _until_verb(tokens[start + 1 :] if owner else tokens[start:], language)
    if not owner and words and words[0] == _PERSON_NAME:
        words = words[:1]  # what follows may be a verb that is not known
    return Subject(owner=owner.lower(), words=frozenset(_concept(word, language) for word in words))


_TOKEN = re.compile(r"[\w.&'’-]*\w['’]?(?=\W|$)|[,;:]")


def put_name(text: str, *, person: str) -> str:
    """Put one name that no other word is like for the person, who may be "the user", and for "Mara's"."""
    alias = r"(?:the |der |die )?(?:user|nutzer(?:in)?)"
    who = rf"(?:{re.escape(person)}|{alias})" if person else alias
    return re.sub(rf"(?<!\w){who}(?P<own>['’]s?|s(?= [A-ZÄÖÜ]))?(?!\w)", _as_named, text, flags=re.IGNORECASE)


def _as_named(found: re.Match[str]) -> str:
    return f"{_PERSON_NAME}'s" if found["own"] else _PERSON_NAME


def _find_start(tokens: Sequence[str], language: str) -> int | None:
    """Return where the subject begins, behind a time or place; None where that is not plain."""
    if not tokens:
        return None
    if tokens[0].lower() not in _LEADING:
        return 0
    starts = (at for at, token in enumerate(tokens[:_MOST_LEADING]) if at and token.startswith(_PERSON_NAME))
    named = next(starts, None)
    if named is not None or language == "de":
        return named
    return next((at for at, token in enumerate(tokens) if at > 1 and token.lower() in ("the", "our", "my")), None)


_LEADING = frozenset((*word_list("leading_words"), *word_list("before_a_subject")))


def _owner_of_subject(tokens: Sequence[str], language: str) -> str:
    """Return whose the subject is, "" for nobody's."""
    first, following = tokens[0], "".join(tokens[1:2])
    if first[:1].isupper() and (bare := re.sub(r"['’]s?$", "", first)) != first:
        return bare
    is_genitive = language == "de" and first[:1].isupper() and first.endswith("s") and following[:1].isupper()
    return first[:-1] if is_genitive else ""


def _until_verb(tokens: Sequence[str], language: str) -> list[str]:
    words: list[str] = []
    for token in tokens:
        lower = token.lower()
        if lower in _AFTER or len(words) == _MOST_WORDS or _is_verb(token, words, language):
            break
        if lower not in _DETERMINERS:
            words.append(token)
    return words


_AFTER = frozenset((*word_list("after_a_subject"), *",;:"))
_DETERMINERS = frozenset(word_list("determiners"))
_GERMAN_VERBS = frozenset((*word_list("german_state_verbs"), "ist", "sind", "war", "hat", "haben", "wird"))


def _is_verb(token: str, before: Sequence[str], language: str) -> bool:
    """Tell whether a word ends the subject as its verb: one that is known, or stands where only a verb can."""
    lower = token.lower()
    if lower in ENGLISH_AUXILIARIES or lower in _GERMAN_VERBS or lower.endswith(("n't", "n’t")):
        return True
    if not before or token[:1].isupper():
        return False
    if language == "de" or lower in ENGLISH_PAST:
        return True
    lexicon = load_lexicon(language)
    is_known = lower.endswith(("s", "ed")) and lexicon.look_up(lower).concept in lexicon.verbs
    is_after_name = len(before) == 1 and before[0][:1].isupper() and lower.endswith("s") and not lower.endswith("ss")
    return is_known or is_after_name


def _concept(word: str, language: str) -> str:
    lower = word.lower().strip("'’")
    return PERSON if word == _PERSON_NAME else load_lexicon(language).look_up(lower).concept or lower
