import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta as reference

from memory.domain.evidence import Beta

shapes = st.floats(min_value=0.5, max_value=1e5)


def test_the_uniform_prior_has_an_exact_interval() -> None:
    """B4: Beta(1, 1) is uniform."""
    assert Beta(alpha=1, beta=1).interval() == pytest.approx((0.05, 0.95), abs=1e-14)


def test_ten_supports_have_a_closed_form_interval() -> None:
    """B4: the distribution function of Beta(11, 1) is x¹¹."""
    assert Beta(alpha=11, beta=1).interval() == pytest.approx((0.05 ** (1 / 11), 0.95 ** (1 / 11)), rel=1e-13)


def test_the_mean_is_the_confidence() -> None:
    assert Beta(alpha=11, beta=4).mean == 11 / 15


@pytest.mark.parametrize("shape", [(1e6, 3), (1e6, 1e6), (1, 1e6), (0.5, 0.5), (300.5, 40.25)])
def test_extreme_shapes_agree_with_the_reference(shape: tuple[float, float]) -> None:
    expected = reference(*shape).interval(0.9)

    assert Beta(alpha=shape[0], beta=shape[1]).interval() == pytest.approx(expected, rel=1e-8)


@given(shapes, shapes, st.floats(min_value=0.001, max_value=0.999))
def test_quantile_and_distribution_function_are_inverse(alpha: float, beta: float, probability: float) -> None:
    """A steep curve climbs far between two neighbouring numbers: the quantile is right to the precision of x itself."""
    belief = Beta(alpha=alpha, beta=beta)
    x = belief.quantile(probability=probability)

    assert belief.cdf(x=max(x - 2e-15, 0.0)) - 1e-9 <= probability <= belief.cdf(x=min(x + 2e-15, 1.0)) + 1e-9


@given(shapes, shapes, st.floats(min_value=0, max_value=1))
def test_the_distribution_function_agrees_with_the_reference(alpha: float, beta: float, x: float) -> None:
    assert Beta(alpha=alpha, beta=beta).cdf(x=x) == pytest.approx(reference.cdf(x, alpha, beta), abs=1e-9)


@given(shapes, shapes)
def test_more_support_moves_the_whole_interval_up(alpha: float, beta: float) -> None:
    """B4: confidence and interval are monotone in the evidence."""
    before, after = Beta(alpha=alpha, beta=beta), Beta(alpha=alpha + 1, beta=beta)

    assert after.mean > before.mean
    assert all(new >= old - 1e-12 for new, old in zip(after.interval(), before.interval(), strict=True))


@pytest.mark.parametrize("shape", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_impossible_shapes_are_refused(shape: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Beta(alpha=shape[0], beta=shape[1])
