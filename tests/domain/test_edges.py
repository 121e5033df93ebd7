"""L19: edges gain confidence when they are seen again, lose it when they are not, and link more the rarer a name."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.graph import (
    EdgeKind,
    EdgeState,
    begin_edge,
    decay_edge,
    known_confidence,
    reinforce_edge,
    weigh_shared_names,
)
from memory.domain.policy_memories import GraphPolicy
from memory.language.sentences import find_cause

SEEN = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = GraphPolicy()


def after(days: float) -> datetime:
    return SEEN + timedelta(days=days)


def faded(confidence: float | None, *, days: float) -> float | None:
    standing = EdgeState(confidence=confidence, decays_at=after(180))
    return decay_edge(standing=standing, now=after(days), policy=POLICY).confidence


@pytest.mark.parametrize(
    ("days", "confidence"), [(0, 0.7), (90, 0.7), (179.9, 0.7), (180, 0.6), (269, 0.6), (270, 0.5), (10_000, 0.1)]
)
def test_an_edge_loses_a_tenth_for_each_window_after_its_grace(days: float, confidence: float) -> None:
    """L19: 90 days of grace, then 0.1 for each further 90 days that are over, never below 0.1."""
    edge = begin_edge(kind=EdgeKind.ENTITY, seen_at=SEEN, policy=POLICY)
    assert decay_edge(standing=edge, now=after(days), policy=POLICY).confidence == confidence


@given(
    confidence=st.none() | st.floats(0, 1).map(lambda value: round(value, 4)),
    looks=st.lists(st.floats(0, 4_000), max_size=60),
    end=st.floats(0, 4_000),
)
def test_decay_is_the_same_at_any_cadence(confidence: float | None, looks: list[float], end: float) -> None:
    """L19: whether one looks daily, weekly, at odd moments or once."""
    begun = EdgeState(confidence=confidence, decays_at=after(180))
    often = begun
    for days in sorted(look for look in looks if look <= end):
        often = decay_edge(standing=often, now=after(days), policy=POLICY)
        assert decay_edge(standing=often, now=after(days), policy=POLICY) == often
    assert decay_edge(standing=often, now=after(end), policy=POLICY) == decay_edge(
        standing=begun, now=after(end), policy=POLICY
    )


@pytest.mark.parametrize("cadence", [1, 7, 30, 365, 1_500])
def test_daily_weekly_or_once_makes_no_difference(cadence: int) -> None:
    """L19."""
    standing = EdgeState(confidence=0.85, decays_at=after(180))
    for days in range(0, 1_501, cadence):
        standing = decay_edge(standing=standing, now=after(days), policy=POLICY)
    assert decay_edge(standing=standing, now=after(1_500), policy=POLICY).confidence == 0.1


def test_what_lies_below_the_floor_is_not_raised_to_it() -> None:
    assert faded(0.04, days=5_000) == 0.04


def test_an_edge_without_a_confidence_counts_as_sure_and_fades_from_there() -> None:
    """L19: no confidence → 1.0."""
    assert (known_confidence(None), faded(None, days=180)) == (1.0, 0.9)


@pytest.mark.parametrize(("before", "confidence"), [(0.7, 0.75), (0.98, 1.0), (1.0, 1.0), (None, 1.0)])
def test_an_edge_that_is_seen_again_gains_a_twentieth(before: float | None, confidence: float) -> None:
    """L19: +0.05, cap 1, and its grace begins anew."""
    again = reinforce_edge(confidence=before, seen_at=after(100), policy=POLICY)
    assert again == EdgeState(confidence=confidence, decays_at=after(280))


def test_a_rare_name_links_more_than_a_common_one() -> None:
    """1/(1 + ln 2) = 0.59; two names: 1 − (1 − 0.59)(1 − 0.126)."""
    alone, common = weigh_shared_names(said=[2]), weigh_shared_names(said=[1_000])
    assert alone == pytest.approx(1 / (1 + math.log(2)))
    assert common == pytest.approx(0.1264, abs=1e-4)
    assert weigh_shared_names(said=[2, 1_000]) == pytest.approx(1 - (1 - alone) * (1 - common))


def test_a_cause_is_the_memory_that_says_it() -> None:
    """L19: in the same words, or in most of them; the first of equals."""
    texts = ["The train was late.", "It rained all night.", "it rained  all night", "All night the heavy rain fell."]
    assert find_cause(cause="It rained all night", texts=texts, least=0.6) == (1, 1.0)
    assert find_cause(cause="The heavy rain fell early", texts=texts, least=0.6) == (3, 0.75)


def test_a_cause_that_no_memory_says_is_none() -> None:
    assert find_cause(cause="The bridge was closed", texts=["The train was late."], least=0.6) is None
    assert find_cause(cause="it is", texts=["It is so."], least=0.6) is None
    assert find_cause(cause="It rained", texts=[], least=0.6) is None
