"""The time that a question asks about (B17): a span of days ("in March"), an event ("before the move"), the first."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from memory.recall.questions.words import has_cue, is_telling, names_something, word_list


class Occasion(StrEnum):
    """Which of several occasions is meant."""

    ANY = "any"
    FIRST = "first"
    LAST = "last"


class EventSide(StrEnum):
    """On which side of an event a time lies; what began with it lies after it."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundingEvent:
    """What bounds the time that is asked about, in the question's words, and when it was, as far as these tell.

    `rest` is the question without it.
    """

    words: str
    side: EventSide
    rest: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAsked:
    """A span of days (UTC), its end excluded, either of which may be open; and which occasion of several is meant.

    `event` bounds it where nobody can tell from the words alone when that was.
    """

    start: datetime | None = None
    end: datetime | None = None
    order: Occasion = Occasion.ANY
    event: BoundingEvent | None = None

    @property
    def question(self) -> str:
        """Return what is left to ask where another text tells of the bound: of what was before an event; else "".

        What came of an event is mostly told with it.
        """
        return self.event.rest if self.event and self.event.side == EventSide.BEFORE else ""


def read_time_asked(*, query: str, now: datetime) -> TimeAsked | None:
    """Return the time that a question asks about, None where it asks about none.

    A month or day without a year is the latest that has begun. What bounds a time ("before May", "until the change in
    April") asks about what was before or after it, where the question looks back.
    """
    asked, today = query[:_MOST_CHARACTERS], now.astimezone(UTC).date()
    order = Occasion.FIRST if has_cue("first", asked) else Occasion.LAST if has_cue("last", asked) else Occasion.ANY
    if (beside := _beside(asked, today)) is not None:
        return TimeAsked(start=beside[0], end=beside[1], order=order)
    if (event := _event(asked, today)) is not None:
        return TimeAsked(order=order, event=event)
    span = _read_span(asked, today)
    if span is None:
        return None if order == Occasion.ANY else TimeAsked(order=order)
    first, after = span
    return TimeAsked(start=_midnight(first), end=_midnight(after), order=order)


def names_but_a_time(query: str) -> bool:
    """Tell whether a question asks for whatever was at a time ("what happened in March?"): it names nothing else."""
    return not any(
        is_telling(word) for word in _WORD.findall(query.lower()) if word not in _CALENDAR and not word.isdigit()
    )


def find_values(text: str) -> dict[str, frozenset[str]]:
    """Return by kind the numbers, weekdays and months in a text, by which two sentences may tell two facts."""
    words = _WORD.findall(text)
    found = {
        "number": {*_NUMBER.findall(text), *(str(n) for word in words if (n := NUMBERS.get(word.lower(), 1)) > 1)},
        "weekday": {str(day) for word in words if (day := WEEKDAYS.get(word.lower().removesuffix("s"))) is not None},
        "month": {str(MONTHS[word.lower()]) for word in words if word[0].isupper() and word.lower() in MONTHS},
    }
    return {kind: frozenset(values) for kind, values in found.items() if values}


def _beside(query: str, today: date) -> tuple[datetime | None, datetime | None] | None:
    """Read a time that a day, month or other span bounds: "before May", "since last week", "seit dem 1. Juni"."""
    for found, span in _bounding_spans(query, today):
        bound = found["bound"].lower()
        if not _looks_back(f"{query[: found.start()]} {query[found.end() :]}", bound):
            continue
        if _side(bound) == EventSide.BEFORE:
            return None, _midnight(span[1] if bound in _UP_TO_ITS_END else span[0])
        return _midnight(span[0] if bound in _FROM_ITS_START else span[1]), None
    return None


def _bounding_spans(query: str, today: date) -> "Iterator[tuple[re.Match[str], _Span]]":
    found = _BOUND_BY_DAY.search(query)
    if found and not (found["bound"].lower() in _ENGLISH_BOUNDS and _GOES_ON.match(query[found.end() :])):
        when = found["when"]
        span = _read_span(when, today, is_bound=True) or _read_span(f"in {when}", today, is_bound=True)
        if span:
            yield found, span
    for pattern, read in _READINGS:
        inner = pattern.search(query)
        bound = _DIRECTLY_BEFORE.search(query[: inner.start()]) if inner else None
        if inner and bound and (span := _try(pattern, read, query, today, is_bound=True)):
            yield bound, span


