"""Read numbers, days, times, prices and names out of a text.

`read_quantities` reads tokens, for the guard; `find_values` reads a sentence by patterns, each value in one spelling,
for claims (E3).
"""

import math
import re
from calendar import month_name
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import NamedTuple

from memory.language.lexicon import Lexicon, Mark, Token, Unit
from memory.language.words import ENGLISH_STOPS, GERMAN_STOPS, common_words

CLOCK = "clock"
HALF_DAY = 720
NEAR = 1e-9  # relative difference below which two amounts are one
CURRENCIES = frozenset("$€£")
ARTICLES = frozenset({"a", "an", "ein", "eine", "einen", "einem", "einer", "eines"})
AM_PM = {"am": 0, "a.m": 0, "pm": HALF_DAY, "p.m": HALF_DAY}


class Quantity(NamedTuple):
    """An amount in its role: a dimension ("time"), the counted noun or the named thing before it ("python")."""

    role: str
    value: float | str
    vague: bool = False  # a time of day without am or pm


def read_quantities(tokens: Sequence[Token], *, lexicon: Lexicon) -> tuple[Quantity, ...]:
    """Return the quantities of a text in order."""
    found = []
    tens = 0.0
    for position, token in enumerate(tokens):
        value = _read_value(token, lexicon=lexicon)
        if _is_tens(value) and _read_unit(tokens, position + 1, lexicon=lexicon):
            tens = float(value or 0)  # twenty-four
        elif value is not None and not _is_pronoun(tokens, position):
            value, tens = (value + tens, 0.0) if isinstance(value, float) else (value, 0.0)
            found.append(_place(tokens, position, value=value, lexicon=lexicon))
        elif token.lower in ARTICLES and (unit := _read_unit_of(_at(tokens, position + 1), lexicon=lexicon)):
            found.append(Quantity(unit.dimension, unit.size))  # within a day
    return tuple(found)


def _read_value(token: Token, *, lexicon: Lexicon) -> float | str | None:
    text = token.surface
    if not text[0].isdigit():
        return lexicon.numbers.get(token.lower)
    if ":" in text or not text.replace(".", "").replace(",", "").isdecimal():
        return text  # a time of day, a host with its port, or digits that are no numeral: ², ①
    if "," in text and (lexicon.language == "de" or len(text.split(",")[-1]) != 3):
        text = text.replace(".", "").replace(",", ".")
    text = text.replace(",", "")
    if text.count(".") > 1:
        return text
    value = float(text)
    return value if math.isfinite(value) else text


def _read_unit_of(token: Token | None, *, lexicon: Lexicon) -> Unit | None:
    if token is None or token.entry.mark is not Mark.WORD or len(token.lower) <= 2:
        return None
    unit = lexicon.units.get(token.lower) or lexicon.units.get(lexicon.stem(token.lower))
    return unit if unit and not unit.dimension.startswith("money") else None


def _is_tens(value: float | str | None) -> bool:
    return isinstance(value, float) and 20 <= value < 100 and value % 10 == 0


def _read_unit(tokens: Sequence[Token], position: int, *, lexicon: Lexicon) -> bool:
    """Say whether a word from one to nine stands at a position."""
    following = _at(tokens, position)
    return following is not None and 1 <= lexicon.numbers.get(following.lower, 0) <= 9


def _is_pronoun(tokens: Sequence[Token], position: int) -> bool:
    following = _at(tokens, position + 1)
    return tokens[position].lower == "one" and (following is None or following.entry.mark is not Mark.WORD)


def _at(tokens: Sequence[Token], position: int) -> Token | None:
    return tokens[position] if 0 <= position < len(tokens) else None


def _place(tokens: Sequence[Token], position: int, *, value: float | str, lexicon: Lexicon) -> Quantity:
    before, after = _at(tokens, position - 1), _at(tokens, position + 1)
    clock = _read_clock(value, before=before, after=after, lexicon=lexicon)
    if clock is not None:
        return clock
    if isinstance(value, str):
        return Quantity(_named(before), value)
    return _read_amount(value, tokens=tokens, position=position, lexicon=lexicon)


def _read_amount(value: float, *, tokens: Sequence[Token], position: int, lexicon: Lexicon) -> Quantity:
    before, after = _at(tokens, position - 1), _at(tokens, position + 1)
    if before and before.surface in CURRENCIES:
        return Quantity("money", f"{value} {before.surface}")
    unit = after and (lexicon.units.get(after.lower) or lexicon.units.get(lexicon.stem(after.lower)))
    if unit:
        if unit.dimension.startswith("money"):
            return Quantity("money", f"{value} {unit.dimension}")
        return Quantity(unit.dimension, value * unit.size)
    if after and after.entry.mark is Mark.WORD and after.entry.concept:
        return Quantity(after.entry.concept, value)
    return Quantity(_named(before), value)


