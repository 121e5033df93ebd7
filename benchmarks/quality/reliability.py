"""How well confidences fit the truth: Brier score, base rate, bins of a reliability curve, bootstrap."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.quality.verdicts import Share

BINS = 10
RESAMPLES = 2_000
EVENS = 0.25  # the Brier score of always saying ½, whatever is true


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A belief at a time: its confidence, and whether its statement was true then.

    Samples of one `history` hang together; `phase` names its kind, and where in it the time lies.
    """

    history: int
    phase: str
    confidence: float
    is_true: bool

    @property
    def loss(self) -> float:
        """Return the squared distance of confidence and truth."""
        return (self.confidence - self.is_true) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """The samples whose confidence lies in [low, high), the last bin's 1 included."""

    low: float
    high: float
    mean_confidence: float
    true: Share


def brier_score(samples: Sequence[Sample]) -> float:
    """Return the mean squared distance of confidence and truth (G. W. Brier, Monthly Weather Review 78, 1950)."""
    return sum(sample.loss for sample in samples) / len(samples)


def base_rate_score(samples: Sequence[Sample]) -> float:
    """Return the Brier score of always saying the share of true samples, p(1 − p)."""
    share = sum(sample.is_true for sample in samples) / len(samples)
    return share * (1.0 - share)


def bootstrap_brier(samples: Sequence[Sample], *, seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 95 % percentile interval of the Brier score, drawing whole histories, since theirs hang together."""
    losses: dict[int, list[float]] = defaultdict(list)
    for sample in samples:
        losses[sample.history].append(sample.loss)
    parts = [(sum(of_one), len(of_one)) for of_one in losses.values()]
    rng = random.Random(seed)
    scores = sorted(_mean_of_parts(rng.choices(parts, k=len(parts))) for _ in range(resamples))
    return scores[int(0.025 * resamples)], scores[int(0.975 * resamples)]


def reliability_bins(samples: Sequence[Sample], *, count: int = BINS) -> list[Bin]:
    """Sort samples into bins of equal width by confidence; bins without samples are left out."""
    binned: dict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        binned[min(int(sample.confidence * count), count - 1)].append(sample)
    return [_bin(place, count, binned[place]) for place in sorted(binned)]


def _bin(place: int, count: int, members: Sequence[Sample]) -> Bin:
    return Bin(
        low=place / count,
        high=(place + 1) / count,
        mean_confidence=sum(sample.confidence for sample in members) / len(members),
        true=Share(hits=sum(sample.is_true for sample in members), total=len(members)),
    )


def _mean_of_parts(parts: Sequence[tuple[float, int]]) -> float:
    return sum(total for total, _ in parts) / sum(count for _, count in parts)
