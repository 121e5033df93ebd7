"""D5: what is unlike all that is remembered matters more."""

import pytest

from memory.domain.policy import Policy
from memory.domain.similarity import measure_surprise, move_importance

POLICY = Policy().surprise


@pytest.mark.parametrize(
    ("similarities", "moved"),
    [
        ([], 0.65),
        ([0.65], 0.5),
        ([1.0] * 5, 0.2 + 0.6 * 0.0293),
        ([0.0] * 5, 0.8 - 0.6 * 0.0015),
    ],
    ids=["an empty store", "half a surprise", "known", "wholly new"],
)
def test_importance_moves_by_the_surprise(similarities: list[float], moved: float) -> None:
    """D5: by 0.6·(sigmoid(10·(d − 0.35)) − 0.5); +0.15 where nothing is remembered."""
    surprise = measure_surprise(similarities=similarities, policy=POLICY)
    assert move_importance(importance=0.5, surprise=surprise, policy=POLICY) == pytest.approx(moved, abs=1e-3)


def test_only_the_nearest_five_count() -> None:
    """D5: the mean distance to the 5 nearest."""
    surprise = measure_surprise(similarities=[0.8] * 5 + [0.0] * 5, policy=POLICY)
    assert surprise.distance == pytest.approx(0.2)


@pytest.mark.parametrize(("nearest", "flagged"), [(0.92, True), (0.919, False)])
def test_a_near_duplicate_is_flagged(nearest: float, flagged: bool) -> None:
    """D5: from 0.92 to a neighbour."""
    surprise = measure_surprise(similarities=[nearest, 0.1], policy=POLICY)
    assert surprise.is_near_duplicate is flagged


@pytest.mark.parametrize(("before", "similarity", "after"), [(0.1, 1.0, 0.05), (0.95, 0.0, 1.0)])
def test_importance_stays_within_its_bounds(before: float, similarity: float, after: float) -> None:
    """D5: 0.05 to 1."""
    surprise = measure_surprise(similarities=[similarity] * 5, policy=POLICY)
    assert move_importance(importance=before, surprise=surprise, policy=POLICY) == after
