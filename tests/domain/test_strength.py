"""How a confidence fades when nothing is said any more."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.policy_beliefs import ReflectionPolicy, StrengthPolicy
from memory.domain.scoring import effective_confidence, grow_stability, retrieval_strength

POLICY = StrengthPolicy()
spans = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))
stabilities = st.floats(min_value=1, max_value=365)


def strength(*, accessed: float | None, created: float = 100.0, stability: float = 1.0) -> float:
    """Return the strength `accessed` and `created` days after those moments."""
    return retrieval_strength(
        stability=stability,
        since_creation=timedelta(days=created),
        since_access=None if accessed is None else timedelta(days=accessed),
        policy=POLICY,
    )


def test_strength_falls_to_one_in_e_after_a_week() -> None:
    """B5: e^(−days/(7·S))."""
    assert strength(accessed=7) == pytest.approx(math.exp(-1))


def test_stability_stretches_the_decay() -> None:
    """B5: S = 2 takes two weeks to the same strength."""
    assert strength(accessed=14, stability=2) == pytest.approx(strength(accessed=7))


def test_an_unread_belief_starts_at_half() -> None:
    """B5: never accessed: 0.5·e^(−days since creation/(7·S))."""
    assert strength(accessed=None, created=0) == 0.5
    assert strength(accessed=None, created=7) == pytest.approx(0.5 * math.exp(-1))


def test_a_belief_read_yesterday_is_stronger_than_an_unread_one() -> None:
    """B5: the reason for a unit of seven days."""
    assert strength(accessed=1) > strength(accessed=None, created=0)


def test_access_grows_stability_by_the_time_waited() -> None:
    """B5: S·(1 + 0.1·ln(1 + days))."""
    grown = grow_stability(stability=2.0, waited=timedelta(days=9), policy=POLICY)

    assert grown == pytest.approx(2 * (1 + 0.1 * math.log(10)))


def test_access_in_the_same_moment_grows_nothing() -> None:
    assert grow_stability(stability=2.0, waited=timedelta(0), policy=POLICY) == 2.0


def test_a_clock_set_back_neither_strengthens_nor_fails() -> None:
    assert strength(accessed=-3) == 1.0
    assert grow_stability(stability=1.0, waited=timedelta(days=-3), policy=POLICY) == 1.0


@given(stabilities, spans, spans)
def test_strength_is_bounded_and_falls_with_time(stability: float, one: timedelta, other: timedelta) -> None:
    """B5: monotone in time, inside 0..1."""
    early, late = sorted((one, other))
    first, second = (
        retrieval_strength(stability=stability, since_creation=late, since_access=span, policy=POLICY)
        for span in (early, late)
    )

    assert 0.0 <= second <= first <= 1.0


@given(stabilities, spans)
def test_stability_never_shrinks_nor_passes_its_cap(stability: float, waited: timedelta) -> None:
    """B5: the cap is 365."""
    assert stability <= grow_stability(stability=stability, waited=waited, policy=POLICY) <= 365.0


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
