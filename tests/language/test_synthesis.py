"""B10: extractive synthesis chooses one sentence that can stand for its cluster."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.language.subjects import Timeframe
from memory.language.synthesis import SourceText, extract_statement


def embed_words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts as unit vectors of word counts, hashed by their letters."""
    rows = np.zeros((len(texts), 512), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", "").split():
            row[sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 512] += 1
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-9), dtype=np.float32)


def gather(*texts: str, speaker: str = "", language: str = "") -> list[SourceText]:
    """Make a cluster of the texts."""
    return [
        SourceText(id=f"ep_{index}", text=text, speaker=speaker, language=language) for index, text in enumerate(texts)
    ]


def test_most_central_sentence_is_chosen() -> None:
    """B10: the sentence nearest to all wins."""
    found = extract_statement(
        episodes=gather(
            "Mara prefers tea over coffee at work.",
            "Mara prefers tea over coffee.",
            "Mara prefers tea over coffee at home.",
        ),
        embed=embed_words,
    )

    assert found is not None
    assert found.statement == "Mara prefers tea over coffee."
    assert (found.subject, found.context, found.timeframe) == ("Mara", "general", Timeframe.CURRENT)


def test_speaker_takes_the_place_of_the_first_person() -> None:
    """B10: a turn's statement names who said it, without greeting and picture."""
    found = extract_statement(
        episodes=gather(
            "Gina: Hey Jon! I love dancing in the studio. [shares a photo: a studio]",
            "Gina: Wow, I love dancing in the studio.",
            "Gina: Yeah, I love dancing. Do you?",
            speaker="Gina",
        ),
        embed=embed_words,
    )

    assert found is not None
    assert found.statement == "Gina loves dancing in the studio."
    assert found.subject == "Gina"


def test_standing_habit_is_preferred_to_one_day() -> None:
    """B10: a habit says more about the cluster than one dated event."""
    found = extract_statement(
        episodes=gather(
            "Yesterday the team deployed on Tuesday.",
            "The team always deploys on Tuesday.",
            "The team deployed on Tuesday last week.",
        ),
        embed=embed_words,
    )

    assert found is not None
    assert found.statement == "The team always deploys on Tuesday."
    assert found.timeframe is Timeframe.ALWAYS


def test_leading_date_is_dropped() -> None:
    """B10: what held on a day is told without the day."""
    found = extract_statement(episodes=gather("Today, the customer wants the report as PDF."), embed=embed_words)

    assert found is not None
    assert found.statement == "The customer wants the report as PDF."


def test_german_cluster_keeps_its_language() -> None:
    """B10: the language of the episodes is kept."""
    found = extract_statement(
        episodes=gather("Heute trinkt Jonas keinen Kaffee.", "Jonas trinkt nie Kaffee.", language="de"),
        embed=embed_words,
    )

    assert found is not None
    assert (found.statement, found.language) == ("Jonas trinkt nie Kaffee.", "de")


def test_what_most_episodes_say_is_preferred_to_what_one_adds() -> None:
    """B10: only what the episodes support: an aside of one episode is left out."""
    found = extract_statement(
        episodes=gather(
            "Mara prefers the train over the car, since the train has a buffet.",
            "Mara prefers the train over the car.",
            "Mara prefers the train over the car even in winter.",
        ),
        embed=embed_words,
    )

    assert found is not None
    assert found.statement == "Mara prefers the train over the car."


def test_trailing_clause_is_cut_off_but_no_condition() -> None:
    """B10: generalised only as far as the text allows."""
    cut = extract_statement(
        episodes=gather("Mara is opening a studio because the roof of the old one leaks."), embed=embed_words
    )
    kept = extract_statement(episodes=gather("Mara opens the studio unless rain is forecast."), embed=embed_words)

    assert cut is not None
    assert kept is not None
    assert cut.statement == "Mara is opening a studio."
    assert kept.statement == "Mara opens the studio unless rain is forecast."


@pytest.mark.parametrize(
    ("text", "subject", "predicate"),
    [
        ("All tests of the importer must finish in time.", "All tests of the importer", "must finish in time"),
        ("Kolja from the harbour wants a timetable.", "Kolja from the harbour", "wants a timetable"),
        ("Preise stehen immer mit zwei Stellen.", "Preise", "stehen immer mit zwei Stellen"),
        ("Every Wednesday evening Mia swims there.", "Mia", "Every Wednesday evening Mia swims there"),
        ("For Norddeich Mia prefers the train.", "Mia", "For Norddeich Mia prefers the train"),
        ("Painting's a fun way to relax.", "Painting", "is a fun way to relax"),
    ],
)
def test_statement_is_parted_into_subject_and_predicate(text: str, subject: str, predicate: str) -> None:
    """B2: a card has a subject and a predicate."""
    found = extract_statement(episodes=gather(text), embed=embed_words)

    assert found is not None
    assert (found.subject, found.predicate) == (subject, predicate)


@pytest.mark.parametrize(
    "texts",
    [
        ("Thanks, Melanie!", "Thank you so much!", "Thanks a lot for the help."),
        ("What's up?", "How are you?", "Anything new?"),
        ("You got this!", "Keep going!", "Go for it!"),
        (),
    ],
)
def test_cluster_without_a_statement_gives_none(texts: tuple[str, ...]) -> None:
    """B8: where nothing can stand alone, nothing is made up."""
    assert extract_statement(episodes=gather(*texts, speaker="Gina"), embed=embed_words) is None


def test_order_and_ids_of_episodes_do_not_matter() -> None:
    """B8: the same cluster gives the same statement."""
    texts = ["Mara prefers tea.", "Mara prefers green tea.", "Mara prefers tea from Assam."]

    forward = extract_statement(episodes=gather(*texts), embed=embed_words)
    backward = extract_statement(episodes=gather(*reversed(texts)), embed=embed_words)

    assert forward is not None
    assert backward is not None
    assert forward.statement == backward.statement