def _named(before: Token | None) -> str:
    return before.entry.concept if before and before.entry.mark is Mark.WORD else ""


def _read_clock(value: float | str, *, before: Token | None, after: Token | None, lexicon: Lexicon) -> Quantity | None:
    half = AM_PM.get(after.lower) if after else None
    if isinstance(value, str):
        return _clock_of(value, half=half) if _is_time_of_day(value) else None
    said = half is not None or (after is not None and after.lower in lexicon.clock_words)
    bare = before is not None and before.lower in lexicon.clock_words and not _counts(after, lexicon=lexicon)
    if not (said or bare) or value != int(value) or value > 24:
        return None
    return _clock_of(f"{int(value)}:00", half=half)


def _is_time_of_day(text: str) -> bool:
    """Tell "12:30" from "99:99" and from the port behind a host."""
    hours, colon, minutes = text.partition(":")
    if not colon or not all(part.isdecimal() and len(part) <= 2 for part in (hours, minutes)):
        return False
    return int(minutes) < 60 and int(hours) * 60 + int(minutes) <= 2 * HALF_DAY


def _counts(after: Token | None, *, lexicon: Lexicon) -> bool:
    if after is None:
        return False
    return (after.entry.mark is Mark.WORD and bool(after.entry.concept)) or after.lower in lexicon.units


def _clock_of(text: str, *, half: int | None) -> Quantity:
    hours, minutes = (int(part) for part in text.split(":"))
    total = hours * 60 + minutes
    if half is not None:
        return Quantity(CLOCK, float(total % HALF_DAY + half))
    return Quantity(CLOCK, float(total), total < 2 * HALF_DAY and total <= HALF_DAY)


def have_other_numbers(left: Sequence[Quantity], right: Sequence[Quantity], *, is_strict: bool = False) -> bool:
    """Say whether the texts put different amounts into one role; strictly, one without a role clashes with none."""
    if not left or not right:
        return False
    only_left = [one for one in left if not any(_same(one, other) for other in right)]
    only_right = [one for one in right if not any(_same(one, other) for other in left)]
    return any(_clash(one, other, is_strict=is_strict) for one in only_left for other in only_right)


def _same(one: Quantity, other: Quantity) -> bool:
    if one.role == other.role == CLOCK and (one.vague or other.vague):
        return float(one.value) % HALF_DAY == float(other.value) % HALF_DAY
    if isinstance(one.value, str) or isinstance(other.value, str):
        return one.value == other.value
    return abs(one.value - other.value) <= NEAR * max(1.0, abs(one.value))


def _clash(one: Quantity, other: Quantity, *, is_strict: bool) -> bool:
    if is_strict:
        return one.role == other.role != ""
    return one.role == other.role or not one.role or not other.role


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_SHORT = {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6}

_DAY_OF = {
    **{name: WEEKDAYS[place % 7] for place, name in enumerate([*WEEKDAYS, *_TAGE])},
    **{name: WEEKDAYS[place] for name, place in _SHORT.items()},
    "sonnabend": "saturday",
}
_MONTHS = tuple(map(str.lower, month_name[1:]))
_MONATE = ("januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november")
MONTH_OF = {name: place % 12 + 1 for place, name in enumerate([*_MONTHS, *_MONATE, "dezember"])}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ZAHLEN = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
_HOURS = {word: place % 12 + 1 for place, word in enumerate([*_NUMBERS, *_ZAHLEN])}
_HOUR_OF = _HOURS | {"ein": 1}


def _any(names: object) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))  # type: ignore[call-overload]


_WEEKDAY = re.compile(
    rf"\b(?P<day>{_any(_DAY_OF)})(?:'?s)?(?:abends?|morgens?|mittags?|vormittags?|nachmittags?)?\b", re.IGNORECASE
)
_HOUR = rf"(?:[01]?\d|2[0-4]|{_any(_HOUR_OF)})"

_NO_HOUR = (
    r"(?! ?(?:%|kg|g|km|m|people|sacks|days|weeks|months|years|euro|€|to\b|"
    rf"{_any(MONTH_OF)})|[.,:]\d)"
)

_TIME = re.compile(
    rf"\b(?P<hour>{_HOUR})(?P<minute>[:.][0-5]\d)? ?(?P<part>am|pm|a\.m\.|p\.m\.|o'clock|uhr)\b|"
    rf"\b(?:at|from|until|till|by|um|ab|bis|opens?|seit) (?P<bare>{_HOUR})(?P<past>[:.][0-5]\d)?\b{_NO_HOUR}|"
    r"(?<![\d.:])(?P<clock>[01]?\d|2[0-3])(?P<tick>:[0-5]\d)\b(?![:\d])",
    re.IGNORECASE,
)
_CURRENCY = r"(?:£|€|\$|euros?|eur|pounds?|quid|dollars?|usd|gbp|chf|franken|cents?|pence|ct|p(?= (?:an?|per)\b))"
_EACH = r"(?:month|hour|week|year|seat|day|person|head|monat|stunde|woche|jahr|tag|kopf)"
_AMOUNT = r"\d(?:[\d.,]*\d)?"

