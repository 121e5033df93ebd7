"""Polarity guard (B8): what looks alike and is not the same claim.

B8, B8a: its error rates on our own labelled pairs.
B8.4: of a text that shares nothing with a belief nobody need be asked; in doubt somebody is.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.language.analysis import SpokenText
from memory.language.guard import GuardReason, check_polarity, share_something


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


DATA = Path(__file__).parents[1] / "data"
FILES = ("guard_pairs.jsonl", "guard_pairs_second.jsonl")
MAX_FALSE_PASSES = 0.02
MAX_FALSE_REFUSALS = 0.20
Pair = dict[str, str | bool]


def _read_pairs(name: str) -> list[Pair]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def _passes(pair: Pair) -> bool:
    left = SpokenText(text=str(pair["left"]), speaker=str(pair.get("speaker_left", "")))
    right = SpokenText(text=str(pair["right"]), speaker=str(pair.get("speaker_right", "")))
    return check_polarity(left=left, right=right).passed


def _measure(pairs: list[Pair]) -> tuple[float, float]:
    """Return the shares of false passes and of false refusals."""
    counts = Counter((bool(pair["passes"]), _passes(pair)) for pair in pairs)
    should_fail = counts[False, True] + counts[False, False]
    return counts[False, True] / should_fail, counts[True, False] / (counts.total() - should_fail)


@pytest.mark.parametrize("names", [FILES[:1], FILES])
def test_error_rates_stay_under_their_bars(names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """B8: at most 2 % false passes and 20 % false refusals."""
    pairs = [pair for name in names for pair in _read_pairs(name)]
    false_passes, false_refusals = _measure(pairs)
    with capsys.disabled():
        sys.stdout.write(
            f"\nguard, {len(pairs)} pairs: {false_passes:.1%} pass and {false_refusals:.1%} fail falsely\n"
        )
    assert len(pairs) >= 200
    assert false_passes <= MAX_FALSE_PASSES
    assert false_refusals <= MAX_FALSE_REFUSALS


TABS = "Mara prefers tabs over spaces."


def shares(text: str, *, belief: str = TABS, subject: str = "Mara", speaker: str = "") -> bool:
    return share_something(
        episode=SpokenText(text=text, speaker=speaker, language=""),
        belief=SpokenText(text=belief, speaker=subject, language=""),
    )


@pytest.mark.parametrize(
    "text",
    [
        "The deploy on Friday took an hour.",
        "Ben ordered pizza for the whole team.",
        "The bakery opens at eight on Saturdays.",
    ],
)
def test_what_shares_nothing_is_told(text: str) -> None:
    assert not shares(text)
    assert not shares(text, speaker="Ben")


@pytest.mark.parametrize(
    ("text", "belief"),
    [
        ("A tab is one keystroke, and that is that.", TABS),
        ("The team deployed after lunch.", "Ben's deploys go out on Thursday."),
        ("The meeting took 40 minutes.", "The oven of the bakery needs 40 minutes."),
        ("The potter's log tells of it.", "The kiln of the pottery is old."),
        ("The log tells of 6 hours.", "The kiln burns 5 hours."),
        ("Tove was at the fair.", "The new manager is called Tove."),
        ("Die Bäckerei öffnet um acht.", "Die Bäckerei von Ben hat sonntags zu."),
    ],
)
def test_a_word_a_number_or_a_name_is_enough(text: str, belief: str) -> None:
    """B8.4: content words by their stems."""
    assert shares(text, belief=belief, subject="Ben")


def test_the_subject_is_enough() -> None:
    """B8.4: where it speaks, or is spoken of, also in the genitive."""
    assert shares("The deploy took an hour.", speaker="Mara")
    assert shares("The deploy took an hour, thanks to Mara's script.")
    assert shares("The deploy took an hour, says Klein.", subject="Mara Klein")


@pytest.mark.parametrize("subject", ["", "owner", "the user", "User"])
def test_a_subject_that_is_whoever_speaks_may_be_meant(subject: str) -> None:
    assert shares("The deploy took an hour.", subject=subject)


def test_whoever_says_i_without_a_name_may_be_the_subject() -> None:
    assert shares("I had lasagne for lunch.")
    assert not shares("I had lasagne for lunch.", speaker="Ben")


@pytest.mark.parametrize("text", ["El despliegue tardó una hora.", "Die Bäckerei öffnet um acht."])
def test_languages_that_cannot_be_compared_leave_it_open(text: str) -> None:
    assert shares(text)
