"""Days named in words: which day "yesterday" is (L3), and since or from when on something holds (C1)."""

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from memory.language.quantities import MONTH_OF

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
WEEKDAY_OF = {name: place % 7 for place, name in enumerate([*_DAYS, *_TAGE])} | {"sonnabend": 5}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ZAHLEN = ("einem", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
COUNTS = {word: place % 10 + 1 for place, word in enumerate([*_NUMBERS, *_ZAHLEN])}
_WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAY_OF)})"
_COUNT = rf"(?P<count>\d{{1,2}}|{'|'.join(COUNTS)})"
_PARTS = ("morning", "afternoon", "evening", "night", "abend", "früh", "mittag", "vormittag", "nachmittag", "nacht")
_PART = rf"(?i:(?: (?:{'|'.join(_PARTS)}|morgen))?)"

# What stands before a day that is none ("no tomorrow"), and before a count that is not the whole one: a range ("3 to 5
# days ago"), a larger number ("one hundred and two"), a guess ("about two").
_NO = ("no", "kein", "keine", "keinen")

_UNSURE = (
    "to", "or", "and", "bis", "und", "oder", "hundred", "thousand", "twenty", "thirty", "forty", "fifty", "sixty",
    "seventy", "eighty", "ninety", "than", "least", "most", "about", "around", "nearly", "almost", "over",
)  # fmt: skip
_START = r"(?<![\w-])" + "".join(rf"(?<!\b(?i:{word}) )" for word in _NO)
_SURELY = r"(?<![.,–—])(?<![-–—] )" + "".join(rf"(?<!\b(?i:{word}) )" for word in _UNSURE)

# Not "yesterday's", and not what a date follows already; a version ("1.2.34", "18.04.25") is none.
_DATE = r"\d{1,2}(?:st|nd|rd|th|\.(?!\d)|\.\d{1,2}\.(?:\d{4})?(?![\d.]))"
_END = rf"(?![\w'’-]|,? \(|,? (?:the )?{_DATE})"
_DayReading = Callable[[date, re.Match[str]], str]


def _day(days: int) -> _DayReading:
    return lambda said_on, _: _shift(said_on, days)


def _shift(said_on: date, days: int) -> str:
    return (said_on + timedelta(days=days)).isoformat()


def _days_ago(said_on: date, found: re.Match[str]) -> str:
    word = found["count"].lower()
    return _shift(said_on, -(COUNTS.get(word) or int(word)))


def _coming(said_on: date, found: re.Match[str]) -> str:
    """The first such day after the one on which it was said."""
    return _shift(said_on, (_weekday(found) - said_on.weekday() - 1) % 7 + 1)


def _this(said_on: date, found: re.Match[str]) -> str:
    return _shift(said_on, (_weekday(found) - said_on.weekday()) % 7)


def _last(said_on: date, found: re.Match[str]) -> str:
    return _shift(said_on, -((said_on.weekday() - _weekday(found) - 1) % 7 + 1))


def _weekday(found: re.Match[str]) -> int:
    return WEEKDAY_OF[found["weekday"].lower()]


def _month(months: int) -> _DayReading:
    def read(said_on: date, _: re.Match[str]) -> str:
        year, month = divmod(said_on.year * 12 + said_on.month - 1 + months, 12)
        return f"{year:04}-{month + 1:02}"

    return read


def _year(years: int) -> _DayReading:
    return lambda said_on, _: f"{said_on.year + years:04}"


