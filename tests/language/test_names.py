"""Which names a text holds, and in what form they are compared (L3, L19)."""

import time

import pytest

from memory.language.subjects import find_entities, normalise_entity


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Jon moved to New York with Ana.", ("jon", "new york", "ana")),
        ("The queue runs on PostgreSQL and C++.", ("postgresql", "c++")),
        ("Painting helps people on Mondays in March.", ()),
        ("Yesterday Jon slept.", ("jon",)),
    ],
)
def test_entities_are_names_in_one_form(text: str, entities: tuple[str, ...]) -> None:
    """L3: small, without a possessive; no weekday, no first word of a sentence."""
    assert find_entities(text=text, known={"Jon"}) == entities


def test_an_entity_has_one_form() -> None:
    assert normalise_entity("  New   York's ") == "new york"


@pytest.mark.parametrize("word", ["x" * 32_768, "X" * 32_768, "aB" * 16_384, "1" * 32_768, "ab_" * 10_922])
def test_names_are_found_in_one_long_word_in_no_time(word: str) -> None:
    """E6 (14): twice as long takes twice as long."""
    began = time.thread_time()
    find_entities(text=f"Anna wrote {word} today.")
    assert time.thread_time() - began < 0.5


def test_what_looks_technical_is_a_name() -> None:
    """E6 (14): as before: a capital or a digit inside, a point, a plus, a number sign."""
    assert find_entities(text="Mit pgVector, C++, node.js, F#, v2, snake_case und SQL8 geht es.", german=True) == (
        "pgvector", "c++", "node.js", "f#", "v2", "snake_case", "sql8",
    )  # fmt: skip
