"""The scores of calibration, against figures worked by hand."""

from xml.etree import ElementTree

import pytest

from benchmarks.quality.reliability import (
    Sample,
    base_rate_score,
    bootstrap_brier,
    brier_score,
    reliability_bins,
)
from benchmarks.quality.reliability_picture import draw_reliability


def samples(*pairs: tuple[float, bool], history: int = 0) -> list[Sample]:
    return [Sample(history=history, phase="steady", confidence=value, is_true=true) for value, true in pairs]


def test_brier_score_is_the_mean_squared_distance() -> None:
    """(0.2² + 0.7² + 0.5²) / 3 = (0.04 + 0.49 + 0.25) / 3 = 0.26."""
    scored = brier_score(samples((0.8, True), (0.7, False), (0.5, True)))

    assert scored == pytest.approx(0.26)


def test_base_rate_is_what_the_share_of_true_samples_would_score() -> None:
    """Three of four true: 0.75 · 0.25 = 0.1875, and always saying 0.75 scores just that."""
    believed = samples((0.9, True), (0.8, True), (0.7, True), (0.6, False))
    constant = samples((0.75, True), (0.75, True), (0.75, True), (0.75, False))

    assert base_rate_score(believed) == pytest.approx(0.1875)
    assert brier_score(constant) == pytest.approx(0.1875)


def test_bins_hold_their_lower_edge_and_the_last_holds_one() -> None:
    bins = reliability_bins(samples((0.5, True), (0.59, False), (0.6, True), (1.0, True)))

    assert [(one.low, one.high, one.true.hits, one.true.total) for one in bins] == [
        (0.5, 0.6, 1, 2),
        (0.6, 0.7, 1, 1),
        (0.9, 1.0, 1, 1),
    ]
    assert bins[0].mean_confidence == pytest.approx(0.545)


def test_a_bin_knows_the_wilson_interval_of_its_share() -> None:
    """8 of 10 true: centre (0.8 + 1.9208/10) / 1.38415 = 0.71675, half width 0.22658 (Wilson 1927)."""
    share = reliability_bins(samples(*[(0.75, True)] * 8, *[(0.75, False)] * 2))[0].true

    assert share.interval() == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_bootstrap_draws_whole_histories() -> None:
    """Of two histories, one without loss and one of loss 1, a resample scores 0, ½ or 1: a quarter each at the ends."""
    right, wrong = samples(*[(1.0, True)] * 50, history=1), samples(*[(1.0, False)] * 50, history=2)

    assert bootstrap_brier([*right, *wrong], seed=3) == (0.0, 1.0)


def test_bootstrap_of_histories_without_spread_has_no_width() -> None:
    alike = [sample for history in range(5) for sample in samples((0.8, True), history=history)]

    assert bootstrap_brier(alike, seed=3) == pytest.approx((0.04, 0.04))


def test_the_picture_places_each_bin_at_its_confidence_and_share() -> None:
    """A frame of 360 from (60, 44): confidence 0.75 lies at x 330, a share of 0.5 at y 224."""
    bins = reliability_bins(samples((0.75, True), (0.75, False)))

    drawn = draw_reliability(bins=bins, title="A < B")
    picture = ElementTree.fromstring(drawn)  # noqa: S314  (our own, not untrusted)

    (point,) = picture.iter("{http://www.w3.org/2000/svg}circle")
    assert (point.get("cx"), point.get("cy")) == ("330.0", "224.0")
    assert "A < B" in [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
