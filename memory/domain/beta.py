"""The Beta distribution of a belief's truth, with its exact credible interval (B4)."""

import math
from dataclasses import dataclass

from scipy.special import betainc, betaincinv


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
        return float(betainc(self.alpha, self.beta, min(max(x, 0.0), 1.0)))

    def quantile(self, *, probability: float) -> float:
        """Return x with P(X ≤ x) = probability."""
        return float(betaincinv(self.alpha, self.beta, min(max(probability, 0.0), 1.0)))