# The first that fits is taken. In German "Morgen" is the morning, and "morgen" after another day is, too.
_DAY_READINGS: tuple[tuple[re.Pattern[str], _DayReading], ...] = tuple(
    (re.compile(rf"{_START}{pattern}{_END}"), reading)
    for pattern, reading in (
        (rf"(?i:the day before yesterday|vorgestern{_PART})", _day(-2)),
        (rf"(?i:the day after tomorrow|übermorgen{_PART})", _day(2)),
        (rf"(?i:yesterday{_PART}|gestern{_PART})", _day(-1)),
        (rf"(?i:today|tonight|this (?:morning|afternoon|evening)|heute{_PART})", _day(0)),
        (rf"(?i:tomorrow{_PART})", _day(1)),
        (
            r"^Morgen(?= (?:habe|bin|werde|gehe|muss|müssen|will|wollen|ist|hat|wird|fahre|fährt|trifft|treffe)\b)",
            _day(1),
        ),
        (rf"(?<!heute )(?<!gestern )(?<!jeden )(?<!am )(?<!bis )morgen{_PART}", _day(1)),
        (rf"{_SURELY}(?i:{_COUNT} days? ago)", _days_ago),
        (rf"(?i:vor {_COUNT} tag(?:en)?)", _days_ago),
        (rf"(?i:(?:next|nächste[nr]?|kommende[nr]?) {_WEEKDAY})", _coming),
        (rf"(?i:(?:this|diese[nr]?) {_WEEKDAY})", _this),
        (rf"(?i:(?:last|letzte[nr]?|vergangene[nr]?) {_WEEKDAY})", _last),
        (r"(?i:next month|(?:nächste|kommende)[nr] monat)", _month(1)),
        (r"(?i:last month|(?:letzte|vergangene)[nr] monat)", _month(-1)),
        (r"(?i:next year|(?:nächste|kommende)s jahr)", _year(1)),
        (r"(?i:last year|(?:letzte|vergangene)s jahr)", _year(-1)),
    )
)
_FIRST, _LAST = date.min + timedelta(days=366), date.max - timedelta(days=366)  # before and after, no day may be left
_CAPITAL = {*WEEKDAY_OF, *_PARTS, "morgen", "tag", "tagen", "monat", "jahr"}
_OPENS = ".!?:;(*•-–—"
_QUOTED = re.compile(r"[\"“”„«»]")


def date_sentence(*, text: str, said_on: date | None) -> str:
    """Write behind each relative day of a sentence which one it is, as `yesterday (2026-11-21)`.

    What names no one day ("soon", "on Friday", "last week") stays as it is, and so does what quotes somebody.
    """
    if said_on is None or _QUOTED.search(text) or not _FIRST <= said_on <= _LAST:
        return text
    found = sorted(_find_days(text, said_on), key=lambda one: (one[0], -one[1]))
    dated, end = "", 0
    for start, stop, day in found:
        if start >= end:
            dated, end = f"{dated}{text[end:stop]} ({day})", stop
    return dated + text[end:]


def _find_days(text: str, said_on: date) -> list[tuple[int, int, str]]:
    return [
        (found.start(), found.end(), reading(said_on, found))
        for pattern, reading in _DAY_READINGS
        for found in pattern.finditer(text)
        if not _is_in_title(text, found)
    ]


def _is_in_title(text: str, found: re.Match[str]) -> bool:
    """Tell whether a day is part of a name ("USA Today", "The Day After Tomorrow"), as its capitals say.

    Those of weekdays and of German nouns say nothing, nor does that of a sentence's first word.
    """
    first, *others = found[0].split(" ")
    before = text[: found.start()].rstrip()
    is_named = any(word[0].isupper() and word.lower() not in _CAPITAL for word in others)
    return is_named or (first[0].isupper() and bool(before) and before[-1] not in _OPENS)


MONTHS = MONTH_OF | {
    "jan": 1, "jänner": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10,
    "okt": 10, "nov": 11, "dec": 12, "dez": 12,
}  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"
YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_AHEAD = r"(?:from|starting(?: in| on| from)?|beginning(?: in| on)?|as of|effective|ab|von)(?: the| dem| den)?"
_BACK = r"(?:since|seit)(?: the| dem| den)?"

# What changes to something in a month ahead ("the rent goes up to 900 euros in July") does so from then on.
_CHANGING = (
    r"(?:(?:(?:goes|go|going) (?:up|down)|rises?|increases?|drops|moves?|changes?|switch(?:es)?)"
    r" (?:from [^.;]{1,30} )?to\b[^.;]{1,40}? in|(?:steigt|sinkt|wechselt|zieht)\b[^.;]{0,40}? im)"
)
_IN_MONTH = rf"(?-i:(?!May [A-Z])){_MONTH}{YEAR}"
_EITHER_WAY = re.compile(r"as of|effective", re.IGNORECASE)
_HALF_A_YEAR = timedelta(days=183)
_SinceReading = Callable[[date, re.Match[str], bool], date]


