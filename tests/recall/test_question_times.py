"""Which time a question asks about (B17)."""

import time
from datetime import UTC, datetime

import pytest

from memory.recall.questions.times import EventSide, Occasion, find_values, read_time_asked

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)  # a Thursday


def span(query: str) -> tuple[str, str] | None:
    """Return the first day asked about and the one after the last."""
    asked = read_time_asked(query=query, now=NOW)
    return (
        (asked.start.date().isoformat(), asked.end.date().isoformat()) if asked and asked.start and asked.end else None
    )


@pytest.mark.parametrize(
    ("query", "first", "after"),
    [
        ("What did I plant in May?", "2026-05-01", "2026-06-01"),
        ("what were we paying back in December?", "2025-12-01", "2026-01-01"),
        ("Was war im März 2024 los?", "2024-03-01", "2024-04-01"),
        ("what did a loaf cost at the end of July", "2026-07-21", "2026-08-03"),
        ("Anfang Oktober, wo waren wir da?", "2026-10-01", "2026-10-13"),
        ("What was decided in mid June?", "2026-06-10", "2026-06-22"),
        ("what happened on the 3rd of November", "2026-11-03", "2026-11-05"),
        ("What broke on November 3, 2025?", "2025-11-03", "2025-11-05"),
        ("How was the weekend of 14 November?", "2026-11-14", "2026-11-17"),
        ("how was the weekend of 13 november", "2026-11-14", "2026-11-17"),
        ("What did I do after work yesterday?", "2026-11-25", "2026-11-26"),
        ("what did we plant in may", "2026-05-01", "2026-06-01"),
        ("what did she say yesterday?", "2026-11-25", "2026-11-26"),
        ("what did she say the day before yesterday?", "2026-11-24", "2026-11-25"),
        ("How was last weekend?", "2026-11-21", "2026-11-24"),
        ("What did we plant in 2024?", "2024-01-01", "2025-01-01"),
        ("What did we plant last year?", "2025-01-01", "2026-01-01"),
        ("what was decided on 2026-03-14?", "2026-03-14", "2026-03-15"),
        ("Was hatte ich vorgestern bestellt?", "2026-11-24", "2026-11-25"),
        ("what went wrong last week", "2026-11-16", "2026-11-26"),
        ("What did we do last month?", "2026-10-01", "2026-11-01"),
        ("wen habe ich letzten Dienstag getroffen", "2026-11-24", "2026-11-25"),
        ("what did I tell you two weeks ago?", "2026-11-09", "2026-11-16"),
        ("Was hab ich vor ungefähr drei Monaten gekauft?", "2026-08-13", "2026-09-13"),
        ("who rang 3 days ago?", "2026-11-22", "2026-11-25"),
    ],
)
def test_a_span_of_days_is_read(query: str, first: str, after: str) -> None:
    """B17: a month or day without a year is the latest that has begun."""
    assert span(query) == (first, after)


@pytest.mark.parametrize(
    "query",
    [
        "Who ran the shop before May?",
        "since 1 June, what do we charge?",
        "until when did we rent, until the end of July?",
        "wo haben wir vor dem 1. April gewohnt",
        "May I bring a guest?",
        "What happened on 31 February?",
        "when do we march",
        "Who is Augustus?",
        "Where does Nora live today?",
        "How late may I call?",
        "Which 3 may I take?",
        "May 5 people come?",
        "What am I doing in December?",
        "what happened in Aprıl",
        "last ſaturday",
    ],
)
def test_what_names_no_span_of_its_own_is_none(query: str) -> None:
    """B17."""
    assert span(query) is None


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("When did I first mention the allotment?", Occasion.FIRST),
        ("wann hab ich das erste Mal vom Umzug erzählt", Occasion.FIRST),
        ("Since when have I been a vegetarian?", Occasion.FIRST),
        ("Seit wann messen wir jede Woche?", Occasion.FIRST),
        ("What was the last thing I said about Olaf?", Occasion.LAST),
        ("Was hatte ich zuletzt über das Boot gesagt?", Occasion.LAST),
    ],
)
def test_which_of_several_occasions_is_meant(query: str, order: Occasion) -> None:
    """B17."""
    asked = read_time_asked(query=query, now=NOW)
    assert asked
    assert asked.order == order


@pytest.mark.parametrize(
    "query",
    [
        "When is my first meeting?",
        "Who did my first course?",
        "What is the first name of my sister?",
        "Which tea do I like?",
        "the last name on the bell",
    ],
)
def test_other_words_for_first_and_last_mean_no_time(query: str) -> None:
    """B17."""
    assert read_time_asked(query=query, now=NOW) is None