_MONEY = re.compile(
    rf"[£€$]\s?(?P<before>{_AMOUNT})|\b(?P<after>{_AMOUNT})\s?{_CURRENCY}(?!\w)|"
    rf"\b(?P<rate>{_AMOUNT}) (?:an?|per|the|die|pro|im|in der) {_EACH}\b|"
    r"\b(?:for|is|costs?|at|\d{2,4} ?g) (?P<priced>\d{1,3}[.,]\d\d)(?![\d.%])",
    re.IGNORECASE,
)

_VERSION = re.compile(
    r"(?<![\d.,£€$:])\bv?(?P<version>\d+\.\d+(?:\.\d+)?)\b(?!\s?(?:%|kg|g|km|€|£|euro)|\.\d)", re.IGNORECASE
)

_FREQUENCY = re.compile(
    r"\b(?P<often>(?:every|each|once a|twice a|jede[nrs]?|alle|einmal die|zweimal die|\w+ times a) (?:\w+ )?"
    r"(?:day|week|month|year|fortnight|tag|tage|woche|wochen|monat|monate|jahr)|"
    r"daily|weekly|monthly|fortnightly|yearly|täglich|wöchentlich|monatlich|jährlich|zweiwöchentlich)\b",
    re.IGNORECASE,
)

_SAME_FREQUENCY = {
    same: name
    for name, spellings in {
        "daily": "every day|each day|jeden tag|täglich",
        "weekly": "every week|once a week|each week|jede woche|wöchentlich|einmal die woche",
        "fortnightly": "every two weeks|every fortnight|alle zwei wochen|alle 14 tage|zweiwöchentlich",
        "monthly": "every month|once a month|each month|jeden monat|monatlich",
        "yearly": "every year|once a year|each year|jedes jahr|jährlich",
    }.items()
    for same in spellings.split("|")
}

_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?)?(?P<month>{_any(MONTH_OF)})\b"
    r"(?: (?P<late>\d{1,2})(?:st|nd|rd|th)?\b(?! ?:))?(?: (?P<year>20\d\d))?",
    re.IGNORECASE,
)

_UNIT = re.compile(
    r"\b(?:on|in|at|to|auf|in|zur|im) (?:the |der |die )?(?P<unit>[\w-]+) (?:ward|unit|department|team|station|"
    r"abteilung)\b|"
    r"\b(?P<numbered>(?:ward|station) \d+)\b",
    re.IGNORECASE,
)

