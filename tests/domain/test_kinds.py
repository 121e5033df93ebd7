"""L5: episodes and notes, by a date at hand, the category and the tags."""

import pytest

from memory.domain.taxonomy import Category, Kind, kind_of


@pytest.mark.parametrize("text", ["Moved on 2026-03-01.", "Am 1.3.2026 umgezogen", "3/1/26: moved", "(2026-03-01)"])
def test_a_date_makes_an_episode_whatever_else_is_said(text: str) -> None:
    assert kind_of(text=text, category="preference", tags=["note"]) is Kind.EPISODE


@pytest.mark.parametrize(
    "text",
    [
        "We run 1.2.34.5.", "Python 3.11.2 it is", "id 12026-03-011", "10.0.0.1", "v1.2.34", "half, 1/2",
        "ratio 1/2.34", "I moved yesterday.", "file-2026-03-01-a",
    ],
)  # fmt: skip
def test_what_is_no_date_in_figures_is_none(text: str) -> None:
    assert kind_of(text=text, category="preference") is Kind.NOTE


@pytest.mark.parametrize("category", list(Category))
def test_the_category_decides_before_the_tags(category: Category) -> None:
    notes = {"preference", "decision", "commitment", "principle", "correction", "relationship", "skill"}
    by_tag = category in {"fact", "entity"}
    assert (kind_of(text="x", category=category, tags=["meeting"]) is Kind.NOTE) == (category in notes)
    assert (kind_of(text="x", category=category, tags=["Rule"]) is Kind.NOTE) == (category in notes or by_tag)


def test_a_note_tag_beats_all_others_and_nothing_is_an_episode() -> None:
    assert kind_of(text="x", tags=["meeting", "decision"]) is Kind.NOTE
    assert kind_of(text="She always prefers tabs.") is Kind.EPISODE