def _event(query: str, today: date) -> BoundingEvent | None:
    """Read an event that a question about the past bounds its time by: "before the move", "seit dem Umzug"."""
    found = _EVENT.search(query) or _NAMED_EVENT.search(query)
    if found is None or _IS_NO_BOUND.search(query[: found.start()]):
        return None
    bound, words = found["bound"].lower(), found["event"].rstrip()
    if bound in _GERMAN_PREPOSITIONS:
        words = _without_participles(words)
        if not _EVENT_NOUN.search(words):
            return None
    end = found.start("event") + len(words)
    rest = " ".join(f"{query[: found.start()]} {query[end:]}".split())
    if not _looks_back(rest, bound):
        return None
    span = _read_span(words, today, is_bound=True)
    return BoundingEvent(
        words=words,
        side=_side(bound),
        rest=rest if names_something(rest) else "",
        start=_midnight(span[0]) if span else None,
        end=_midnight(span[1]) if span else None,
    )


def _without_participles(words: str) -> str:
    """Leave out the verbs at the end, which are the question's: "dem Umzug gewohnt"."""
    kept = words.split()
    while len(kept) > 2 and (kept[-1] in _GERMAN_AUXILIARIES or _PARTICIPLE.fullmatch(kept[-1])):
        kept.pop()
    return " ".join(kept)


def _looks_back(main: str, bound: str) -> bool:
    """Tell whether a question, without what bounds its time, is about the past.

    "What do I do before committing?" and "what must be tested before the release?" are about habits and plans.
    """
    words = set(_WORD.findall(main.lower()))
    if words & _OF_NO_PAST:
        return False
    if bound in _ENGLISH_BOUNDS:
        return _tells_of_past(words) or (_side(bound) == EventSide.AFTER and bool(words & {"has", "have"}))
    return bool(words & _GERMAN_PAST) or (bool(words & _GERMAN_AUXILIARIES) and any(map(_PARTICIPLE.fullmatch, words)))


def _tells_of_past(words: Collection[str]) -> bool:
    return any(word in _PAST or (len(word) > 4 and word.endswith("ed")) for word in words)


def _is_past(query: str) -> bool:
    words = set(_WORD.findall(query.lower()))
    return _tells_of_past(words) or bool(words & _GERMAN_PAST) or any(map(_PARTICIPLE.fullmatch, words))


def _side(bound: str) -> EventSide:
    return EventSide.BEFORE if bound in _BEFORE else EventSide.AFTER


def _read_span(text: str, today: date, *, is_bound: bool = False) -> "_Span | None":
    spans = (_try(pattern, read, text, today, is_bound=is_bound) for pattern, read in _READINGS)
    return next((span for span in spans if span), None)


_Span = tuple[date, date]
_Reading = Callable[[date, re.Match[str]], _Span]


def _try(pattern: re.Pattern[str], read: _Reading, text: str, today: date, *, is_bound: bool) -> _Span | None:
    """Read one kind of span; `is_bound` where the text is but the time that bounds another."""
    found = pattern.search(text)
    if found is None or (not is_bound and _is_another_time(text, found)):
        return None
    try:
        return read(today, found)
    except (ValueError, OverflowError, KeyError):  # no such day, or a letter that only looks like one of a month's
        return None


