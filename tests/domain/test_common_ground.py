"""B8.4: of a text that shares nothing with a belief nobody need be asked; in doubt somebody is."""

import pytest

from memory.language.analysis import SpokenText
from memory.language.guard import share_something

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
