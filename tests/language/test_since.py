"""E1, C1: since when a sentence says that something holds."""

from datetime import date

import pytest

from memory.language.dates import holds_since

MONDAY = date(2026, 3, 2)


@pytest.mark.parametrize(
    ("sentence", "day"),
    [
        ("Haven't touched coffee since February.", date(2026, 2, 1)),
        ("I have lived here since March 2019.", date(2019, 3, 1)),
        ("From April 1st my manager will be Ravi.", date(2026, 4, 1)),
        ("From the 3rd of May we meet at ten.", date(2026, 5, 3)),
        ("Starting in September I'll be reporting to Jonas.", date(2026, 9, 1)),
        ("Starting in January I report to Jonas.", date(2027, 1, 1)),
        ("As of 2026-03-20 the office is closed.", date(2026, 3, 20)),
        ("Starting tomorrow I work from home.", date(2026, 3, 3)),
        ("From next month on it costs 12 euros.", date(2026, 4, 1)),
        ("Starting next week we release on Tuesdays.", date(2026, 3, 9)),
        ("As of January 15 my manager is Ravi.", date(2026, 1, 15)),
        ("As of July 1 my manager is Ravi.", date(2026, 7, 1)),
        ("As of Monday I work for the harbour.", date(2026, 3, 9)),
        ("There are seven of us since Friday.", date(2026, 2, 27)),
        ("My rent goes up to 900 euros in July.", date(2026, 7, 1)),
        ("Die Miete steigt im Juli auf 900 Euro.", date(2026, 7, 1)),
        ("Ab Juli ist meine Chefin Frau Lenz.", date(2026, 7, 1)),
        ("Seit dem 3. Februar trinke ich nur noch Tee.", date(2026, 2, 3)),
        ("Ab nächster Woche proben wir mittwochs.", date(2026, 3, 9)),
    ],
)
def test_a_day_that_is_named(sentence: str, day: date) -> None:
    assert holds_since(sentence=sentence, said_on=MONDAY) == day


@pytest.mark.parametrize(
    "sentence",
    [
        "My manager is Dana.",
        "We moved the meeting from Friday to Monday.",
        "The flight from May Pen takes an hour.",
        "From February 31st it is closed.",
        "I got a letter from Augusta.",
        "The kiln is serviced in July.",
        "We were moving offices in February.",
        "The sun rises at five in June.",
        "The shift changes every week, in December too.",
    ],
)
def test_no_day(sentence: str) -> None:
    assert holds_since(sentence=sentence, said_on=MONDAY) is None


def test_without_a_day_of_speaking_there_is_none() -> None:
    assert holds_since(sentence="Since February I run.", said_on=None) is None
