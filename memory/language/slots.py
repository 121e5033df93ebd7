"""What a sentence says that there is one of at a time: slots and attributes, from the shipped tables.

Slots (slots.toml, E3) are what of a person or thing a sentence fills, and with which values; attributes
(attributes.toml, R11) what a sentence states of somebody, and what that rules out.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from memory.language.clauses import denies
from memory.language.quantities import NUMBER_OF, Values, find_values

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Values by attribute, what kinds of things are named as had, eaten or drunk, and what kinds are ruled out."""

    values: Mapping[str, frozenset[str]]
    had: frozenset[str]  # kinds and things
    ruled_out: frozenset[str]


@lru_cache(maxsize=8192)
def read_attributes(sentence: str) -> Attributes:
    """Read what the clauses of a sentence state that deny nothing."""
    clauses = [clause for clause in _CLAUSES.split(sentence) if clause and not denies(clause)]
    found: dict[str, set[str]] = {}
    for name, value in (pair for clause in clauses for pair in _read_clause(clause)):
        found.setdefault(name, set()).add(value)
    return Attributes(
        values={name: frozenset(values) for name, values in found.items()},
        had=frozenset(thing for clause in clauses for thing in _had(clause)),
        ruled_out=frozenset(thing for clause in clauses for thing in _ruled_out(clause)),
    )


def _had(clause: str) -> frozenset[str]:
    """Return what a clause says that somebody has, eats, drinks or likes; who likes dogs has none yet."""
    if not _HAS.search(clause):
        return frozenset()
    return things_in(clause) if _OWNS.search(clause) else things_in(clause) - OF_PEOPLE


OF_PEOPLE = frozenset(("child", "sibling", "pet", "spouse"))  # kinds of whom or what somebody has


def _ruled_out(clause: str) -> Iterator[str]:
    """Yield the kinds that what somebody is rules out, and what they are allergic to."""
    for state, kinds in _rules_out():
        if state.search(clause):
            yield from kinds
    for found in _ALLERGIC.finditer(clause):
        for word in _HYPHENATED_WORD.findall((found["to"] or found["gegen"] or found["of"]).lower()):
            yield _singular(word)
            if is_kind(word) or is_kind(f"{word}s"):
                yield from kinds_in(word)


def kinds_in(text: str) -> frozenset[str]:
    """Return what the things that a text names are kinds of ("steak": meat)."""
    return frozenset(kind for word in _HYPHENATED_WORD.findall(text.lower()) for kind in _kinds().get(word, ()))


def things_in(text: str) -> frozenset[str]:
    """Return the words of a text in the singular, as far as that is plain, and the kinds of what it names."""
    return kinds_in(text) | {_singular(word) for word in _HYPHENATED_WORD.findall(text.lower())}


def _singular(word: str) -> str:
    return re.sub(r"(?<=\w{3})(?:en|n|s)$", "", word)


def is_kind(word: str) -> bool:
    """Tell whether a word is the name of a kind of things."""
    return word in _table()["kinds"]


@cache
def countries() -> frozenset[str]:
    """Return the countries in which other places lie: to live in one and in the other is no contradiction."""
    return frozenset(_table()["places"]["countries"].split("|"))


_HYPHENATED_WORD = re.compile(r"[\w-]+")
_CLAUSES = re.compile(r"[;:]|, (?:but|and|aber|und) | but | aber ")

_ADVERBS = (
    r"(?:(?:now|still|currently|also|very|quite|rather|really|extremely|fairly|a bit|so|too|"
    r"happily|recently|newly|officially|already|only|just|about|nearly|"
    r"jetzt|noch|immer|inzwischen|mittlerweile|sehr|ziemlich|eher|recht|total|seit kurzem|schon|erst|auch) )*"
)
_IS = rf"\b(?:is|are|was|has been|became|got|turned|ist|sind|war|wurde|wird) {_ADVERBS}"
_ENDS = r"(?=$|[.,;!]| (?:and|with|but|since|now|for|to|because|und|mit|seit|aber|weil|on|in|at|who|these)\b)"

_HAS = re.compile(
    r"\b(?:has|have|had|owns?|keeps?|got|eats?|ate|drinks?|drank|loves?|likes?|enjoys?|orders?|smokes?|adores?|"
    r"hat|haben|besitzt|hält|isst|trinkt|mag|liebt|bestellt|raucht|favourite|favorite|lieblings\w+|[\w]+['’]s?|gern)\b",
    re.IGNORECASE,
)
_OWNS = re.compile(r"\b(?:has|have|had|owns?|keeps?|got|hat|haben|besitzt|hält|\w+['’]s?)(?!\w)", re.IGNORECASE)

_ALLERGIC = re.compile(
    r"\b(?:allergic|intolerant) to (?:all |any )?(?P<to>[\w-]+(?:(?: and| or|,) [\w-]+)*)|"
    r"\ballergisch (?:gegen|auf) (?P<gegen>[\w-]+)|\b(?P<of>[\w]+)[ -](?:allergy|allergie|intolerance)\b",
    re.IGNORECASE,
)

_NO_LIVING = (
    r"(?!(?:\w+ )*?(?:retired|former|ex-\w+|trainee|aspiring|would-be|good|great|keen|avid|amateur|hobby|decent|"
    r"excellent|brilliant|passionate|terrible|bad|born|fast|slow|careful|ehemalige\w*|gute\w*|begeisterte\w*) )"
)
_TRADES = "ologist|ician|grapher|keeper|fighter|worker|driver"

