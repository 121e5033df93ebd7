"""How recall scores beliefs and episodes, and blends the two (B17)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.domain.policy import RecallPolicy

Scores = NDArray[np.float64]


def score_beliefs(
    *, confidence: ArrayLike, similarity: ArrayLike, strength: ArrayLike, text: ArrayLike, policy: RecallPolicy
) -> Scores:
    """Return one score in 0..1 for each candidate.

    Similarity is on the reference scale, strength is the retrieval strength, text is any text score, made comparable by
    min-max over the candidates.
    """
    likeness = np.clip(_floats(similarity), 0.0, 1.0)  # below zero there is nothing left to be unlike
    return (
        policy.similarity_weight * _floats(confidence) * likeness
        + policy.strength_weight * _floats(strength)
        + policy.text_weight * scale_min_max(values=text)
    )


def score_episodes(*, similarity: ArrayLike, text: ArrayLike, policy: RecallPolicy) -> Scores:
    """Return one score in 0..1 for each candidate: the weighted sum of its standardised scores, through one logistic.

    The logistic's constants are fixed, so that a score means the same from query to query.
    """
    fused = policy.vector_fusion * standardise(values=similarity) + policy.text_fusion * standardise(values=text)
    return np.asarray(1.0 / (1.0 + np.exp(-policy.logistic_slope * (fused - policy.logistic_midpoint))))


def blend_beliefs(*, scores: ArrayLike, policy: RecallPolicy) -> Scores:
    """Return beliefs' scores as they stand beside those of episodes."""
    return policy.belief_blend * _floats(scores)


def scale_min_max(*, values: ArrayLike) -> Scores:
    """Return the values scaled to 0..1, all 0.5 if they are equal."""
    array = _floats(values)
    low, high = array.min(initial=np.inf), array.max(initial=-np.inf)
    if not low < high:
        return np.full_like(array, 0.5)
    return np.asarray((array - low) / (high - low))


def standardise(*, values: ArrayLike) -> Scores:
    """Return the values less their mean, in standard deviations; all 0 if they are equal."""
    array = _floats(values)
    deviation = array.std() if array.size else 0.0
    if not deviation > 0 or array.min() == array.max():
        return np.zeros_like(array)
    return np.asarray((array - array.mean()) / deviation)


def _floats(values: Any) -> Scores:
    return np.asarray(values, dtype=np.float64)
