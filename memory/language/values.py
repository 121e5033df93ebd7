"""The values in a sentence, each in one spelling: days, times, prices, versions, how often, dates, names (E3)."""

import re
from calendar import month_name
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile

from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.language.cues import common_words

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
