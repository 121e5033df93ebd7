"""What a claim says about a belief, by slots, values and words alone; unsure means nothing (E3)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from memory.domain.lexicon import ENGLISH_STOPS
from memory.domain.matching.stems import stem_english, stem_german
from memory.domain.sentences import list_words
from memory.domain.verdicts import Verdict
from memory.language.cues import common_words, dull_words, word_list
from memory.language.modes import denies, find_change
from memory.language.slots import MEMBER, Slot, fill_slots, is_ended, slots_by_name, without_ended
from memory.language.values import WEEKDAYS, Values, find_values

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence as the rules compare it: content stems, slots and values, contexts, what it denies or ends."""

    sentence: str
    language: str
    stems: frozenset[str]
    subject: str
    is_of_person: bool  # the one whose claims these are, and not of what is theirs
    owned: frozenset[str]  # stems of the subject where it is a group or place of theirs ("Ida's team")
    slots: dict[str, frozenset[str]]
    values: Values
    contexts: frozenset[str]
    is_denial: bool  # of what its main clause says
    denies: bool  # anything at all
    is_change: bool
    ended: tuple[str, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A verdict with its reason; `ends` where the claim announces that what the belief says holds no longer."""

    verdict: Verdict
    reason: str
    ends: bool = False


NOTHING = Relation(verdict=Verdict.IRRELEVANT, reason="")


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
        owned=_owned(subject, person, language),
        slots=slots,
        values=values,
        contexts=frozenset(name for name, pattern in _CONTEXTS if pattern.search(sentence)),
        is_denial=denies(_head(sentence)),
        denies=denies(sentence),
        is_change=change is not None,
        ended=ended,
        names=frozenset(_names_in(sentence, person)) if language != "de" else frozenset(),
    )


def _owned(subject: str, person: str, language: str) -> frozenset[str]:
    owner, _, what = subject.lower().partition(" ")
    is_owned = bool(person) and owner.startswith(person.lower()) and not _GROUPS.isdisjoint(what.split())
    return content_stems(subject, language=language) if is_owned else frozenset()


_GROUPS = frozenset(word_list("groups"))


def _as_spoken(sentence: str, person: str) -> str:
    spoken = re.sub(rf"\b{re.escape(person)}(?:'s|’s|'|s)?(?= )", "I", sentence)
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
    for word in list_words(_MAIL.sub("email", text)):
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


def relate(*, claim: Reading, belief: Reading, is_explicit: bool, is_sure: bool = False) -> Relation:
    """Say what a claim says about a belief of the same person; `is_explicit` where it plainly states what lasts.

    `is_sure`: only what needs no judgement, where a model is asked about the rest.
    """
    if ended := _ends(claim, belief):
        return Relation(verdict=Verdict.CONTRADICTS, reason=f"It says that {ended} has ended.", ends=True)
    if claim.contexts and belief.contexts and not claim.contexts & belief.contexts:
        return NOTHING
    if (label := _label(claim.sentence)) and label == _label(belief.sentence):
        return Relation(verdict=Verdict.SUPPORTS, reason="It stands under the same heading.")
    if _end_the_same(claim, belief):
        return Relation(verdict=Verdict.SUPPORTS, reason="It says that the same has ended.")
    by_slot = _by_slot(claim, belief, is_explicit)
    by_words = by_slot or _by_words(claim, belief, is_explicit)
    return NOTHING if is_sure and not _say_nearly_the_same(claim, belief) else by_words


_MOST_OF_BOTH = 0.75  # share of all their content words


def _say_nearly_the_same(claim: Reading, belief: Reading) -> bool:
    shared = claim.stems & belief.stems
    return len(shared) >= _MOST_OF_BOTH * len(claim.stems | belief.stems)


def _label(sentence: str) -> str:
    """Return the heading before a colon with which a standing wish begins ("Staging: …"), "" for none."""
    head, colon, _ = sentence.partition(": ")
    return head.lower() if colon and len(head.split()) <= 3 else ""


def _end_the_same(claim: Reading, belief: Reading) -> bool:
    """Tell whether both say that one thing has ended; of a weekday they must share another word as well."""
    same = {one.lower() for one in claim.ended} & {one.lower() for one in belief.ended}
    return bool(same.difference(WEEKDAYS) or (same and (claim.stems & belief.stems) - same))


def _ends(claim: Reading, belief: Reading) -> str:
    """Name what the claim ends and the belief rests on; "" where it ends nothing of it."""
    for thing in claim.ended:
        if not is_ended(thing.lower(), belief.ended) and (
            _ends_value(thing, claim, belief) or _ends_word(thing, belief)
        ):
            return thing
    return ""


def _ends_value(thing: str, claim: Reading, belief: Reading) -> bool:
    return any(
        slots_by_name()[name].is_single
        and (name in claim.slots or thing not in WEEKDAYS)
        and any(is_ended(value, [thing]) for value in values)
        and not values & claim.slots.get(name, frozenset())
        for name, values in belief.slots.items()
    )


def _ends_word(thing: str, belief: Reading) -> bool:
    """Tell whether all words of what ended stand in the belief, which must be more than one that everybody says."""
    heads = [word.lower().removesuffix("'s") for word in list_words(thing)]
    stems = {stem_english(word.lower().removesuffix("'s")) for word in list_words(belief.sentence)}
    is_telling = len(heads) > 1 or (heads and heads[0] not in common_words().union(WEEKDAYS))
    return bool(is_telling) and all(stem_english(word) in stems for word in heads)


def _by_slot(claim: Reading, belief: Reading, is_explicit: bool) -> Relation | None:
    for name in claim.slots.keys() & belief.slots.keys():
        slot, mine, theirs = slots_by_name()[name], claim.slots[name], belief.slots[name]
        if not _is_about_same(slot, claim, belief) or (slot.value != "person" and _are_of_two(claim, belief)):
            continue
        if slot.contrary and _wants(slot, claim) & _wants(slot, belief):
            return Relation(verdict=Verdict.SUPPORTS, reason=f"It wants the same {name.replace('_', ' ')}.")
        if mine & theirs or (slot.value in ("name", "person") and _share_name(mine, theirs)):
            if (
                slot.value == MEMBER
                and not slot.ignores_denial
                and not _is_of_slot(slot, belief)
                and not _share_more(slot, mine, claim, belief)
            ):
                continue  # the value is named by the way
            if _denies_it(claim) == _denies_it(belief) or slot.value not in (MEMBER, "weekday") or slot.ignores_denial:
                return Relation(verdict=Verdict.SUPPORTS, reason=f"It names the same {name.replace('_', ' ')}.")
            if claim.is_change:
                return Relation(
                    verdict=Verdict.CONTRADICTS, reason=f"It denies the {name.replace('_', ' ')}.", ends=True
                )
            continue
        if slot.is_single and not claim.is_denial and (claim.is_change or is_explicit):
            return Relation(
                verdict=Verdict.CONTRADICTS, reason=f"It names another {name.replace('_', ' ')}.", ends=claim.is_change
            )
    return None


def _wants(slot: Slot, reading: Reading) -> set[tuple[str, bool]]:
    """Return the values of a slot, each with whether it is wanted; a contrary as the denial of the other."""
    found = reading.slots.get(slot.name, frozenset())
    return {(slot.contrary.get(value, value), reading.denies == (value in slot.contrary)) for value in found}


def _are_of_two(claim: Reading, belief: Reading) -> bool:
    """Tell whether one is of somebody close to the person, and the other of the person, or of somebody else close."""
    mine, theirs = _relatives_in(claim.subject), _relatives_in(belief.subject)
    return bool(
        (mine and theirs and not mine & theirs) or (claim.is_of_person and theirs) or (belief.is_of_person and mine)
    )


def _relatives_in(subject: str) -> frozenset[str]:
    return frozenset(subject.lower().split()) & _RELATIVES


_RELATIVES = frozenset(word_list("relatives"))
_MOST_BESIDE = 3  # content words of a sentence that is about a value, beside the value itself


def _is_of_slot(slot: Slot, belief: Reading) -> bool:
    """Tell whether a sentence says what the slot's value is, and not something else in which the value is named."""
    return len(belief.stems) <= _MOST_BESIDE or slot.named.search(belief.sentence) is not None


def _share_more(slot: Slot, values: Collection[str], claim: Reading, belief: Reading) -> bool:
    named = content_stems(" ".join(key for key, value in slot.members.items() if value in values), language="en")
    return bool((claim.stems & belief.stems) - named)


def _denies_it(reading: Reading) -> bool:
    """Tell whether a sentence denies what its slots hold: what it says has ended is not in them any more."""
    return reading.denies and not reading.ended


def _is_about_same(slot: Slot, claim: Reading, belief: Reading) -> bool:
    """Tell whether two fillings of a slot are of one thing: a price of two things is two slots."""
    if slot.name in ("release_day", "opening", "closing", "home_office") or slot.value in (
        MEMBER,
        "name",
        "person",
        "unit",
    ):
        return True
    if (
        slot.name == "meeting"
        and claim.is_change
        and (_GATHERING.search(claim.sentence) or _GATHERING.search(belief.sentence))
    ):
        return True
    return bool(_told_of_both(claim, belief) - content_stems(slot.bare, language=claim.language))


def _told_of_both(claim: Reading, belief: Reading) -> frozenset[str]:
    """Return the stems that both hold, but for those of a group of the person's, of which many things are said."""
    return (claim.stems & belief.stems) - (claim.owned & belief.owned)


_GATHERING = re.compile(
    r"^(?:the |our )?(?:practice|rehearsals?|meetings?|training|class|lessons?|probe|treffen|training)\b", re.IGNORECASE
)


def _share_name(mine: Collection[str], theirs: Collection[str]) -> bool:
    return any((set(one.split()) & set(other.split())) - _TITLES for one in mine for other in theirs)


_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "herr", "frau", "mr.", "mrs.", "ms.", "dr.", "prof."))


