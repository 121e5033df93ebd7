"""From candidates to scores, and from the two kinds of memory to one list (B17)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.domain.scoring import blend_beliefs, score_beliefs, score_episodes, stand_out, text_weight
from memory.domain.strength import retrieval_strength
from memory.models.vector_search import BeliefCandidate, EpisodeCandidate


class MemoryType(StrEnum):
    """The kinds of memory that recall answers with."""

    EPISODE = "episode"
    BELIEF = "belief"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A memory's place in the answer, before its text is read."""

    type: MemoryType
    id: str
    score: float


def rank_episodes(*, candidates: Sequence[EpisodeCandidate], profile: Profile, policy: Policy) -> list[Ranked]:
    """Score episodes; one without a vector counts as being as near as the others on average."""
    scores = score_episodes(
        similarity=_episode_similarities(candidates, profile),
        text=[candidate.text_score + candidate.context_score for candidate in candidates],
        weight=_text_weight(candidates, policy),
        policy=policy.recall,
    )
    return _ranked(MemoryType.EPISODE, candidates, scores)


def rank_beliefs(
    *,
    candidates: Sequence[BeliefCandidate],
    episodes: Sequence[EpisodeCandidate],
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> list[Ranked]:
    """Score beliefs as they stand beside the episodes found; one without a vector is like nothing."""
    scores = score_beliefs(
        confidence=[candidate.confidence for candidate in candidates],
        similarity=np.nan_to_num(_similarities(candidates, profile)),
        strength=[_strength(candidate, now, policy) for candidate in candidates],
        text=_texts(candidates),
        text_beside=_texts(episodes),
        policy=policy.recall,
    )
    return _ranked(MemoryType.BELIEF, candidates, blend_beliefs(scores=scores, policy=policy.recall))


def standing_out(
    *,
    candidates: Sequence[BeliefCandidate],
    episodes: Sequence[EpisodeCandidate],
    profile: Profile,
    policy: Policy,
) -> set[str]:
    """Name the beliefs that fit the query clearly better than the episodes found do on average."""
    found = stand_out(
        similarity=np.nan_to_num(_similarities(candidates, profile)),
        text=_texts(candidates),
        episode_similarity=_episode_similarities(episodes, profile),
        episode_text=_texts(episodes),
        weight=_text_weight([*candidates, *episodes], policy),
        policy=policy.recall,
    )
    return {candidate.id for candidate, is_fit in zip(candidates, found, strict=True) if is_fit}


def best(*, ranked: Sequence[Ranked], limit: int) -> list[Ranked]:
    """Return the best of all kinds, equal scores by id."""
    return sorted(ranked, key=lambda item: (-item.score, item.id))[:limit]


def _episode_similarities(candidates: Sequence[EpisodeCandidate], profile: Profile) -> NDArray[np.float64]:
    similarity = _similarities(candidates, profile)
    known = similarity[~np.isnan(similarity)]
    return np.nan_to_num(similarity, nan=float(known.mean()) if known.size else 0.0)


def _text_weight(candidates: Sequence[EpisodeCandidate | BeliefCandidate], policy: Policy) -> float:
    return text_weight(coverage=[candidate.coverage for candidate in candidates], policy=policy.recall)


def _texts(candidates: Sequence[EpisodeCandidate | BeliefCandidate]) -> list[float]:
    return [candidate.text_score for candidate in candidates]


def _similarities(candidates: Sequence[EpisodeCandidate | BeliefCandidate], profile: Profile) -> NDArray[np.float64]:
    """Put raw cosines on the reference scale; NaN where there is none."""
    raw = np.array([np.nan if c.similarity is None else c.similarity for c in candidates], dtype=np.float64)
    return np.array(profile.reference(raw), dtype=np.float64)


def _strength(candidate: BeliefCandidate, now: datetime, policy: Policy) -> float:
    return retrieval_strength(
        stability=candidate.stability or policy.retrieval.initial_stability,
        since_creation=now - candidate.created_at,
        since_access=now - candidate.accessed_at if candidate.accessed_at else None,
        policy=policy.retrieval,
    )


def _ranked(
    kind: MemoryType, candidates: Sequence[EpisodeCandidate | BeliefCandidate], scores: NDArray[np.float64]
) -> list[Ranked]:
    return [
        Ranked(type=kind, id=candidate.id, score=float(score))
        for candidate, score in zip(candidates, scores, strict=True)
    ]
