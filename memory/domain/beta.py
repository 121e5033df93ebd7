"""The Beta distribution of a belief's truth, with its exact credible interval (B4)."""

import math
from dataclasses import dataclass

_TINY = 1e-300  # stands in for a zero denominator in Lentz's method
_PRECISION = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta:
    """Beta(α, β); both are positive."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (0 < self.alpha < math.inf and 0 < self.beta < math.inf):
            raise ValueError(f"α and β must be positive and finite, not {self.alpha} and {self.beta}")

    @property
    def mean(self) -> float:
        """Return α/(α+β), the confidence."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, *, mass: float = 0.90) -> tuple[float, float]:
        """Return the equal-tailed credible interval that holds `mass` of the distribution."""
        tail = (1.0 - mass) / 2.0
        return self.quantile(probability=tail), self.quantile(probability=1.0 - tail)

    def cdf(self, *, x: float) -> float:
        """Return P(X ≤ x): the regularised incomplete beta function, DLMF 8.17.2."""
        if x <= 0.0 or x >= 1.0:
            return float(x >= 1.0)
        if x > (self.alpha + 1.0) / (self.alpha + self.beta + 2.0):  # the fraction converges fast below this point only
            return 1.0 - _lower_tail(self.beta, self.alpha, 1.0 - x)
        return _lower_tail(self.alpha, self.beta, x)

    def quantile(self, *, probability: float) -> float:
        """Return x with P(X ≤ x) = probability, by Newton's method kept inside a shrinking bracket."""
        if not 0.0 < probability < 1.0:
            return float(probability >= 1.0)
        low, high, x = 0.0, 1.0, self.mean
        for _ in range(200):
            excess = self.cdf(x=x) - probability
            low, high = (low, x) if excess > 0 else (x, high)
            density = math.exp(_log_density(self.alpha, self.beta, x))
            following = x - excess / density if density > 0 else high
            if not low < following < high:
                following = (low + high) / 2.0
            if abs(following - x) <= _PRECISION * following:
                return following
            x = following
        return x


def _log_density(a: float, b: float, x: float) -> float:
    if not 0.0 < x < 1.0:
        return -math.inf
    log_norm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return log_norm + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x)


def _lower_tail(a: float, b: float, x: float) -> float:
    front = math.exp(_log_density(a, b, x)) * x * (1.0 - x) / a
    return front * _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate DLMF 8.17.22 by the modified Lentz method (Numerical Recipes, 3rd edition, section 6.4)."""
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _nonzero(1.0 + term * d)
            c = _nonzero(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < _PRECISION:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
