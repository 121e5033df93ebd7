"""From candidates to scores, and from the two kinds of memory to one list (B17)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.domain.lifecycle_policy import boost_of
from memory.domain.policy import LifecyclePolicy, Policy
from memory.domain.scoring import blend_beliefs, fit_among, score_beliefs, score_episodes, text_weight
from memory.domain.strength import retrieval_strength
from memory.models import Source
from memory.models.vector_search import BeliefCandidate, EpisodeCandidate

Column = Sequence[float] | NDArray[np.float64]


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
    columns: Mapping[str, Column]
    place: int

    def part(self, name: str) -> float:
        """Return one number that the score is made of."""
        return float(self.columns[name][self.place])

    @property
    def components(self) -> dict[str, float]:
        """Return all numbers that the score is made of."""
        return {name: float(values[self.place]) for name, values in self.columns.items()}

    def gain(self, amount: float, **numbers: float) -> "Ranked":
        """Return it with a score higher by that, within 0..1, and with the numbers that this is made of."""
        score = min(max(self.score + amount, 0.0), 1.0)
        columns = {name: [value] for name, value in (self.components | numbers).items()}
        return self._replace(score=score, columns=columns, place=0)


def rank_episodes(
    *, candidates: Sequence[EpisodeCandidate], asked: Collection[str] = (), profile: Profile, policy: Policy
) -> list[Ranked]:
    """Score episodes; one without a vector counts as being as near as the others on average.

    `asked` are the ids of those that assert what the query asks about.
    """
    similarity = reference_similarities(candidates, profile)
    scores = score_episodes(
        similarity=_filled(similarity),
        text=[candidate.text_score + candidate.context_score for candidate in candidates],
        sessions=[(candidate.project_id, candidate.session) if candidate.session else None for candidate in candidates],
        is_by_ai=[candidate.source == Source.AI for candidate in candidates],
        is_asked=[candidate.id in asked for candidate in candidates],
        weight=_text_weight(candidates, policy),
        policy=policy.recall,
    )
    components: dict[str, Column] = {
        "similarity": similarity,
        "text": _texts(candidates),
        "context": [candidate.context_score for candidate in candidates],
        "standard_vector": scores.vector,
        "standard_text": scores.text,
        "text_weight": [scores.text_weight] * len(candidates),
        "session": scores.session,
        "asked_slot": scores.asked,
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
    likeness = np.where(np.isnan(similarity), 0.0, similarity)
    text, text_beside = _texts(candidates), _texts(episodes)
    scores = score_beliefs(
        confidence=[candidate.confidence for candidate in candidates],
        similarity=likeness,
        strength=[_strength(candidate, now, policy) for candidate in candidates],
        text=text,
        text_beside=text_beside,
        policy=policy.recall,
    )
    components: dict[str, Column] = {
        "similarity": similarity,
        "text": text,
        "by_likeness": scores.likeness,
        "by_strength": scores.strength,
        "by_text": scores.text,
        "blend": [policy.recall.belief_blend] * len(candidates),
        "fit": fit_among(
            similarity=likeness,
            text=text,
            episode_similarity=_filled(reference_similarities(episodes, profile)),
            episode_text=text_beside,
            weight=_text_weight([*candidates, *episodes], policy),
        ),
    }
    blended = blend_beliefs(scores=scores.score, policy=policy.recall)
    return _ranked(MemoryType.BELIEF, candidates, blended, components)


def best(*, ranked: Sequence[Ranked], limit: int | None = None) -> list[Ranked]:
    """Return the best of all kinds, equal scores by id."""
    by_id = sorted(ranked, key=attrgetter("id"))  # sorted twice by what is there: quicker than once by pairs to be made
    return sorted(by_id, key=attrgetter("score"), reverse=True)[:limit]


def of_kind(*, ranked: Sequence[Ranked], kind: MemoryType) -> list[Ranked]:
    """Return those of one kind, in their order."""
    return [item for item in ranked if item.type == kind]


def _filled(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    is_unknown = np.isnan(similarity)
    known = similarity[~is_unknown]
    return np.where(is_unknown, known.mean() if known.size else 0.0, similarity)


def _text_weight(candidates: Sequence[EpisodeCandidate | BeliefCandidate], policy: Policy) -> float:
    return text_weight(coverage=[candidate.coverage for candidate in candidates], policy=policy.recall)


def _texts(candidates: Sequence[EpisodeCandidate | BeliefCandidate]) -> list[float]:
    return [candidate.text_score for candidate in candidates]


def reference_similarities(
    candidates: Sequence[EpisodeCandidate | BeliefCandidate], profile: Profile
) -> NDArray[np.float64]:
    """Put raw cosines on the reference scale; NaN where there is none."""
    raw = np.array([candidate.similarity for candidate in candidates], dtype=np.float64)  # None becomes NaN
    return np.asarray(profile.reference(raw), dtype=np.float64)


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
    components: Mapping[str, Column],
) -> list[Ranked]:
    return collect_ranked(
        kinds=repeat(kind, len(candidates)), candidates=candidates, scores=scores, components=components
    )


def collect_ranked(
    *,
    kinds: Iterable[MemoryType],
    candidates: Sequence[EpisodeCandidate | BeliefCandidate],
    scores: NDArray[np.float64],
    components: Mapping[str, Column],
) -> list[Ranked]:
    """Put each candidate's score and its components together; all of one length."""
    ids = [candidate.id for candidate in candidates]
    rows = zip(kinds, ids, scores.tolist(), repeat(components, len(ids)), range(len(ids)), strict=True)
    return list(map(Ranked._make, rows))


def boost_ranked(
    *, ranked: Sequence[Ranked], episodes: Sequence[EpisodeCandidate], policy: LifecyclePolicy
) -> list[Ranked]:
    """Add to episodes' scores what their policy state gives, within 0..1; what has none is untouched (L14)."""
    if not policy.enabled:
        return list(ranked)
    marks = {(episode.lifecycle_state, episode.verification) for episode in episodes}
    boost_by = {mark: boost_of(state=mark[0], verification=mark[1], policy=policy) for mark in marks}
    if not any(boost_by.values()):
        return list(ranked)
    boosts = {episode.id: boost_by[episode.lifecycle_state, episode.verification] for episode in episodes}
    return [item.gain(boost, boost=boost) if (boost := boosts.get(item.id)) else item for item in ranked]
