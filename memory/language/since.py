"""Since when, or from when on, a sentence says that something holds: "since February", "from 1 April", "ab Juli"."""

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from memory.domain.relative_dates import WEEKDAY_OF
from memory.language.values import MONTH_OF

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

_Reading = Callable[[date, re.Match[str], bool], date]


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


def _next(said_on: date, found: re.Match[str], _: bool) -> date:
    unit = found["unit"].lower()
    if unit in ("week", "woche"):
        return said_on + timedelta(days=7 - said_on.weekday())
    if unit in ("month", "monat"):
        return date(said_on.year + said_on.month // 12, said_on.month % 12 + 1, 1)
    return date(said_on.year + 1, 1, 1)


_READINGS: tuple[tuple[str, _Reading], ...] = (
    (r"(?P<iso>\d{4}-\d\d-\d\d)", _by_iso),
    (rf"{_MONTH} {DAY}{YEAR}", _by_month),
    (rf"{DAY}(?: of)? {_MONTH}{YEAR}", _by_month),
    (_IN_MONTH, _by_month),
    (r"(?:tomorrow|morgen)", _tomorrow),
    (r"(?:next|nächste[rnm]?|kommende[rnm]?) (?P<unit>week|month|year|woche|monat|jahr)", _next),
    (rf"(?:next |last |nächste[nm] |letzte[nm] )?(?P<weekday>{'|'.join(WEEKDAY_OF)})", _by_weekday),
)
_CUES: tuple[tuple[str, bool, Sequence[tuple[str, _Reading]]], ...] = (
    (_BACK, False, _READINGS),
    (_AHEAD, True, _READINGS),
    (_CHANGING, True, ((_IN_MONTH, _by_month),)),
)
