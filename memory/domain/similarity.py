"""Similarity on the reference scale that all thresholds stand on, and what follows from it.

`Profile` maps one model's raw cosines to that scale (B8a); `measure_surprise` says how unlike all others a memory is
(D5).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy_consolidation import CalibrationPolicy
from memory.domain.policy_memories import SurprisePolicy

Floats = NDArray[np.floating[Any]]


class PairLabel(StrEnum):
    """What two labelled texts are to each other."""

    SAME = "same"
    RELATED = "related"
    UNRELATED = "unrelated"
    CONTRADICTING = "contradicting"


class CalibrationError(ValueError):
    """Pairs that no profile can be fitted on, or anchors that are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A strictly monotone piecewise-linear map of one model; anchors run from −1 to 1 on both scales."""

    model: str
    anchors: tuple[tuple[float, float], ...]  # (raw, reference)
    is_fitted: bool
    wrong_side_share: float | None = None  # of the labelled pairs; None if nothing was fitted

    def __post_init__(self) -> None:
        if len(self.anchors) < 2 or not all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(self.anchors)):
            raise CalibrationError(f"{self.model}: anchors must rise on both scales, not {self.anchors}")

    @overload
    def reference(self, raw: float) -> float: ...
    @overload
    def reference(self, raw: Floats) -> Floats: ...
    def reference(self, raw: float | Floats) -> float | Floats:
        """Return the similarity on the reference scale; what lies beyond the outer anchors is clamped to them."""
        return _interpolate(raw, *zip(*self.anchors, strict=True))

    @overload
    def raw(self, reference: float) -> float: ...
    @overload
    def raw(self, reference: Floats) -> Floats: ...
    def raw(self, reference: float | Floats) -> float | Floats:
        """Return the raw cosine that has this similarity on the reference scale, as SQL needs it."""
        xs, ys = zip(*self.anchors, strict=True)
        return _interpolate(reference, ys, xs)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as values that JSON knows."""
        return {
            "model": self.model,
            "anchors": [list(anchor) for anchor in self.anchors],
            "is_fitted": self.is_fitted,
            "wrong_side_share": self.wrong_side_share,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Profile":
        """Return the profile that `to_dict` wrote."""
        anchors = tuple((float(raw), float(reference)) for raw, reference in values["anchors"])
        return cls(**{**values, "anchors": anchors})


def identity_profile(*, model: str) -> Profile:
    """Return the profile of a model that nobody has calibrated: raw cosines as they are."""
    return Profile(model=model, anchors=((-1.0, -1.0), (1.0, 1.0)), is_fitted=False)


def fit_profile(*, model: str, similarities: Mapping[PairLabel, Sequence[float]], policy: CalibrationPolicy) -> Profile:
    """Fit a profile on the raw cosines of labelled pairs; contradicting pairs say nothing about similarity."""
    missing = [
        label for label in (PairLabel.SAME, PairLabel.RELATED, PairLabel.UNRELATED) if not similarities.get(label)
    ]
    if missing:
        raise CalibrationError(f"{model}: no pairs labelled {', '.join(missing)}")
    unrelated, related = similarities[PairLabel.UNRELATED], similarities[PairLabel.RELATED]
    raw = [
        float(np.median(unrelated)),
        float(np.quantile(unrelated, policy.unrelated_top_quantile)),
        float(np.quantile(related, policy.related_low_quantile)),
        float(np.median(similarities[PairLabel.SAME])),
    ]
    references = [policy.unrelated_median, policy.unrelated_top, policy.related_low, policy.same_median]
    anchors = tuple(zip(uncross_anchors(raw=raw, gap=policy.crossing_gap), references, strict=True))
    fitted = Profile(model=model, anchors=((-1.0, -1.0), *anchors, (1.0, 1.0)), is_fitted=True)
    wrong = _wrong_side_share(profile=fitted, similarities=similarities, boundary=policy.related_low)
    return Profile(model=model, anchors=fitted.anchors, is_fitted=True, wrong_side_share=wrong)


def uncross_anchors(*, raw: Sequence[float], gap: float) -> list[float]:
    """Return the anchors strictly rising inside (−1, 1); those that cross become their mean, `gap` to each side."""
    if not all(math.isfinite(value) for value in raw):
        raise CalibrationError(f"a raw cosine is not finite: {list(raw)}")
    groups = [[value] for value in raw]
    while (at := _first_crossing(groups, gap)) is not None:
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    rising = [value for group in groups for value in _spread(group, gap)]
    floors = [-1.0 + gap * (place + 1) for place in range(len(rising))]
    return [min(max(value, low), -high) for value, low, high in zip(rising, floors, reversed(floors), strict=True)]


def _first_crossing(groups: list[list[float]], gap: float) -> int | None:
    spread = [_spread(group, gap) for group in groups]
    return next((at for at, (left, right) in enumerate(pairwise(spread)) if left[-1] >= right[0]), None)


def _spread(group: list[float], gap: float) -> list[float]:
    """Return as many values as the group has, 2·gap apart, around its mean."""
    middle = (len(group) - 1) / 2
    mean = sum(group) / len(group)
    return [mean + 2 * gap * (place - middle) for place in range(len(group))]


def _wrong_side_share(*, profile: Profile, similarities: Mapping[PairLabel, Sequence[float]], boundary: float) -> float:
    """Return the share of unrelated pairs at or above the boundary and of related and same pairs below it."""
    unrelated = profile.reference(np.asarray(similarities[PairLabel.UNRELATED], dtype=float))
    alike = profile.reference(
        np.asarray([*similarities[PairLabel.RELATED], *similarities[PairLabel.SAME]], dtype=float)
    )
    wrong = np.count_nonzero(unrelated >= boundary) + np.count_nonzero(alike < boundary)
    return float(wrong) / (unrelated.size + alike.size)


def _interpolate(value: float | Floats, xs: Sequence[float], ys: Sequence[float]) -> float | Floats:
    result = np.interp(value, xs, ys)
    return float(result) if np.ndim(value) == 0 else result


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """The mean distance to the nearest memories, and the surprise in it; both in [0, 1]."""

    distance: float
    score: float
    is_near_duplicate: bool


def measure_surprise(*, similarities: Sequence[float], policy: SurprisePolicy) -> Surprise:
    """Measure by the similarities (reference scale) to the nearest memories; nothing near is wholly new."""
    nearest = sorted(similarities, reverse=True)[: policy.neighbours]
    if not nearest:
        return Surprise(distance=1.0, score=0.5 + policy.empty_boost / policy.weight, is_near_duplicate=False)
    distance = 1.0 - sum(nearest) / len(nearest)
    score = 1.0 / (1.0 + math.exp(-policy.steepness * (distance - policy.midpoint)))
    return Surprise(distance=distance, score=score, is_near_duplicate=nearest[0] >= policy.duplicate_similarity)


def move_importance(*, importance: float, surprise: Surprise, policy: SurprisePolicy) -> float:
    """Return the base importance moved by surprise, within its bounds."""
    moved = importance + policy.weight * (surprise.score - 0.5)
    return min(max(moved, policy.least_importance), 1.0)
