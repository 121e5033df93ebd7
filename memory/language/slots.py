"""The shipped list of slots: what of a person or thing a sentence fills, and with which value (E3)."""

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_SHORT = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
    "sonnabend": 5,
}
_DAY_OF = {name: _DAYS[place % 7] for place, name in enumerate([*_DAYS, *_TAGE])} | {
    k: _DAYS[v] for k, v in _SHORT.items()
}
_WEEKDAY = re.compile(
    rf"\b(?P<day>{'|'.join(sorted(_DAY_OF, key=len, reverse=True))})(?:'?s)?(?:abends?|morgens?|mittags?|vormittags?)?\b",
    re.I,
)
_HOURS = {w: n for n, w in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())}
_STUNDEN = {
    w: n for n, w in enumerate("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split())
} | {"ein": 1}
_HOUR = rf"(?:[01]?\d|2[0-4]|{'|'.join([*_HOURS, *_STUNDEN])})"
_TIME = re.compile(
    rf"\b(?:(?:at|from|until|till|by|after|before|since|um|ab|bis|open|opens) (?:about |half past |halb )?)?(?P<hour>{_HOUR})"
    r"(?:(?P<minute>[:.]\d\d))? ?(?P<part>am|pm|a\.m\.|p\.m\.|o'clock|uhr)\b|"
    rf"\b(?:at|from|until|till|by|um|ab|bis|opens?|seit) (?P<bare>{_HOUR})(?::(?P<bareminute>\d\d))?\b(?! ?(?:%|kg|g|km|m|people|sacks|days|"
    r"weeks|months|years|euro|€|april|may|june|july|august|september|october|november|december|january|february|march|to\b))|"
    r"\b(?P<clock>[01]?\d|2[0-3]):(?P<clockminute>[0-5]\d)\b(?![:\d])",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"(?:[£€$]\s?(?P<before>\d[\d.,]*)|(?P<after>\d[\d.,]*)\s?(?:£|€|\$|euros?|eur|pounds?|quid|dollars?|usd|gbp|chf|franken|cents?)\b)",
    re.I,
)
_VERSION = re.compile(r"(?<![\d.,£€$:])\bv?(?P<version>\d+\.\d+(?:\.\d+)?)\b(?!\s?(?:%|kg|g|km|€|£|euro))", re.I)
_NUMBER = re.compile(r"(?<![\w.,:£€$-])\d{1,3}(?:[.,]\d{3})+(?!\d)|(?<![\w.,:£€$-])\d+(?:[.,]\d+)?(?![\w:]|[.,]\d)")
_FREQUENCY = re.compile(
    r"\b(?P<often>(?:every|each|once a|twice a|jede[nrs]?|alle|einmal die|zweimal die|\w+ times a) (?:\w+ )?(?:day|week|month|year|fortnight|tag|tage|"
    r"woche|wochen|monat|monate|jahr)|daily|weekly|monthly|fortnightly|yearly|täglich|wöchentlich|monatlich|jährlich|zweiwöchentlich)\b",
    re.IGNORECASE,
)
_SAME_FREQUENCY = {"wöchentlich": "weekly", "jede woche": "weekly", "every week": "weekly", "once a week": "weekly", "each week": "weekly",
                   "alle zwei wochen": "fortnightly", "every two weeks": "fortnightly", "every fortnight": "fortnightly", "zweiwöchentlich": "fortnightly",
                   "täglich": "daily", "every day": "daily", "each day": "daily", "jeden tag": "daily", "monatlich": "monthly",
                   "every month": "monthly", "jeden monat": "monthly", "once a month": "monthly", "alle 14 tage": "fortnightly"}  # fmt: skip
_MONTHS = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
)
_MONTH_OF = {name: place + 1 for line in _MONTHS for place, name in enumerate(line.split())}
_DATE = re.compile(
    rf"\b(?:(?P<dom>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?)?(?P<month>{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})\b(?: (?P<dom2>\d{{1,2}})(?:st|nd|rd|th)?\b(?! ?:))?(?: (?P<year>20\d\d))?",
    re.I,
)
_UNIT = re.compile(
    r"\b(?:on|in|at|to|auf|in|zur|im) (?:the |der |die )?(?P<unit>[\w-]+) (?:ward|unit|department|team|station|abteilung)\b|"
    r"\b(?P<numbered>(?:ward|station) \d+)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?<![.!?] )(?<!^)\b[A-ZÄÖÜ][\w'’-]*[a-zäöü][\w'’-]*(?: (?:of |de |von )?[A-ZÄÖÜ][\w-]+)*|\b[A-Z]{2,}\d*\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One entry of the list: what names it, its members by spelling, and how many values it holds at a time."""

    name: str
    named: re.Pattern[str]
    members: Mapping[str, str]
    member: re.Pattern[str] | None
    value: str
    is_single: bool
    is_lasting: bool
    ignores_denial: bool  # its members say themselves what is wanted, and what not


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values that stand in a sentence, by kind, each in one spelling."""

    weekday: frozenset[str] = frozenset()
    time: frozenset[str] = frozenset()
    money: frozenset[str] = frozenset()
    number: frozenset[str] = frozenset()
    version: frozenset[str] = frozenset()
    frequency: frozenset[str] = frozenset()
    date: frozenset[str] = frozenset()
    name: frozenset[str] = frozenset()
    person: frozenset[str] = frozenset()
    unit: frozenset[str] = frozenset()
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, kind: str) -> frozenset[str]:
        """Return the values of one kind; members are asked for by their slot."""
        found: frozenset[str] = getattr(self, kind, frozenset())
        return found

    def excluding(self) -> dict[str, frozenset[str]]:
        """Return the values that another of their kind would exclude: days, times, prices, by kind."""
        kinds = ("weekday", "time", "money", "version", "frequency", "date")
        return {kind: found for kind in kinds if (found := self.of(kind))}


@lru_cache(maxsize=1)
def list_slots() -> tuple[Slot, ...]:
    """Read the shipped list."""
    with (Path(__file__).parent / "slots.toml").open("rb") as file:
        table = tomllib.load(file)
    return tuple(_slot(name, entry) for name, entry in table.items())


def _slot(name: str, entry: Mapping[str, object]) -> Slot:
    spellings = {
        spelling: group.split("|")[0]
        for group in entry.get("members", ())
        for spelling in group.split("|")  # type: ignore[attr-defined]
    }
    return Slot(
        name=name,
        named=_any_of(entry["words"]),  # type: ignore[arg-type]
        members=spellings,
        member=_any_of(spellings) if spellings else None,
        value=str(entry["value"]),
        is_single=bool(entry.get("single")),
        is_lasting=bool(entry.get("lasting")),
        ignores_denial=bool(entry.get("ignores_denial")),
    )


def _any_of(spellings: "list[str] | Mapping[str, str]") -> re.Pattern[str]:
    joined = "|".join(re.escape(one) for one in sorted(spellings, key=len, reverse=True))
    return re.compile(rf"(?<![\w.])(?:{joined})(?![\w+#]|\.\w)", re.IGNORECASE)


def find_values(text: str) -> Values:
    """Read the values in a sentence."""
    members = {
        slot.name: frozenset(slot.members[found.group().lower()] for found in slot.member.finditer(text))
        for slot in list_slots()
        if slot.member is not None and slot.member.search(text)
    }
    return Values(
        weekday=frozenset(_DAY_OF[found["day"].lower()] for found in _WEEKDAY.finditer(text)),
        time=frozenset(_hours(text)),
        money=frozenset(
            _amount(found["before"] or found["after"] or found["priced"] or found["rate"])
            for found in _MONEY.finditer(text)
        ),
        number=frozenset(_amount(found.group()) for found in _NUMBER.finditer(text)),
        version=frozenset(found["version"] for found in _VERSION.finditer(text)),
        frequency=frozenset(_often(found["often"]) for found in _FREQUENCY.finditer(text)),
        date=frozenset(_date(found) for found in _DATE.finditer(text)),
        name=frozenset(
            found.group().lower()
            for found in _NAME.finditer(text)
            if found.group().lower() not in _DAY_OF and found.group().lower() not in _MONTH_OF
        ),
        person=frozenset(_people(text)),
        unit=frozenset((found["unit"] or found["numbered"]).lower() for found in _UNIT.finditer(text)),
        members=members,
    )


def _people(text: str) -> list[str]:
    """List the names in a sentence, that at its head included; days and months are none."""
    found = [one.group() for one in _PERSON.finditer(text)]
    plain = [re.sub(r"(?:'s|’s|'|’)$", "", name) for name in found]
    return [name.lower() for name in plain if name.lower() not in _DAY_OF and name.lower() not in _MONTH_OF]


_PERSON = re.compile(
    r"\b(?:(?:Frau|Herr|Prof\.|Dr\.?) )?[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ]\w+)?(?: [A-ZÄÖÜ][a-zäöüß]+)*(?:'s|’s|'|’)?"
)


def _hours(text: str) -> list[str]:
    found = []
    for one in _TIME.finditer(text):
        hour = (one["hour"] or one["bare"] or one["clock"]).lower()
        number = _HOURS.get(hour, _STUNDEN.get(hour))
        number = int(hour) if number is None else number
        minute = (one["minute"] or one["bareminute"] or one["clockminute"] or "00").strip(":.")
        if one["part"] and one["part"].lower().startswith("p") and number < 12:
            number += 12
        found.append(f"{number % 24}:{minute}")
    return found


def _amount(written: str) -> str:
    plain = written.rstrip(".,")
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", plain):
        return re.sub(r"[.,]", "", plain)
    plain = plain.replace(",", ".")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _often(written: str) -> str:
    plain = " ".join(written.lower().split())
    return _SAME_FREQUENCY.get(plain, plain)


def _date(found: re.Match[str]) -> str:
    day = found["dom"] or found["dom2"] or ""
    return "-".join(filter(None, [found["year"], str(_MONTH_OF[found["month"].lower()]), day]))


def without_ended(slots: Mapping[str, frozenset[str]], ended: Collection[str]) -> dict[str, frozenset[str]]:
    """Return what slots hold beside the values that are said to have ended."""
    kept = {name: frozenset(v for v in found if not is_ended(v, ended)) for name, found in slots.items()}
    return {name: found for name, found in kept.items() if found}


def is_ended(value: str, ended: Collection[str]) -> bool:
    """Tell whether a value is, or is part of, something that is said to have ended."""
    return any(_holds(thing.lower(), value) or (len(thing) > 2 and _holds(value, thing.lower())) for thing in ended)


def _holds(text: str, part: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def fill_slots(text: str, values: Values) -> dict[str, frozenset[str]]:
    """Return the slots that a sentence fills, with their values: by a member's own name, or a slot's word and a value."""
    filled: dict[str, frozenset[str]] = {}
    for slot in list_slots():
        if slot.name in values.members:
            filled[slot.name] = values.members[slot.name]
        elif slot.value != "member" and slot.named.search(text) and (found := values.of(slot.value)):
            filled[slot.name] = found
    return filled
