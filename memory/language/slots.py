"""The shipped list of slots (slots.toml): what of a person or thing a sentence fills, and with which values (E3)."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from memory.language.values import Values, find_values

MEMBER = "member"  # a slot's value that is one of its own list
MONEY = "money"  # names its slot by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Spellings:
    """Words and phrases that a text may hold as such, in any case; few texts have even the first word of one."""

    pattern: re.Pattern[str]
    first_words: frozenset[str] | None  # None where one begins with a sign

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first in a text."""
        return self.pattern.search(text) if self._may_be_in(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return all in a text."""
        return self.pattern.finditer(text) if self._may_be_in(text) else iter(())

    def _may_be_in(self, text: str) -> bool:
        return self.first_words is None or not self.first_words.isdisjoint(_words_of(text))


@lru_cache(maxsize=16)  # dozens of slots are looked for in a text, one after the other
def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One entry of the list: what names it, its members by spelling, and how many values it holds at a time."""

    name: str
    named: Spellings
    members: Mapping[str, str]
    member: Spellings | None
    value: str  # the kind of value that stands beside its words
    is_single: bool
    bare: str  # words that name no thing: two sentences that share nothing else fill the slot for two things
    needs_word: bool  # a member says nothing without one of the slot's words
    ignores_denial: bool  # its members say themselves what is wanted, and what not
    contrary: Mapping[str, str]  # a value by that whose denial it is: paragraphs, where no bullets are wanted
    asked: Spellings | None  # words of a question about it that no answer needs to have
    is_of_person: bool  # each person has their own
    common: frozenset[str]  # members that are common words, too: they count beside a word of the slot, or as a name


@cache
def slots_by_name() -> Mapping[str, Slot]:
    """Read the shipped list, by name."""
    with (Path(__file__).parent / "slots.toml").open("rb") as file:
        return {name: _slot(name, entry) for name, entry in tomllib.load(file).items()}


def _slot(name: str, entry: Mapping[str, Any]) -> Slot:
    groups = [group.split("|") for group in entry.get("members", ())]
    spellings = {spelling: group[0] for group in groups for spelling in group}
    return Slot(
        name=name,
        named=_any_of(entry["words"]),
        members=spellings,
        member=_any_of(spellings) if spellings else None,
        value=entry["value"],
        is_single=bool(entry.get("single")),
        bare=" ".join(entry.get("bare", ())),
        needs_word=bool(entry.get("needs_word")),
        ignores_denial=bool(entry.get("ignores_denial")),
        contrary=dict(entry.get("contrary", {})),
        asked=_any_of(entry["asked"]) if "asked" in entry else None,
        is_of_person=bool(entry.get("of_person")),
        common=frozenset(entry.get("common", ())),
    )


def _any_of(spellings: Collection[str]) -> Spellings:
    joined = "|".join(re.escape(one) for one in sorted(spellings, key=len, reverse=True))
    firsts = [_WORD.match(spelling.lower()) for spelling in spellings]
    return Spellings(
        pattern=re.compile(rf"(?<![\w.])(?:{joined})(?![\w+#]|\.\w)", re.IGNORECASE),
        first_words=frozenset(first.group() for first in firsts if first) if all(firsts) else None,
    )


def fill_slots(text: str, values: Values) -> dict[str, frozenset[str]]:
    """Return the slots that a sentence fills: by a member's own name, or by a slot's word and a value beside it."""
    filled = {}
    for slot in slots_by_name().values():
        if slot.member is not None and (named := _members(slot, text)):
            filled[slot.name] = named
        elif (
            slot.value != MEMBER
            and (found := values.of(slot.value))
            and (slot.value == MONEY or slot.named.search(text))
        ):
            filled[slot.name] = found
    return filled


def slots_asked(question: str) -> frozenset[str]:
    """Return the slots that a question is about: by their own words, by words of asking, or by a member."""
    filled = fill_slots(question, find_values(question))
    named = (
        slot.name
        for slot in slots_by_name().values()
        if slot.named.search(question) or (slot.asked and slot.asked.search(question))
    )
    return frozenset(filled) | frozenset(named)


def _members(slot: Slot, text: str) -> frozenset[str]:
    if slot.member is None or (slot.needs_word and not slot.named.search(text)):
        return frozenset()
    is_named = slot.named.search(text) is not None
    found = (one for one in slot.member.finditer(text) if is_named or not _is_common(slot, one))
    named = (slot.members.get(one.group().lower()) for one in found)  # none for a letter that only looks like one
    return frozenset(name for name in named if name)


def _is_common(slot: Slot, found: re.Match[str]) -> bool:
    """Tell whether a member stands there as the common word that it is as well, not written as a name."""
    return found.group().lower() in slot.common and not (found.group()[0].isupper() and found.start() > 0)


def without_ended(slots: Mapping[str, frozenset[str]], ended: Collection[str]) -> dict[str, frozenset[str]]:
    """Return what slots hold beside the values that are said to have ended."""
    kept = {name: frozenset(v for v in found if not is_ended(v, ended)) for name, found in slots.items()}
    return {name: found for name, found in kept.items() if found}


def is_ended(value: str, ended: Collection[str]) -> bool:
    """Tell whether a value is, or is part of, something that is said to have ended."""
    return any(
        holds_word(thing.lower(), value) or (len(thing) > 2 and holds_word(value, thing.lower())) for thing in ended
    )


def holds_word(text: str, part: str) -> bool:
    """Tell whether a word, or some in a row, stands in a text as such."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None