_NAME = re.compile(
    r"(?<!^)(?<![.!?] )\b[A-ZÄÖÜ][\w'’-]*[a-zäöü][\w'’-]*(?: (?:of |de |von )?[A-ZÄÖÜ][\w-]+)*|\b[A-Z]{2,}\d*\b"
)
TITLE = r"(?:Mrs?|Ms|Miss|Dr|Prof|Herrn?|Frau)\.?"
_PERSON = re.compile(r"\b(?:(?:Frau|Herr|Prof\.|Dr\.?) )?[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ]\w+)?(?: [A-ZÄÖÜ][a-zäöüß]+)*")
_TITLED = re.compile(rf"\b{TITLE.lower()} [a-zäöüß]{{3,}}\b")  # typed in small letters
_KINDS = ("weekday", "time", "money", "version", "frequency", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of a sentence by kind."""

    weekday: frozenset[str] = frozenset()
    time: frozenset[str] = frozenset()
    money: frozenset[str] = frozenset()
    version: frozenset[str] = frozenset()
    frequency: frozenset[str] = frozenset()
    date: frozenset[str] = frozenset()
    name: frozenset[str] = frozenset()
    person: frozenset[str] = frozenset()
    unit: frozenset[str] = frozenset()
    quantity: frozenset[str] = frozenset()  # "28 day", "android 10"

    def of(self, kind: str) -> frozenset[str]:
        """Return the values of one kind, none of a kind that is not known."""
        found: frozenset[str] = getattr(self, kind, frozenset())
        return found

    def excluding(self) -> dict[str, frozenset[str]]:
        """Return by kind, or by unit, the values that another would exclude: days, times, prices, quantities."""
        kinds = {kind: found for kind in _KINDS if (found := self.of(kind))}
        for number, unit in map(str.split, self.quantity):
            kinds[unit] = kinds.get(unit, frozenset()) | {number}
        return kinds


def find_values(text: str) -> Values:
    """Read the values in a sentence."""
    return Values(
        weekday=frozenset(_DAY_OF[found["day"].lower()] for found in _WEEKDAY.finditer(text)),
        time=frozenset(_times(text)),
        money=frozenset(_amounts(text)),
        version=frozenset(found["version"] for found in _VERSION.finditer(text)),
        frequency=frozenset(_frequencies(text)),
        date=frozenset(map(_date, _DATE.finditer(text))),
        name=frozenset(_no_days(found.group() for found in _NAME.finditer(text))),
        person=frozenset(_no_days(found.group() for found in (*_PERSON.finditer(text), *_TITLED.finditer(text)))),
        quantity=frozenset(_quantities(text)),
        unit=frozenset((found["unit"] or found["numbered"]).lower() for found in _UNIT.finditer(text)),
    )


def _times(text: str) -> Iterator[str]:
    for found in _TIME.finditer(text):
        written = (found["hour"] or found["bare"] or found["clock"]).lower()
        hour = _HOUR_OF.get(written)
        hour = int(written) if hour is None else hour
        minute = (found["minute"] or found["past"] or found["tick"] or ":00")[1:]
        is_late = (found["part"] or "").lower().startswith("p") and hour < 12
        yield f"{(hour + 12 * is_late) % 24}:{minute}"


_UNITS = (
    r"(?:day|week|month|year|hour|minute|second|mile|word|page|space|column|character|point|percent|litre|metre|gram|"
    r"tag|woche|monat|jahr|stunde|zeile|spalte|zeichen|seite|punkt|liter|meter|gramm|km|kg|mg|ml|mm|cm|gb|tb|mb|ms|%)"
)

_QUANTITY = re.compile(
    rf"(?<![\d.,:£€$-])(?P<number>\d+(?:[.,]\d+)?)[ -]?(?P<unit>{_UNITS})(?:e?[sn]|er)?(?!\w)|"
    r"(?<![\w.-])(?P<named>(?:android|ios|windows|ubuntu|debian|fedora|java|python|node|postgres|php|rails|django|"
    r"arial|helvetica|size|schriftgröße|größe|stufe|level|grade|klasse|indent)) (?P<which>\d+(?:\.\d+)?)(?![\w.:]\w)",
    re.IGNORECASE,
)


def _quantities(text: str) -> Iterator[str]:
    for found in _QUANTITY.finditer(_SPELT_OUT.sub(_in_figures, text)):
        number, unit = found["number"] or found["which"], found["unit"] or found["named"]
        yield f"{number.replace(',', '.')} {unit.lower()}"


def _amounts(text: str) -> Iterator[str]:
    for found in _MONEY.finditer(_SPELT.sub(_in_figures, text)):
        written = found["before"] or found["after"] or found["rate"] or found["priced"]
        if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", written):
            yield re.sub(r"[.,]", "", written)
            continue
        plain = written.replace(",", ".")
        yield plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain


NUMBER_OF = _HOUR_OF | {
    "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "eighteen": 18, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "hundred": 100,
}  # fmt: skip
_FIGURE = rf"\b(?P<number>{_any(NUMBER_OF)})(?P<half> and a half)? "
_SPELT = re.compile(rf"{_FIGURE}(?={_CURRENCY}\b)", re.IGNORECASE)
_SPELT_OUT = re.compile(rf"{_FIGURE}(?={_UNITS}(?:e?[sn]|er)?\b)", re.IGNORECASE)


def _in_figures(found: re.Match[str]) -> str:
    return f"{NUMBER_OF[found['number'].lower()] + (0.5 if found['half'] else 0):g} "


def _frequencies(text: str) -> Iterator[str]:
    for found in _FREQUENCY.finditer(text):
        plain = " ".join(found["often"].lower().split())
        yield _SAME_FREQUENCY.get(plain, plain)


def _date(found: re.Match[str]) -> str:
    day = found["day"] or found["late"] or ""
    return "-".join(filter(None, [found["year"], str(MONTH_OF[found["month"].lower()]), day]))


def _no_days(names: Iterator[str]) -> Iterator[str]:
    """Yield names small and without possessives; days, months and the commonest words are none, nor begin any.

    "From April Mara's manager is Ravi" names Mara.
    """
    no_names = _DAY_OF.keys() | MONTH_OF.keys() | common_words() | ENGLISH_STOPS | GERMAN_STOPS
    for name in names:
        plain = re.sub(r"(?:'s|’s|'|’)$", "", name).lower()
        if " " in plain:
            plain = " ".join(dropwhile(lambda word: word in no_names, plain.split(" ")))
        if plain and plain not in no_names:
            yield plain
