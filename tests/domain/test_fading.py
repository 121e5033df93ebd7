"""How a confidence fades when nothing is said any more."""

from datetime import timedelta

import pytest

from memory.domain.policy_beliefs import ReflectionPolicy
from memory.domain.scoring import effective_confidence


@pytest.mark.parametrize(
    ("days", "stability", "left"),
    [(0, 1.0, 0.8), (30, 1.0, 0.4), (90, 1.0, 0.1), (60, 2.0, 0.4), (150, 5.0, 0.4), (150, 300.0, 0.4), (-5, 1.0, 0.8)],
)
def test_confidence_halves_every_thirty_days_of_its_stability(days: int, stability: float, left: float) -> None:
    """R7d: 0.8 · ½^(days/(30·min(S, 5)))."""
    told = effective_confidence(
        confidence=0.8, since_evidence=timedelta(days=days), stability=stability, policy=ReflectionPolicy()
    )
    assert told == pytest.approx(left)