def _share_a_name(claim: Reading, belief: Reading) -> bool:
    """Tell whether both name the same person or thing of a name, beside the one whose claims these are."""
    return bool(claim.names & belief.names)


def _by_words(claim: Reading, belief: Reading, is_explicit: bool) -> Relation:
    shared = _told_of_both(claim, belief)
    if not shared:
        return NOTHING
    coverage = len(shared) / max(1, min(len(claim.stems), len(belief.stems)))
    here, there = claim.values.excluding(), belief.values.excluding()
    differ = [kind for kind in here if kind in there and not here[kind] & there[kind]]
    agree = [kind for kind in here if kind in there and here[kind] & there[kind]]
    if claim.is_change and differ and not agree and coverage >= 0.34:
        return Relation(verdict=Verdict.CONTRADICTS, reason=f"It names another {differ[0]} from now on.", ends=True)
    alike = _denies_what_is_shared(claim, shared) == _denies_what_is_shared(belief, shared)
    if agree and not differ and coverage >= 0.34 and alike:
        return Relation(verdict=Verdict.SUPPORTS, reason=f"It names the same {agree[0]} of it.")
    if len(shared) >= 2 and (coverage >= 0.6 or _share_a_name(claim, belief)):
        if differ and not agree:
            return (
                Relation(verdict=Verdict.CONTRADICTS, reason=f"It names another {differ[0]}.")
                if is_explicit
                else NOTHING
            )
        if not alike:
            return NOTHING
        return Relation(verdict=Verdict.SUPPORTS, reason="It says the same in most of its words.")
    if (
        claim.subject
        and claim.subject == belief.subject
        and claim.subject[:1].isalpha()
        and shared - content_stems(claim.subject, language=claim.language)
        and not differ
        and claim.is_denial == belief.is_denial
    ):
        return Relation(verdict=Verdict.SUPPORTS, reason="It says it of the same person or thing.")
    return NOTHING


def _denies_what_is_shared(reading: Reading, shared: frozenset[str]) -> bool:
    """Tell whether a sentence denies in the clauses that hold the shared words, those that name somebody aside."""
    told = shared - reading.names or shared
    clauses = [
        clause for clause in _CLAUSES.split(reading.sentence) if told & content_stems(clause, language=reading.language)
    ]
    return any(map(denies, clauses))


_CLAUSES = re.compile(r"[,;:]| but | aber | and not | und nicht ")