def _is_another_time(query: str, found: re.Match[str]) -> bool:
    """Tell whether a span only bounds a time, lies ahead, or is no month: "may" is a verb more often."""
    before = query[: found.start()]
    if found.group().lower().startswith(_GOES_ON_NOW) and not _is_past(query):
        return True
    if "month" not in found.groupdict():
        return _DIRECTLY_BEFORE.search(before) is not None
    if _BOUND.search(before) or has_cue("ahead", query):
        return True
    if _MAY_BE_AHEAD.search(query) and not _is_past(query):
        return True
    if found["month"].lower() != "may":
        return False
    return found.start("month") == 0 or (found["month"] == "may" and not _OF_MAY.search(query[: found.start("month")]))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _day(today: date, found: re.Match[str]) -> _Span:
    day = _date(today, found)
    if (found.groupdict().get("weekend") or "").strip():
        saturday = day + timedelta(days=(5 - day.weekday() + 4) % 7 - 4)  # the nearest
        return saturday, saturday + timedelta(days=3)  # who tells of it may do so a day later
    return day, day + timedelta(days=2)


def _date(today: date, found: re.Match[str]) -> date:
    month, day, year = MONTHS[found["month"].lower()], int(found["day"]), found.groupdict().get("year")
    if year:
        return date(int(year), month, day)
    this_year = date(today.year, month, day)
    return this_year if this_year <= today else date(today.year - 1, month, day)


def _month(today: date, found: re.Match[str]) -> _Span:
    month, year = MONTHS[found["month"].lower()], found.groupdict().get("year")
    first = date(int(year) if year else today.year, month, 1)
    if not year and first > today:
        first = date(today.year - 1, month, 1)
    part = (found.groupdict().get("part") or "").lower()
    after = _next_month(first)
    if part in _BEGINNING:
        return first, first + timedelta(days=12)
    if part in _MIDDLE:
        return first + timedelta(days=9), first + timedelta(days=21)
    if part in _ENDING:
        return after - timedelta(days=11), after + timedelta(days=2)
    return first, after


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _days_before(first: int, days: int) -> _Reading:
    """Read a span of days that begins so many days back."""
    return lambda today, _: (today - timedelta(days=first), today - timedelta(days=first - days))


def _week(weeks: int) -> _Reading:
    """Read a week by its Monday; of one that is over, the days since count, too: few say it by the calendar."""

    def read(today: date, _: re.Match[str]) -> _Span:
        monday = today - timedelta(days=today.weekday() + 7 * weeks)
        return monday, today if weeks else today + timedelta(days=1)

    return read


def _last_month(today: date, _: re.Match[str]) -> _Span:
    this = today.replace(day=1)
    return (this - timedelta(days=1)).replace(day=1), this


def _this_month(today: date, _: re.Match[str]) -> _Span:
    return today.replace(day=1), today + timedelta(days=1)


def _last_weekend(today: date, _: re.Match[str]) -> _Span:
    saturday = today - timedelta(days=(today.weekday() - 5) % 7 or 7)
    return saturday, saturday + timedelta(days=3)


def _year(today: date, found: re.Match[str]) -> _Span:
    year = int(found.groupdict().get("year") or today.year - 1)
    return date(year, 1, 1), date(year + 1, 1, 1)


def _iso(_: date, found: re.Match[str]) -> _Span:
    day = date.fromisoformat(found["iso"])
    return day, day + timedelta(days=1)


def _last_weekday(today: date, found: re.Match[str]) -> _Span:
    day = today - timedelta(days=(today.weekday() - WEEKDAYS[found["weekday"].lower()] - 1) % 7 + 1)
    return day, day + timedelta(days=1)


