import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.policy_consolidation import CalibrationPolicy
from memory.domain.similarity import (
    CalibrationError,
    PairLabel,
    Profile,
    fit_profile,
    identity_profile,
    uncross_anchors,
)

POLICY = CalibrationPolicy()
cosines = st.floats(min_value=-1, max_value=1, width=32)
samples = st.lists(cosines, min_size=1, max_size=30)


def spread(low: float, high: float) -> list[float]:
    return [float(value) for value in np.linspace(low, high, 101)]


def fit(*, unrelated: list[float], related: list[float], same: list[float]) -> Profile:
    pairs = {PairLabel.UNRELATED: unrelated, PairLabel.RELATED: related, PairLabel.SAME: same}
    return fit_profile(model="m", similarities=pairs, policy=POLICY)


fitted = st.builds(fit, unrelated=samples, related=samples, same=samples)


def test_each_anchor_lands_on_its_reference() -> None:
    """B8a: medians and quantiles of labelled pairs become .20, .60, .70, .92 and 1."""
    profile = fit(unrelated=spread(-0.2, 0.3), related=spread(0.4, 0.6), same=spread(0.6, 0.8))

    raw = [0.05, float(np.quantile(spread(-0.2, 0.3), 0.99)), 0.42, 0.7, 1.0]
    assert [profile.reference(value) for value in raw] == pytest.approx([0.20, 0.60, 0.70, 0.92, 1.0])
    assert profile.wrong_side_share == pytest.approx(10 / 303)


def test_anchors_that_cross_become_their_mean_and_a_little() -> None:
    """B8a: mean ± 0.005 in raw cosine."""
    assert uncross_anchors(raw=[0.1, 0.5, 0.4, 0.8], gap=0.005) == pytest.approx([0.1, 0.445, 0.455, 0.8])


def test_crossing_is_reported_as_pairs_on_the_wrong_side() -> None:
    """B8a: the profile says how far it is from telling related from unrelated."""
    muddle = fit(unrelated=spread(0.0, 0.9), related=spread(0.0, 0.9), same=spread(0.5, 0.9))

    assert muddle.wrong_side_share is not None
    assert muddle.wrong_side_share > 0.2


def test_an_uncalibrated_model_keeps_its_cosines_and_says_so() -> None:
    """B8a: an unknown model runs uncalibrated."""
    profile = identity_profile(model="unheard-of")

    assert not profile.is_fitted
    assert profile.reference(0.37) == pytest.approx(0.37)


def test_arrays_and_numbers_are_mapped_alike() -> None:
    profile = fit(unrelated=spread(-0.2, 0.3), related=spread(0.4, 0.6), same=spread(0.6, 0.8))
    values = np.array([-0.5, 0.1, 0.65])

    assert profile.reference(values).tolist() == [profile.reference(float(value)) for value in values]


def test_what_lies_beyond_a_cosine_is_clamped() -> None:
    """B8a: rounding may push a cosine past 1."""
    assert identity_profile(model="m").reference(1.0000001) == 1.0


@given(fitted, cosines, cosines)
def test_a_profile_is_monotone(profile: Profile, one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert -1.0 <= profile.reference(low) <= profile.reference(high) <= 1.0


@given(fitted, cosines)
def test_a_threshold_survives_its_inversion(profile: Profile, reference: float) -> None:
    """B8a: thresholds are inverted through the profile for SQL."""
    assert profile.reference(profile.raw(reference)) == pytest.approx(reference, abs=1e-9)


@given(fitted)
def test_a_profile_survives_json(profile: Profile) -> None:
    assert Profile.from_dict(json.loads(json.dumps(profile.to_dict()))) == profile


@given(st.lists(cosines, min_size=1, max_size=6))
def test_uncrossed_anchors_rise_inside_the_cosine_range(raw: list[float]) -> None:
    rising = [-1.0, *uncross_anchors(raw=raw, gap=0.005), 1.0]

    assert all(left < right for left, right in pairwise(rising))


def test_a_label_without_pairs_is_refused_by_name() -> None:
    with pytest.raises(CalibrationError, match="no pairs labelled related"):
        fit(unrelated=[0.1], related=[], same=[0.9])


def test_anchors_that_fall_are_refused() -> None:
    with pytest.raises(CalibrationError, match="must rise"):
        Profile(model="m", anchors=((-1.0, -1.0), (0.5, 0.9), (0.6, 0.8), (1.0, 1.0)), is_fitted=True)
