"""Polarity guard (B8): what looks alike and is not the same claim."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.language.analysis import SpokenText
from memory.language.guard import GuardReason, check_polarity


def _check(left: str, right: str, *, speakers: tuple[str, str] = ("", "")) -> GuardReason | None:
    first, second = SpokenText(text=left, speaker=speakers[0]), SpokenText(text=right, speaker=speakers[1])
    return check_polarity(left=first, right=second).reason


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("The service retries failed calls", "The service does not retry failed calls", GuardReason.NEGATION),
        ("The service retries failed calls", "The service no longer retries failed calls", GuardReason.NEGATION),
        ("Petra smokes", "Petra used to smoke", GuardReason.NEGATION),
        ("Petra smokes", "Petra has stopped smoking", GuardReason.NEGATION),
        ("Petra eats breakfast", "Petra hardly eats breakfast", GuardReason.NEGATION),
        ("Petra takes milk in her tea", "Petra takes her tea without milk", GuardReason.NEGATION),
        ("Petra isst Frühstück", "Petra isst kein Frühstück", GuardReason.NEGATION),
        ("Petra raucht", "Petra raucht nicht mehr", GuardReason.NEGATION),
        ("The lock lasts 5 ms", "The lock lasts 5 s", GuardReason.NUMBER),
        ("We run version 1.5", "We run version 15", GuardReason.NUMBER),
        ("Lunch is at 12:30", "Lunch is at 13:00", GuardReason.NUMBER),
        ("Der Kurs kostet 40 Euro", "Der Kurs kostet 50 Euro", GuardReason.NUMBER),
        ("Petra chose Redis over Kafka", "Petra chose Kafka over Redis", GuardReason.SWAPPED),
        ("The parser feeds the planner", "The planner feeds the parser", GuardReason.SWAPPED),
        ("We copy rows from staging to production", "We copy rows from production to staging", GuardReason.SWAPPED),
        ("Go ist schneller als Ruby", "Ruby ist schneller als Go", GuardReason.SWAPPED),
        ("The gate is open at night", "The gate is closed at night", GuardReason.ANTONYM),
        ("Der neue Ofen ist teurer und billig", "Der neue Ofen ist teuer", GuardReason.ANTONYM),
        ("The lexer is written in C++", "The lexer is written in C", GuardReason.NAME),
        ("Petra owns the parser", "Kemal owns the parser", GuardReason.ALTERNATIVE),
        ("Petra might move to Oslo", "Petra moved to Oslo", GuardReason.HEDGE),
        ("Does Petra like Oslo?", "Petra likes Oslo", GuardReason.QUESTION),
        ("Petra uses tabs except in Python", "Petra uses tabs in Python", GuardReason.LIMIT),
        ("Petra mange une pomme et une poire", "Petra eats an apple and a pear", GuardReason.LANGUAGE),
        ("Petra trinkt morgens Tee", "Petra drinks tea in the morning", GuardReason.LANGUAGE),
    ],
)
def test_guard_refuses_with_its_reason(left: str, right: str, reason: GuardReason) -> None:
    assert _check(left, right) is reason


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The lock lasts 1000 ms", "The lock lasts 1 second"),
        ("Petra never deploys without a backup", "Petra always makes a backup before she deploys"),
        ("Not only Petra but also Kemal knows the password", "Petra and Kemal know the password"),
        ("Petra dislikes olives", "Petra doesn't like olives"),
        ("Kafka is slower than Redis", "Redis is faster than Kafka"),
        ("Kemal reviewed the parser", "The parser was reviewed by Kemal"),
        ("Petra runs the linter before committing", "Petra commits after running the linter"),
        ("Petra has two cats", "Petra has two cats and lives in Graz"),
        ("Petra verzichtet auf Zucker", "Petra nimmt keinen Zucker"),
    ],
)
def test_guard_passes_the_same_claim(left: str, right: str) -> None:
    assert _check(left, right) is None


def test_number_that_only_one_text_has_passes() -> None:
    assert _check("The job retries", "The job retries 3 times") is None


def test_first_person_texts_of_different_speakers_are_refused() -> None:
    assert _check("I like olives", "I like olives", speakers=("Petra", "Kemal")) is GuardReason.SPEAKER


def test_first_person_text_matches_its_speaker_named() -> None:
    assert _check("I like olives", "Petra likes olives", speakers=("Petra", "Petra")) is None


def test_first_person_text_is_not_another_person() -> None:
    assert _check("I like olives", "Kemal likes olives", speakers=("Petra", "Kemal")) is GuardReason.ALTERNATIVE


VOCABULARY = (
    "Petra Kemal likes hates uses not never over before after than 5 7 ms s tabs spaces Python from to Oslo Graz , . "
    "the was by without nicht kein statt und der Tee morgens I my trinkt no longer used to instead of"
)
TEXTS = st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(left=TEXTS, right=TEXTS)
def test_guard_is_symmetric(left: str, right: str) -> None:
    assert _check(left, right) == _check(right, left)


@settings(max_examples=75, deadline=None)
@given(text=st.text(max_size=60))
def test_guard_takes_any_text(text: str) -> None:
    assert _check(text, text) in (None, GuardReason.LANGUAGE)


@pytest.mark.parametrize(
    "text",
    [
        "Postgres listens on 127.0.0.1:5432",
        "The score was 99:99",
        "The stand is 24:30",
        "It costs 1e400 or " + "9" * 5000,
    ],
)
def test_what_only_looks_like_a_time_of_day_is_none(text: str) -> None:
    """E6 (13): a host with its port, a score, a number without end: each is itself, and no other."""
    assert _check(text, text) is None
    assert _check(f"{text} pm", f"{text} am") is None
    assert _check(text, text.replace("9", "8").replace("5432", "5433").replace("24:30", "24:31")) is GuardReason.NUMBER


def test_times_of_day_are_still_read_and_ports_compared() -> None:
    """E6 (13)."""
    assert _check("The shop shuts at 12:30 pm", "The shop shuts at 12:30") is None
    assert _check("The shop shuts at 24:00", "The shop shuts at 12:00 pm") is GuardReason.NUMBER
    assert _check("The gate is on 10.0.0.1:80", "The gate is on 10.0.0.1:81") is GuardReason.NUMBER
