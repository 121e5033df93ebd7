"""From candidates to scores, and from the two kinds of memory to one list (B17)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.domain.lifecycle_policy import boost_of
from memory.domain.policy import LifecyclePolicy, Policy
from memory.domain.scoring import blend_beliefs, fit_among, score_beliefs, score_episodes, text_weight
from memory.domain.strength import retrieval_strength
from memory.models.vector_search import BeliefCandidate, EpisodeCandidate

Components = Mapping[str, NDArray[np.float64]]


class MemoryType(StrEnum):
    """The kinds of memory that recall answers with."""

    EPISODE = "episode"
    BELIEF = "belief"


class Ranked(NamedTuple):
    """A memory's place in the answer, before its text is read.

    The numbers that its score is made of stand at `place` of each column: few are ever asked for.
    """

    type: MemoryType
    id: str
    score: float
    columns: Mapping[str, Sequence[float]]
    place: int

    def part(self, name: str) -> float:
        """Return one number that the score is made of."""
        return self.columns[name][self.place]

    @property
    def components(self) -> dict[str, float]:
        """Return all numbers that the score is made of."""
        return {name: values[self.place] for name, values in self.columns.items()}

    def gain(self, amount: float, **numbers: float) -> "Ranked":
        """Return it with a score higher by that, within 0..1, and with the numbers that this is made of."""
        score = min(max(self.score + amount, 0.0), 1.0)
        columns = {name: [value] for name, value in (self.components | numbers).items()}
        return self._replace(score=score, columns=columns, place=0)


def rank_episodes(*, candidates: Sequence[EpisodeCandidate], profile: Profile, policy: Policy) -> list[Ranked]:
    """Score episodes; one without a vector counts as being as near as the others on average."""
    similarity = reference_similarities(candidates, profile)
    scores = score_episodes(
        similarity=_filled(similarity),
        text=[candidate.text_score + candidate.context_score for candidate in candidates],
        sessions=[(candidate.project_id, candidate.session) if candidate.session else None for candidate in candidates],
        weight=_text_weight(candidates, policy),
        policy=policy.recall,
    )
    components = {
        "similarity": similarity,
        "text": np.array(_texts(candidates)),
        "context": np.array([candidate.context_score for candidate in candidates]),
        "standard_vector": scores.vector,
        "standard_text": scores.text,
        "text_weight": np.full(len(candidates), scores.text_weight),
        "session": scores.session,
        "standard_sum": scores.together,
    }
    return _ranked(MemoryType.EPISODE, candidates, scores.score, components)


def rank_beliefs(
    *,
    candidates: Sequence[BeliefCandidate],
    episodes: Sequence[EpisodeCandidate],
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> list[Ranked]:
    """Score beliefs as they stand beside the episodes found; one without a vector is like nothing."""
    similarity = reference_similarities(candidates, profile)
    scores = score_beliefs(
        confidence=[candidate.confidence for candidate in candidates],
        similarity=np.nan_to_num(similarity),
        strength=[_strength(candidate, now, policy) for candidate in candidates],
        text=_texts(candidates),
        text_beside=_texts(episodes),
        policy=policy.recall,
    )
    components = {
        "similarity": similarity,
        "text": np.array(_texts(candidates)),
        "by_likeness": scores.likeness,
        "by_strength": scores.strength,
        "by_text": scores.text,
        "blend": np.full(len(candidates), policy.recall.belief_blend),
        "fit": fit_among(
            similarity=np.nan_to_num(similarity),
            text=_texts(candidates),
            episode_similarity=_filled(reference_similarities(episodes, profile)),
            episode_text=_texts(episodes),
            weight=_text_weight([*candidates, *episodes], policy),
        ),
    }
    blended = blend_beliefs(scores=scores.score, policy=policy.recall)
    return _ranked(MemoryType.BELIEF, candidates, blended, components)


def best(*, ranked: Sequence[Ranked], limit: int | None = None) -> list[Ranked]:
    """Return the best of all kinds, equal scores by id."""
    return sorted(ranked, key=lambda item: (-item.score, item.id))[:limit]


def _filled(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    known = similarity[~np.isnan(similarity)]
    return np.nan_to_num(similarity, nan=float(known.mean()) if known.size else 0.0)


def _text_weight(candidates: Sequence[EpisodeCandidate | BeliefCandidate], policy: Policy) -> float:
    return text_weight(coverage=[candidate.coverage for candidate in candidates], policy=policy.recall)


def _texts(candidates: Sequence[EpisodeCandidate | BeliefCandidate]) -> list[float]:
    return [candidate.text_score for candidate in candidates]


def reference_similarities(
    candidates: Sequence[EpisodeCandidate | BeliefCandidate], profile: Profile
) -> NDArray[np.float64]:
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
    kind: MemoryType,
    candidates: Sequence[EpisodeCandidate | BeliefCandidate],
    scores: NDArray[np.float64],
    components: Components,
) -> list[Ranked]:
    kinds = [kind] * len(candidates)
    return collect_ranked(kinds=kinds, candidates=candidates, scores=scores, components=components)


def collect_ranked(
    *,
    kinds: Sequence[MemoryType],
    candidates: Sequence[EpisodeCandidate | BeliefCandidate],
    scores: NDArray[np.float64],
    components: Components,
) -> list[Ranked]:
    """Put each candidate's score and its components together; all of one length."""
    columns = {name: values.tolist() for name, values in components.items()}
    return [
        Ranked(kind, candidate.id, score, columns, place)
        for place, (kind, candidate, score) in enumerate(zip(kinds, candidates, scores.tolist(), strict=True))
    ]


def boost_ranked(
    *, ranked: Sequence[Ranked], episodes: Sequence[EpisodeCandidate], policy: LifecyclePolicy
) -> list[Ranked]:
    """Add to episodes' scores what their policy state gives, within 0..1; what has none is untouched (L14)."""
    if not policy.enabled:
        return list(ranked)
    boosts = {
        episode.id: boost
        for episode in episodes
        if (boost := boost_of(state=episode.lifecycle_state, verification=episode.verification, policy=policy))
    }
    return [item.gain(boosts[item.id], boost=boosts[item.id]) if item.id in boosts else item for item in ranked]
