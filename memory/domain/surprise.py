"""How unlike all that is remembered a new memory is, and what that does to its importance (D5)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memory.domain.policy_conversations import SurprisePolicy


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
