from typing import Any

import pytest

from memory.domain.policy_recall import AssociativePolicy
from memory.domain.scoring import score_associations
from memory.language.subjects import names_any

POLICY = AssociativePolicy()
PLAIN: dict[str, Any] = {
    "similarity": [0.0], "importance": [0.0], "unread_days": [1e9], "stability": [0.0], "is_named": [False],
    "is_insight": [False],
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "score"),
    [
        ({"similarity": [0.8]}, 0.50 * 0.8),
        ({"importance": [0.7]}, 0.20 * 0.7),
        ({"unread_days": [0.0]}, 0.10),
        ({"stability": [2.0]}, 0.05 * 2 / 5),
        ({"stability": [200.0]}, 0.05),
        ({"is_named": [True]}, 0.15),
        ({"similarity": [-0.5]}, 0.0),
    ],
)
def test_each_part_has_its_weight(given: dict[str, list[float]], score: float) -> None:
    """R5."""
    assert score_associations(**{**PLAIN, **given}, policy=POLICY).score == pytest.approx([score])


def test_all_parts_together_make_one() -> None:
    """R5: so that scores are shares, and both kinds of memory compare."""
    full = {name: [1.0] for name in PLAIN} | {"unread_days": [0.0], "stability": [5.0], "is_insight": [False]}
    assert score_associations(**full, policy=POLICY).score == pytest.approx([1.0])


def test_an_insight_has_half_the_score() -> None:
    """R5."""
    given = {**PLAIN, "similarity": [0.8], "is_named": [True], "is_insight": [True]}
    assert score_associations(**given, policy=POLICY).score == pytest.approx([(0.4 + 0.15) / 2])


def test_recency_halves_in_about_thirty_days() -> None:
    """R6."""
    scores = score_associations(**{name: values * 2 for name, values in PLAIN.items()} | {"unread_days": [0.0, 30.0]},
                                policy=POLICY)  # fmt: skip
    assert scores.recency[1] / scores.recency[0] == pytest.approx(0.5, abs=0.01)


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
