"""What a query says of itself, and which of its words say something (B16)."""

import time

import pytest

from memory.recall.questions.words import (
    asks_of_own,
    is_telling,
    names_any,
    names_something,
    sets_task,
    telling_stems,
)


@pytest.mark.parametrize(
    "query",
    [
        "Write a limerick about two owls.",
        "please translate 'good night' into Danish",
        "Can you explain how tides work?",
        "Fasse den Faust in drei Sätzen zusammen.",
        "Bitte schreib ein Haiku über Regen",
    ],
)
def test_a_piece_of_work_is_a_task(query: str) -> None:
    """B16."""
    assert sets_task(query)


@pytest.mark.parametrize(
    "query",
    [
        "Who explains the tides to us?",
        "What does Nora write?",
        "Wer schreibt das Protokoll?",
        "the list of guests",
        "Tell me who my manager is",
        "Can you check when my lease ends?",
        "List my allergies",
    ],
)
def test_a_question_is_none(query: str) -> None:
    """B16."""
    assert not sets_task(query)


@pytest.mark.parametrize(
    "query",
    ["When is my shift?", "Where do we meet on Fridays?", "Which tea do I drink?", "What is her doctor called?",
     "Wer betreut meine Arbeit?", "Was mag ich nicht?"],
)  # fmt: skip
def test_a_question_about_somebodys_own_matters(query: str) -> None:
    """B16."""
    assert asks_of_own(query)


@pytest.mark.parametrize(
    "query",
    ["How do I reverse a list?", "Give me a regular expression for dates.", "Wie kann ich eine Datei umbenennen?",
     'What is the subject of "my brother sings"?', "Where can I read about volcanoes?"],
)  # fmt: skip
def test_what_anybody_might_ask(query: str) -> None:
    """B16: what stands in quotation marks is not said by whoever asks."""
    assert not asks_of_own(query)


@pytest.mark.parametrize(
    ("word", "tells"),
    [
        ("harbour", True),
        ("Oslo", True),
        ("2026", True),
        ("17", False),
        ("week", False),
        ("explain", False),
        ("Bitte", False),
    ],
)
def test_words_that_say_something_by_being_shared(word: str, tells: bool) -> None:
    """B16: none of everyday, none of tasks, no short number."""
    assert is_telling(word) is tells


@pytest.mark.parametrize(
    ("query", "names"),
    [("yes please", False), ("Ja, bitte mach das so", False), ("ok thanks", False), ("and now?", False),
     ("the ferry?", True), ("What is my job?", True), ("Where do I work?", True), ("What is her name?", True),
     ("what do I do before committing", True), ("wann fährt die Fähre", True)],
)  # fmt: skip
def test_what_names_nothing_is_about_nothing(query: str, names: bool) -> None:
    """B16."""
    assert names_something(query) is names


def test_openings_of_quotations_are_read_in_no_time() -> None:
    """B16: of the longest query."""
    began = time.monotonic()
    assert not asks_of_own("„" * 8_000)
    assert time.monotonic() - began < 0.1


@pytest.mark.parametrize("word", ["who'd", "what's", "that’s", "we're"])
def test_a_contraction_tells_no_more_than_its_word(word: str) -> None:
    """B16."""
    assert not is_telling(word)
    assert is_telling("Marchetti's")


def test_stems_of_everyday_words_tell_nothing() -> None:
    """B16: lists hold whole words."""
    assert telling_stems("for example, the ferries", "en") == {"ferry"}


@pytest.mark.parametrize(
    ("query", "names", "is_named"),
    [
        ("does Mara like tea?", ["mara"], True),
        ("what about MARA's tea", ["Mara"], True),
        ("Tamara likes tea", ["Mara"], False),
        ("who runs the night train", ["Night Train"], True),
        ("a train at night", ["night train"], False),
        ("C++ or Rust", ["", "rust"], True),
        ("what is it", ["it", "The"], False),
        ("anything", [], False),
        ("Grüße von Jürgen", ["JÜRGEN"], True),
    ],
)
def test_a_query_names_a_subject_word_for_word(query: str, names: list[str], is_named: bool) -> None:
    """R6: in any case, and never by a word that every query has."""
    assert names_any(query=query, names=names) is is_named
