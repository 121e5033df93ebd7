"""The associative profile: both kinds of memory scored alike, by likeness, use and whom the query names (R5, R6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memory.domain.association import names_one, score_associations
from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.domain.scoring import scale_min_max
from memory.models import Belief, Episode, FactType
from memory.recall.ranking import Column, MemoryType, Ranked, collect_ranked, reference_similarities
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.related import MemoryText

_HIGHEST_IMPORTANCE = 10  # of a belief; an episode's is a share already
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traits:
    """What the profile asks of a memory beside its text: importance in 0..1, and the names that it goes by."""

    importance: float
    names: tuple[str, ...]
    unread_since: datetime
    stability: float
    is_insight: bool = False


def rank_associatively(
    *,
    query: str,
    episodes: Sequence[EpisodeCandidate],
    asked: Mapping[str, float],
    waiting: Mapping[str, MemoryText],
    beliefs: Sequence[BeliefCandidate],
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> list[Ranked]:
    """Score memories of both kinds; where there is no vector on either side, words stand in for likeness.

    `asked` says by id how much episodes count as answers: no part of the score, but of whether it is told. `waiting`
    are those that are turns which nobody has read yet.
    """
    traits = _traits_of_episodes(episodes, now, policy) | _traits_of_turns(episodes, waiting, policy)
    traits |= _traits_of_beliefs(beliefs, policy)
    found: list[EpisodeCandidate | BeliefCandidate] = [*episodes, *beliefs]
    candidates = [candidate for candidate in found if candidate.id in traits]
    known = [traits[candidate.id] for candidate in candidates]
    similarity = reference_similarities(candidates, profile)
    text = scale_min_max(values=[candidate.text_score for candidate in candidates])
    likeness = np.where(np.isnan(similarity), text, similarity)
    named = [names_one(query=query, names=trait.names) for trait in known]
    scores = score_associations(
        similarity=likeness,
        importance=[trait.importance for trait in known],
        unread_days=[(now - trait.unread_since) / _DAY for trait in known],
        stability=[trait.stability for trait in known],
        is_named=named,
        is_insight=[trait.is_insight for trait in known],
        policy=policy.associative,
    )
    components: dict[str, Column] = {
        "similarity": similarity,
        "text": np.array([candidate.text_score for candidate in candidates]),
        "telling": [candidate.telling for candidate in candidates],
        "asked_slot": [asked.get(candidate.id, 0.0) for candidate in candidates],
        "likeness": likeness,
        "by_likeness": scores.likeness,
        "by_importance": scores.importance,
        "by_recency": scores.recency,
        "by_stability": scores.stability,
        "by_subject": scores.subject,
        "insight": _factors(known, policy),
    }
    kinds = [MemoryType.EPISODE if isinstance(c, EpisodeCandidate) else MemoryType.BELIEF for c in candidates]
    return collect_ranked(kinds=kinds, candidates=candidates, scores=scores.score, components=components)


def _factors(known: Sequence[_Traits], policy: Policy) -> NDArray[np.float64]:
    return np.array([policy.associative.insight_factor if trait.is_insight else 1.0 for trait in known])


def _traits_of_episodes(episodes: Sequence[EpisodeCandidate], now: datetime, policy: Policy) -> dict[str, _Traits]:
    """Read what the search does not carry; an episode has no stability of its own and counts as a new belief.

    An access after `now`, the past that is asked about, is none.
    """
    columns = ("pk", "importance", "speaker", "entities", "created_at", "access__accessed_at")
    rows = Episode.objects.filter(pk__in=[episode.id for episode in episodes]).values_list(*columns)
    return {
        key: _Traits(
            importance=importance,
            names=(speaker, *entities),
            unread_since=accessed_at if accessed_at and accessed_at <= now else created_at,
            stability=policy.retrieval.initial_stability,
        )
        for key, importance, speaker, entities, created_at, accessed_at in rows
    }


def _traits_of_turns(
    episodes: Sequence[EpisodeCandidate], waiting: Mapping[str, MemoryText], policy: Policy
) -> dict[str, _Traits]:
    """Take turns for episodes of which nothing is known but who spoke, and when."""
    return {
        turn.id: _Traits(
            importance=policy.ingest.importance,
            names=(turn.speaker,),
            unread_since=waiting[turn.id].dated,
            stability=policy.retrieval.initial_stability,
        )
        for turn in episodes
        if turn.id in waiting
    }


def _traits_of_beliefs(beliefs: Sequence[BeliefCandidate], policy: Policy) -> dict[str, _Traits]:
    found = {belief.id: belief for belief in beliefs}
    rows = Belief.objects.filter(pk__in=list(found)).values_list("pk", "importance", "subject", "fact_type")
    return {
        key: _Traits(
            importance=importance / _HIGHEST_IMPORTANCE,
            names=(subject,),
            unread_since=found[key].accessed_at or found[key].created_at,
            stability=found[key].stability or policy.retrieval.initial_stability,
            is_insight=fact_type == FactType.INSIGHT,
        )
        for key, importance, subject, fact_type in rows
    }