def _ago(today: date, found: re.Match[str]) -> _Span:
    """Read "three weeks ago", give or take half of the unit."""
    word, unit = found["count"].lower(), found["unit"].lower()
    count = _COUNTS.get(word) or int(word)
    days = next(days for start, days in _DAYS_OF.items() if unit.startswith(start))
    give = max(days // 2, 1) if days > 1 else 1
    middle = today - timedelta(days=count * days)
    return middle - timedelta(days=give), middle + timedelta(days=give + 1)


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TAGE = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
WEEKDAYS = {name: place % 7 for place, name in enumerate([*_DAYS, *_TAGE])} | {"sonnabend": 5}
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november")
_MONATE = ("januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november")
FULL_MONTHS = {name: place % 12 + 1 for place, name in enumerate([*_MONTHS, "december", *_MONATE, "dezember"])}
MONTHS = FULL_MONTHS | {
    "jan": 1, "jänner": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10,
    "okt": 10, "nov": 11, "dec": 12, "dez": 12,
}  # fmt: skip
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ZAHLEN = ("einem", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
NUMBERS = {word: place % 10 + 1 for place, word in enumerate([*_NUMBERS, *_ZAHLEN])}
_YEAR = r"(?:,? (?P<year>(?:19|20)\d\d))?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"

_BEGINNING = ("beginning", "start", "early", "anfang")
_MIDDLE = ("middle", "mid", "mitte")
_ENDING = ("end", "late", "ende")
_PART = f"(?:{'|'.join([*_BEGINNING, *_MIDDLE, *_ENDING])})"
_DAYS_OF = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}
_COUNTS = NUMBERS | dict.fromkeys(("a", "einer"), 1)
_COUNT = rf"(?P<count>\d{{1,2}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_ABOUT = r"(?:(?:about|around|some|roughly|ungefähr|etwa|rund) )?"

# Short names of months are words, too; only the full ones count beside no day.
_SHORT = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"

_LONG = rf"(?P<month>{'|'.join(sorted([*FULL_MONTHS, 'jänner'], key=len, reverse=True))})\b"
_WEEKEND = r"(?P<weekend>(?:weekend|wochenende) (?:of |around |um )?(?:the |den )?)?"

_BOUND = re.compile(
    r"\b(?:before|until|till|since|after|bevor|bis|seit|nachdem|(?:vor|nach) de[mr])\b(?:\W+\w+){0,5}\W*$",
    re.IGNORECASE,
)
_OF_MAY = re.compile(r"\b(?:in|during|of) $", re.IGNORECASE)

_READINGS: tuple[tuple[re.Pattern[str], _Reading], ...] = tuple(
    (re.compile(rf"\b{pattern}", re.IGNORECASE), read)
    for pattern, read in (
        (rf"{_WEEKEND}{_DAY}(?: of)? {_SHORT}{_YEAR}", _day),
        (rf"{_WEEKEND}{_SHORT} {_DAY}(?!\d){_YEAR}", _day),
        (r"(?:the day before yesterday|vorgestern)\b", _days_before(2, 1)),
        (r"(?:yesterday|gestern)\b", _days_before(1, 1)),
        (r"(?:this morning|heute (?:morgen|früh))\b", _days_before(0, 1)),
        (r"(?:last|letzte[nr]?|vergangene[nr]?) (?:week|woche)\b", _week(1)),
        (r"(?:this|diese[nr]?) (?:week|woche)\b", _week(0)),
        (r"(?:last|letzten|vergangenen) (?:month|monat)\b", _last_month),
        (r"(?:this month|diese[nm] monat)\b", _this_month),
        (r"(?:last weekend|letztes wochenende|am letzten wochenende)\b", _last_weekend),
        (r"(?:last year|letztes jahr|vergangenes jahr|im letzten jahr)\b", _year),
        (r"(?P<iso>20\d\d-\d\d-\d\d)\b", _iso),
        (rf"(?:last|letzte[nr]?|vergangene[nr]?) (?P<weekday>{'|'.join(WEEKDAYS)})\b", _last_weekday),
        (rf"{_ABOUT}{_COUNT} (?P<unit>days?|weeks?|months?|years?) ago\b", _ago),
        (rf"vor {_ABOUT}{_COUNT} (?P<unit>tag\w*|woche\w*|monat\w*|jahr\w*)\b", _ago),
        (rf"(?:(?P<part>{_PART})(?: of|-)? ?|back in ){_LONG}{_YEAR}", _month),
        (rf"(?:in|during|im) {_LONG}{_YEAR}", _month),
        (r"(?:in|during|im jahre?) (?P<year>(?:19|20)\d\d)\b", _year),
    )
)

# What bounds a time, where a question looks back.
_MOST_CHARACTERS = 300  # of a query: a time stands in a question, and not in a long text
_BEFORE = frozenset(("before", "prior to", "until", "till", "bevor", "vor", "bis", "bis zum", "bis zur"))
_FROM_ITS_START = ("since", "seit")
_UP_TO_ITS_END = ("until", "till", "bis")
_ENGLISH_BOUNDS = ("before", "prior to", "until", "till", "after", "since")
_GERMAN_PREPOSITIONS = ("vor", "nach", "seit", "bis zum", "bis zur")
_BOUNDING = r"(?P<bound>before|prior to|until|till|after|since|bevor|nachdem|bis zu[mr]|bis|seit|nach|vor)"
_DIRECTLY_BEFORE = re.compile(rf"\b(?<!day ){_BOUNDING}(?: about| around| the| de[mnr])? $", re.IGNORECASE)
_GOES_ON = re.compile(r"\s+(?!(?:and|or|for|in|at|on|with|by|to|of|as)\b)\w", re.IGNORECASE)  # "the March release"

_MAY_BE_AHEAD = re.compile(
    r"\b(?:when (?:is|are)|due|deadline|appointment|wann (?:ist|sind)|fällig|kommt|kommen|termine?)\b", re.IGNORECASE
)
_GOES_ON_NOW = ("this", "diese")  # a week or month that is not over
_WORD = re.compile(r"[\w'’]{1,30}")
_NUMBER = re.compile(r"\d+(?:[.:,]\d+)*")
_CALENDAR = frozenset({*MONTHS, *WEEKDAYS, *word_list("words_of_times")})
_PAST = frozenset(word_list("past_en"))
_GERMAN_PAST = frozenset(word_list("past_de"))
_GERMAN_AUXILIARIES = frozenset(word_list("auxiliaries_de"))
_PARTICIPLE = re.compile(r"\w{0,12}ge\w{2,16}(?:t|en)|(?:be|ver|er|ent|zer)\w{3,16}(?:t|en)|\w{3,20}iert")

# A plan, a duty or a habit is of no time that is over.
_OF_NO_PAST = frozenset(word_list("plans_and_habits"))

_IS_NO_BOUND = re.compile(
    r"\b(?:look(?:ed|ing|s)?|named|called|put|take[ns]?|angst|furcht|fürcht\w*|warn\w*|gewarnt|fragt?\w*|such\w*"
    r")\W+(?:\w+\W+){0,3}$",
    re.IGNORECASE,
)

_THEIRS = (
    "the|my|our|his|her|their|this|that|we|i|she|he|they|de[mnr]|die|das|(?:mein|unser|ihr|sein)e?[mnr]?|wir|ich|sie|er"
)
_WORDS_ON = r"[^?.!;,:\n]"

_EVENT = re.compile(
    rf"\b{_BOUNDING} (?P<event>(?:(?:{_THEIRS}) (?!(?:time|end|beginning|start|middle)\b|\d)|\w{{3,20}}ing\b)"
    rf"{_WORDS_ON}{{2,80}})",
    re.IGNORECASE,
)

_NAMED_EVENT = re.compile(
    r"\b(?P<bound>(?i:before|prior to|until|till|after|since|bevor|nachdem)) (?P<event>[A-Z][\w'’-]{2,30}"
    rf"(?: {_WORDS_ON}{{1,60}})?)"
)

# German says "vor" and "nach" of places and people, too.
_EVENT_NOUN = re.compile(
    r"\b(?!(?:Mein|Rechn|Zeit|Wohn|Kleid)ung)\w*(?:ung|zug|wechsel|urlaub|operation|hochzeit|reise|geburt|unfall|studium"
    r"|konferenz|treffen|ferien|sommer|winter|start|beginn|ende|release|abschluss|umbau|tod|op)\b",
    re.IGNORECASE,
)

_BOUND_BY_DAY = re.compile(
    rf"\b{_BOUNDING}(?: about| around| ungefähr| etwa)?(?: the| de[mnr])? "
    rf"(?P<when>(?:{_DAY}(?: of)? {_SHORT}|{_SHORT.replace('month', 'second')} \d{{1,2}}(?!\d)|"
    rf"(?:{_PART}(?: of|-)? )?{_LONG.replace('month', 'third')}){_YEAR})",
    re.IGNORECASE,
)
