"""How the associative profile scores memories: likeness first, then use, and whom the query names (R5, R6)."""

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.policy import AssociativePolicy

Scores = NDArray[np.float64]

_WORD = re.compile(r"[^\W_]+")
_STOPS = ENGLISH_STOPS | GERMAN_STOPS


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociationScores:
    """The parts of scores, each already weighed, and what comes of them in 0..1; arrays of one length."""

    likeness: Scores
    importance: Scores
    recency: Scores
    stability: Scores
    subject: Scores
    score: Scores


def score_associations(
    *,
    similarity: ArrayLike,
    importance: ArrayLike,
    unread_days: ArrayLike,
    stability: ArrayLike,
    is_named: ArrayLike,
    is_insight: ArrayLike,
    policy: AssociativePolicy,
) -> AssociationScores:
    """Score each candidate: similarity on the reference scale, importance in 0..1, days since the last access."""
    likeness = policy.similarity_weight * np.clip(_floats(similarity), 0.0, 1.0)
    by_importance = policy.importance_weight * _floats(importance)
    recency = policy.recency_weight * np.exp(-policy.recency_decay * np.maximum(_floats(unread_days), 0.0))
    steadiness = np.minimum(_floats(stability), policy.full_stability) / policy.full_stability
    by_stability = policy.stability_weight * steadiness
    subject = policy.subject_weight * _floats(is_named)
    factor = np.where(np.asarray(is_insight, dtype=bool), policy.insight_factor, 1.0)
    score = factor * (likeness + by_importance + recency + by_stability + subject)
    return AssociationScores(
        likeness=likeness, importance=by_importance, recency=recency, stability=by_stability, subject=subject,
        score=score,
    )  # fmt: skip


def names_one(*, query: str, names: Collection[str]) -> bool:
    """Tell whether one of the names stands in a query, word for word, in any case; "Mara's" names Mara."""
    asked = _phrase(_words(query))
    phrases = (_phrase(words) for name in names if not _STOPS.issuperset(words := _words(name)))
    return any(phrase in asked for phrase in phrases)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _phrase(words: list[str]) -> str:
    return f" {' '.join(words)} "


def _floats(values: ArrayLike) -> Scores:
    return np.asarray(values, dtype=np.float64)