def bounds(query: str) -> tuple[str | None, str | None] | None:
    asked = read_time_asked(query=query, now=NOW)
    if asked is None or (asked.start is None and asked.end is None):
        return None
    return (
        asked.start.date().isoformat() if asked.start else None,
        asked.end.date().isoformat() if asked.end else None,
    )


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("Who ran the shop before May?", None, "2026-05-01"),
        ("wo haben wir vor dem 1. April gewohnt", None, "2026-04-01"),
        ("What did we pay until the end of March 2025?", None, "2025-04-03"),
        ("Who ran the shop up to, and until, May?", None, None),
        ("what did we pay until May", None, "2026-06-01"),
        ("what did a loaf cost after 3 March 2025?", "2025-03-05", None),
        ("Where have I worked since April?", "2026-04-01", None),
        ("Was war nach März los?", "2026-04-01", None),
        ("What did we say since last week?", "2026-11-16", None),
        ("what did I eat before last Monday", None, "2026-11-23"),
        ("Was habe ich seit gestern gemacht?", "2026-11-25", None),
    ],
)
def test_a_day_or_month_bounds_a_time_that_is_over(query: str, start: str | None, end: str | None) -> None:
    """B17: it is open on the other side."""
    assert bounds(query) == ((start, end) if start or end else None)


@pytest.mark.parametrize(
    ("query", "words", "side"),
    [
        ("Where did I live before the move?", "the move", EventSide.BEFORE),
        ("Who was my boss before I moved to Leeds?", "I moved to Leeds", EventSide.BEFORE),
        ("before the March release, what did we ship?", "the March release", EventSide.BEFORE),
        ("Where did we live before Berlin?", "Berlin", EventSide.BEFORE),
        ("what did I use before switching to Neovim?", "switching to Neovim", EventSide.BEFORE),
        ("Vor dem Umzug: wo habe ich gewohnt?", "dem Umzug", EventSide.BEFORE),
        ("What has changed since the surgery?", "the surgery", EventSide.AFTER),
        ("What did Ines drink after her operation, coffee?", "her operation", EventSide.AFTER),
        ("Wo habe ich vor dem Umzug gewohnt?", "dem Umzug", EventSide.BEFORE),
        ("Wer war mein Chef, bevor wir umgezogen sind?", "wir umgezogen sind", EventSide.BEFORE),
        ("Wer hat mich betreut, bevor Frau Sundermann kam?", "Frau Sundermann kam", EventSide.BEFORE),
        ("what did we drink before Ines came to live here?", "Ines came to live here", EventSide.BEFORE),
    ],
)
def test_an_event_bounds_a_time_that_is_over(query: str, words: str, side: EventSide) -> None:
    """B17: nobody can tell from the words alone when that was."""
    asked = read_time_asked(query=query, now=NOW)
    assert asked
    assert asked.event
    assert (asked.event.words, asked.event.side) == (words, side)
    assert (asked.start, asked.end) == (None, None)


def test_an_event_may_say_when_it_was() -> None:
    asked = read_time_asked(query="Who was my manager until the change in April?", now=NOW)
    assert asked
    assert asked.event
    assert asked.event.start == datetime(2026, 4, 1, tzinfo=UTC)
    assert asked.event.end == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "query",
    [
        "What do I do before committing?",
        "what do I have to do before the meeting?",
        "What should I eat after the run?",
        "Was habe ich vor dem Training zu tun?",
        "How often do I water the ferns until the end of summer?",
        "What must be tested before the release?",
        "Which steps are required before the deploy?",
        "What happens after the build failed?",
        "Who looked after the dog?",
        "What did I say I always do before the meeting?",
        "When is my appointment in December?",
        "Wann ist mein Termin im Dezember?",
        "What is due in March?",
        "Wo war der Brief vor der Tür?",
        "Habe ich Angst vor der Prüfung gehabt?",
        "Was habe ich nach der Adresse gefragt?",
        "Wann bin ich nach Leipzig gezogen?",
        "What is the latest Python version I use?",
        "What could I watch this month?",
        "I'm visiting Paris for the first time, where should I stay?",
        "what did I drink before noon",
    ],
)
def test_habits_and_plans_are_of_no_time(query: str) -> None:
    """B17."""
    assert read_time_asked(query=query, now=NOW) is None


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("Where did I live before the move to Leeds?", "Where did I live ?"),
        ("Before we moved, who was my boss?", ", who was my boss?"),
        ("Wo habe ich vor dem Umzug gewohnt?", "Wo habe ich gewohnt?"),
    ],
)
def test_the_rest_of_the_question_is_what_is_looked_for(query: str, rest: str) -> None:
    """B17: else what tells of the event answers best."""
    asked = read_time_asked(query=query, now=NOW)
    assert asked
    assert asked.event
    assert asked.event.rest == rest


@pytest.mark.parametrize(
    "query", ["ist " * 500 + "nach der x " + "ge" * 3_000, "was " * 900 + "before the " + "x" * 4_000]
)
def test_a_long_query_takes_no_time(query: str) -> None:
    """B17: whoever may read may send 8,000 characters."""
    began = time.monotonic()
    read_time_asked(query=query, now=NOW)
    assert time.monotonic() - began < 0.25


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The standup is on Mondays at 9:30.", {"weekday": {"0"}, "number": {"9:30"}}),
        ("Montags um halb drei.", {"weekday": {"0"}, "number": {"3"}}),
        ("We may march on 3 March.", {"month": {"3"}, "number": {"3"}}),
        ("No one came, so one boat is free.", {}),
    ],
)
def test_numbers_and_days_tell_facts_apart(text: str, values: dict[str, set[str]]) -> None:
    """B16."""
    assert find_values(text) == values