_AGE = re.compile(
    rf"\b(?:is|was|turned|turns|ist|wird|wurde|aged) {_ADVERBS}(?P<age>\d{{1,3}}|[a-zäöüß]+(?:-[a-z]+)?)"
    rf"(?:[ -](?:years?[ -]old|jahre alt))?{_ENDS}",
    re.IGNORECASE,
)

_FAVOURITE = re.compile(
    r"\b(?:favou?rite (?P<thing>[\w-]+(?: [\w-]+)?) is|lieblings(?P<ding>\w+) (?:ist|sind|heißt)) "
    r"(?:the |an? |der |die |das |eine? )?(?P<value>[\w' -]+)",
    re.IGNORECASE,
)

_OWNED = re.compile(
    r"['’]s? [a-z][\w-]*(?: [a-z][\w-]*)? is (?:now )?(?P<article>an? |the )?"
    r"(?P<value>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
)
_OF_A_COUNTRY = re.compile(r"(?:ish|ese|ian|ean|can|man)$|^(?:French|Dutch|Greek|Czech|Swiss|Thai|Welsh)$")

_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80,
    "neunzig": 90,
}  # fmt: skip
_TEENS = {"seventeen": 17, "nineteen": 19, "dreizehn": 13, "vierzehn": 14, "fünfzehn": 15, "sechzehn": 16}
_TEENS |= {"siebzehn": 17, "achtzehn": 18, "neunzehn": 19}


def number_of(written: str) -> int | None:
    """Return a whole number below a hundred in figures or words ("forty-one", "einundvierzig"), None for no number."""
    word = written.lower()
    if word.isdecimal():
        return int(word)
    known = NUMBER_OF | _TENS | _TEENS
    if word in known:
        return int(known[word])
    tens, _, ones = word.partition("-")
    if german := re.fullmatch(r"(?P<ones>[a-zäöü]+?)und(?P<tens>[a-zäöüß]+)", word):
        tens, ones = german["tens"], german["ones"]
    return int(_TENS[tens] + known[ones]) if tens in _TENS and known.get(ones, 10) < 10 else None


def _read_clause(clause: str) -> Iterator[tuple[str, str]]:
    if (aged := _AGE.search(clause)) and (age := number_of(aged["age"])) is not None:
        yield "age", str(age)
    if best := _FAVOURITE.search(clause):
        yield f"favourite {(best['thing'] or best['ding']).lower()}", best["value"].lower().strip()
    if (owned := _OWNED.search(clause)) and not _OF_A_COUNTRY.search(owned["value"]):
        yield ("make" if owned["article"] else "name"), owned["value"].lower()
    for name, pattern, values in _patterns():
        if found := pattern.search(clause):
            kind, said = next((kind, said) for kind, said in found.groupdict().items() if said)
            yield name, values.get(said.lower(), "") or _plain(kind, said)


def _plain(kind: str, said: str) -> str:
    """Return a value in one spelling: of a job its last word, of a German one without its ending for a woman."""
    last = said.lower().split()[-1] if kind in ("job", "profession") else said.lower()
    return last.removesuffix("in") if kind in ("job", "profession") else re.sub(r"['’]s?$", "", last)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], Mapping[str, str]], ...]:
    table = _table()
    states = (
        (name, re.compile(rf"{_IS}(?P<state>{_any(_spellings(groups))}){_ENDS}", re.IGNORECASE), _spellings(groups))
        for name, groups in table["states"].items()
    )
    frames = (
        (name, *_frame(frame)) for name, listed in table["frames"].items() for frame in listed
    )  # fmt: skip
    return (*states, *frames)


def _frame(frame: str) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Compile a frame with one place, and return it with the values that this place may hold, if they are listed."""
    table = _table()
    place = re.search(r"\{([a-z_]+)\}", frame)
    assert place is not None
    kind = place[1]
    values = _spellings(table["values"][kind]) if kind in table["values"] else {}
    held = {
        "name": r"(?-i:[A-ZÄÖÜ])[\w-]+(?: (?-i:[A-ZÄÖÜ])[\w-]+)?",
        "year": r"\d{4}",
        "job": r"(?:[\w-]+ ){0,3}?[\w-]+?(?=[.,;]|$| (?:in|at|for|with|on|and|by|near|from|bei|und|an|im|am|auf)\b)",
        "profession": rf"(?:{_any(professions())}(?:in)?|[a-z]{{3,}}(?:{_TRADES}))(?!\w)",
    }
    before = rf"{_NO_LIVING}(?:[\w-]+ ){{0,3}}?" if kind == "profession" else ""
    pattern = frame.replace(place[0], f"{before}(?P<{kind}>{held.get(kind) or _any(values)})")
    return re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE), values


@cache
def professions() -> frozenset[str]:
    """Return what people do for a living, in both languages."""
    table = _table()["professions"]
    return frozenset((table["en"] + table["de"]).split())


@cache
def _kinds() -> Mapping[str, tuple[str, ...]]:
    named: dict[str, list[str]] = {}
    for kind, words in _table()["kinds"].items():
        for word in words.split():
            named.setdefault(word, []).append(kind)
    return {word: tuple(kinds) for word, kinds in named.items()}


@cache
def _rules_out() -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    return tuple(
        (re.compile(rf"{_IS}(?:an? |eine? )?(?:{spellings}){_ENDS}", re.IGNORECASE), tuple(kinds.split()))
        for spellings, kinds in _table()["rules_out"].items()
    )


def _spellings(groups: Iterable[str]) -> Mapping[str, str]:
    return {one: group.split("|")[0] for group in groups for one in group.split("|")}


def _any(words: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + ")"


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    with (Path(__file__).parent / "attributes.toml").open("rb") as file:
        return tomllib.load(file)
