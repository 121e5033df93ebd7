"""Which day a relative day is, who somebody says they are, and whom a claim is about."""

from datetime import date

import pytest

from memory.domain.policy_memories import RememberPolicy
from memory.domain.taxonomy import Role
from memory.language.dates import date_sentence
from memory.language.facts import find_facts, read_facts
from memory.language.subjects import as_introduction

WEDNESDAY = date(2026, 11, 25)


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("Mia moved yesterday.", "Mia moved yesterday (2026-11-24)."),
        ("Mia moved the day before yesterday.", "Mia moved the day before yesterday (2026-11-23)."),
        ("Mia flies tomorrow morning at 7.", "Mia flies tomorrow morning (2026-11-26) at 7."),
        ("Mia meets Tom next Friday.", "Mia meets Tom next Friday (2026-11-27)."),
        ("Mia meets Tom next Wednesday.", "Mia meets Tom next Wednesday (2026-12-02)."),
        ("Mia met Tom last Wednesday.", "Mia met Tom last Wednesday (2026-11-18)."),
        ("Mia meets Tom this Wednesday.", "Mia meets Tom this Wednesday (2026-11-25)."),
        ("Mia came two days ago.", "Mia came two days ago (2026-11-23)."),
        ("Mia moved last month, and last year.", "Mia moved last month (2026-10), and last year (2025)."),
        ("Mia moves next month.", "Mia moves next month (2026-12)."),
        ("Gestern Abend war Mia in Rom.", "Gestern Abend (2026-11-24) war Mia in Rom."),
        ("Mia kommt morgen früh.", "Mia kommt morgen früh (2026-11-26)."),
        ("Morgen muss Mia zum Arzt.", "Morgen (2026-11-26) muss Mia zum Arzt."),
        ("Mia war vor drei Tagen in Rom.", "Mia war vor drei Tagen (2026-11-22) in Rom."),
        ("Mia fährt nächsten Freitag heim.", "Mia fährt nächsten Freitag (2026-11-27) heim."),
        ("Mia ist letztes Jahr umgezogen.", "Mia ist letztes Jahr (2025) umgezogen."),
        ("Mia kam vorgestern.", "Mia kam vorgestern (2026-11-23)."),
        ("Das ist morgen Abend fällig.", "Das ist morgen Abend (2026-11-26) fällig."),
        ("Es regnet. Heute Abend kommt Mia.", "Es regnet. Heute Abend (2026-11-25) kommt Mia."),
        ("Mia came 12 days ago.", "Mia came 12 days ago (2026-11-13)."),
        ("Mara: Yesterday it rained.", "Mara: Yesterday (2026-11-24) it rained."),
        ("The date moved to next Friday.", "The date moved to next Friday (2026-11-27)."),
    ],
)
def test_a_relative_day_gets_its_date(text: str, dated: str) -> None:
    """L3: by the day on which it was said, a Wednesday."""
    assert date_sentence(text=text, said_on=WEDNESDAY) == dated


@pytest.mark.parametrize(
    "text",
    [
        "Mia runs every Friday.", "Mia comes on Friday.", "Mia read it in 3 days.", "Mia was there last week.",
        "Yesterday's build failed.", "Mia flies tomorrow (2026-11-26).", 'The sign says "closed tomorrow".',
        "Mia trinkt jeden morgen Tee.", "Am Morgen trinkt Mia Tee.",
        "Mia prefers today-only offers.", "Mia came one hundred and two days ago.", "Mia came 102 days ago.",
        "Mia came 3 to 5 days ago.", "Mia came 3 - 5 days ago.", "Mia came twenty two days ago.",
        "Mia came about two days ago.", "Mia came more than two days ago.", "Mia came 2.5 days ago.",
        "Mia works as if there is no tomorrow.", "Für Mia gibt es kein morgen.", "Mia reads USA Today.",
        "The Day After Tomorrow is a film.", "Mia saw The Day Before Yesterday.",
    ],
)  # fmt: skip
def test_what_names_no_one_day_is_left_alone(text: str) -> None:
    """L3: nothing is made up."""
    assert date_sentence(text=text, said_on=WEDNESDAY) == text