def holds_since(*, sentence: str, said_on: date | None) -> date | None:
    """Return the day from which a sentence says that something holds, None where it names none.

    A month or weekday without a year is the nearest one: back from the day of speaking where the sentence looks back
    ("since"), ahead of it where it looks ahead ("from", "starting in"); "as of" may look either way.
    """
    if said_on is None:
        return None
    for cue, is_ahead, readings in _CUES:
        for pattern, read in readings:
            found = re.search(rf"\b{cue} {pattern}(?![\w-])", sentence, re.IGNORECASE)
            if found and not (cue == _AHEAD and _is_a_way(sentence, found)):
                try:
                    day = read(said_on, found, is_ahead)
                    is_past = _EITHER_WAY.match(found.group()) and day - said_on > _HALF_A_YEAR
                    return read(said_on, found, False) if is_past else day
                except ValueError:  # no such day
                    return None
    return None


def _is_a_way(sentence: str, found: re.Match[str]) -> bool:
    """Tell whether it leads from one to another ("from Friday to Monday"), which names no beginning."""
    return re.match(r" (?:to|until|till|bis|through|auf) ", sentence[found.end() :], re.IGNORECASE) is not None


def _by_iso(_: date, found: re.Match[str], __: bool) -> date:
    return date.fromisoformat(found["iso"])


def _by_month(said_on: date, found: re.Match[str], is_ahead: bool) -> date:
    parts = found.groupdict()
    month, day = MONTHS[parts["month"].lower()], int(parts.get("day") or 1)
    if parts.get("year"):
        return date(int(parts["year"]), month, day)
    if (month, day) == (said_on.month, 1) and not parts.get("day"):
        return date(said_on.year, month, 1)
    this_year = date(said_on.year, month, day)
    if is_ahead:
        return this_year if this_year >= said_on else date(said_on.year + 1, month, day)
    return this_year if this_year <= said_on else date(said_on.year - 1, month, day)


def _by_weekday(said_on: date, found: re.Match[str], is_ahead: bool) -> date:
    wanted = WEEKDAY_OF[found["weekday"].lower()]
    if is_ahead:
        return said_on + timedelta(days=(wanted - said_on.weekday() - 1) % 7 + 1)
    return said_on - timedelta(days=(said_on.weekday() - wanted - 1) % 7 + 1)


def _tomorrow(said_on: date, _: re.Match[str], __: bool) -> date:
    return said_on + timedelta(days=1)


def _next_period(said_on: date, found: re.Match[str], _: bool) -> date:
    unit = found["unit"].lower()
    if unit in ("week", "woche"):
        return said_on + timedelta(days=7 - said_on.weekday())
    if unit in ("month", "monat"):
        return date(said_on.year + said_on.month // 12, said_on.month % 12 + 1, 1)
    return date(said_on.year + 1, 1, 1)


_SINCE_READINGS: tuple[tuple[str, _SinceReading], ...] = (
    (r"(?P<iso>\d{4}-\d\d-\d\d)", _by_iso),
    (rf"{_MONTH} {DAY}{YEAR}", _by_month),
    (rf"{DAY}(?: of)? {_MONTH}{YEAR}", _by_month),
    (_IN_MONTH, _by_month),
    (r"(?:tomorrow|morgen)", _tomorrow),
    (r"(?:next|nächste[rnm]?|kommende[rnm]?) (?P<unit>week|month|year|woche|monat|jahr)", _next_period),
    (rf"(?:next |last |nächste[nm] |letzte[nm] )?(?P<weekday>{'|'.join(WEEKDAY_OF)})", _by_weekday),
)

_CUES: tuple[tuple[str, bool, Sequence[tuple[str, _SinceReading]]], ...] = (
    (_BACK, False, _SINCE_READINGS),
    (_AHEAD, True, _SINCE_READINGS),
    (_CHANGING, True, ((_IN_MONTH, _by_month),)),
)