def test_without_a_day_nothing_is_dated() -> None:
    """L3."""
    assert date_sentence(text="Mia moved yesterday.", said_on=None) == "Mia moved yesterday."


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I am Mia.", ["The user's name is Mia."]),
        ("Hi, I'm Mia!", ["The user's name is Mia."]),
        ("My name's Xochitl.", ["The user's name is Xochitl."]),
        ("Ich bin Mia.", ["Nutzers Name ist Mia."]),
        ("Hallo, ich heiße Ümit.", ["Nutzers Name ist Ümit."]),
        ("I am German.", ["The user is German."]),
        ("I'm Catholic.", ["The user is Catholic."]),
        ("Ich bin Lehrer.", ["Nutzer ist Lehrer."]),
        ("I am tired.", []),
        ("I moved to Bergen yesterday.", ["The user moved to Bergen yesterday (2026-11-24)."]),
    ],
)
def test_a_turn_tells_a_name_and_a_day(said: str, facts: list[str]) -> None:
    """L3."""
    found = find_facts(text=said, role=Role.USER, number=1, said_on=WEDNESDAY)
    assert [fact.text for fact in found] == facts


def test_an_assistant_introduces_nobody() -> None:
    """L3: "I'm Claire" of a model is no name of the user."""
    assert find_facts(text="I'm Clara.", role=Role.ASSISTANT, number=1) == []


def test_a_name_that_is_known_needs_no_list() -> None:
    """L3."""
    assert as_introduction(sentence="I am Quetzal.", known={"Quetzal"}) == "My name is Quetzal."
    assert as_introduction(sentence="I am Quetzal.") == "I am Quetzal."


@pytest.mark.parametrize(
    ("text", "speaker", "subject"),
    [
        ("My sister Anna lives in Rome.", "", "anna"),
        ("Meine Schwester Xenia wohnt in Rom.", "", "xenia"),
        ("Anna lives in Rome.", "", "anna"),
        ("My sister Anna lives in Rome.", "Mia", "anna"),
        ("I live in Rome.", "Mia", "mia"),
        ("I live in Rome.", "", "owner"),
        ("My sister lives in Rome.", "", "owner"),
        ("Tests run nightly.", "", "owner"),
        ("Max lives in Rome.", "", "max"),
        ("Max out the volume on boot.", "", "owner"),
        ("Max retries per job are three.", "", "owner"),
        ("Ben and Jerry's is closed on Mondays.", "", "owner"),
        ("Chloe and I live in Rome.", "Mia", "mia"),
        ("Our manager Tom handles tickets.", "", "tom"),
        ("Our manager Jira handles tickets.", "", "owner"),
    ],
)
def test_a_claim_is_about_whom_it_begins_with(text: str, speaker: str, subject: str) -> None:
    """R1, R13."""
    language = "de" if text.startswith("Meine") else "en"
    [fact, *_] = read_facts(text=text, speaker=speaker, language=language, policy=RememberPolicy())
    assert fact.subject == subject


def test_what_is_remembered_is_dated() -> None:
    """R1: by the day on which it occurred."""
    [fact] = read_facts(
        text="I moved to Bergen yesterday.", speaker="", language="en", policy=RememberPolicy(), said_on=WEDNESDAY
    )
    assert fact.text == "I moved to Bergen yesterday (2026-11-24)."


@pytest.mark.parametrize("version", ["1.2.34", "18.04.25", "2.0.1-rc.1", "3.14"])
def test_a_version_behind_a_day_is_no_date(version: str) -> None:
    """E6 (12): "yesterday" is dated all the same."""
    told = date_sentence(text=f"We shipped it yesterday, {version} is out.", said_on=WEDNESDAY)
    assert told == f"We shipped it yesterday (2026-11-24), {version} is out."


@pytest.mark.parametrize("day", ["24.11.2026", "24.11.", "24. November", "the 24th"])
def test_a_day_that_is_dated_already_is_left_alone(day: str) -> None:
    """E6 (12)."""
    assert date_sentence(text=f"We shipped it yesterday, {day}", said_on=WEDNESDAY) == f"We shipped it yesterday, {day}"


@pytest.mark.parametrize("said_on", [date.min, date.max])
def test_where_time_ends_no_day_is_dated(said_on: date) -> None:
    """E6: there may be none before, or after."""
    assert date_sentence(text="Yesterday, today, tomorrow.", said_on=said_on) == "Yesterday, today, tomorrow."
