"""Score candidates, and put both kinds of memory into one order.

`rank_episodes` and `rank_beliefs` are the default profile, `rank_associatively` is the associative one; lifecycle
states and links between episodes raise scores afterwards.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.domain.graph import Spread
from memory.domain.lifecycle import lifecycle_boost
from memory.domain.policy import Policy
from memory.domain.policy_memories import GraphPolicy
from memory.domain.policy_recall import LifecyclePolicy, RecallPolicy
from memory.domain.scoring import (
    belief_factors,
    fit_among,
    retrieval_strength,
    scale_min_max,
    score_associations,
    score_beliefs,
    score_episodes,
    score_priors,
    text_weight,
    trust_in_words,
)
from memory.domain.similarity import Profile
from memory.domain.taxonomy import Category
from memory.models import Belief, Episode, FactType, Source
from memory.recall.query import MemoryType
from memory.recall.questions.words import names_any
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.related import MemoryText

Column = Sequence[float] | NDArray[np.float64]


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
    *,
    candidates: Sequence[EpisodeCandidate],
    query: str,
    of_time: Mapping[str, float] | None = None,
    profile: Profile,
    policy: Policy,
) -> list[Ranked]:
    """Score episodes; one without a vector counts as being as near as the others on average.

    `of_time` says by id how well they fit the time that the query asks about.
    """
    similarity = reference_similarities(candidates, profile)
    weighted = np.array([candidate.weighted_similarity for candidate in candidates], dtype=np.float64)
    priors = _priors(candidates, query, of_time or {}, policy.recall)
    trust = _trust_in_words(candidates, policy)
    scores = score_episodes(
        similarity=_mean_filled(similarity),
        weighted=None if np.isnan(weighted).all() else _mean_filled(weighted),
        text=[candidate.text_score + candidate.context_score for candidate in candidates],
        sessions=[(candidate.project_id, candidate.session) if candidate.session else None for candidate in candidates],
        priors=priors.values(),
        weight=text_weight(trust=trust, policy=policy.recall),
        trust=trust,
        policy=policy.recall,
    )
    components: dict[str, Column] = {
        "similarity": similarity,
        "weighted_similarity": weighted,
        "text": _text_scores(candidates),
        "telling": [candidate.telling for candidate in candidates],
        "context": [candidate.context_score for candidate in candidates],
        "standard_vector": scores.vector,
        "standard_text": scores.text,
        "text_weight": [scores.text_weight] * len(candidates),
        **priors,
        "session": scores.session,
        "standard_sum": scores.together,
    }
    return _rank_kind(MemoryType.EPISODE, candidates, scores.score, components)


def _priors(
    candidates: Sequence[EpisodeCandidate],
    query: str,
    of_time: Mapping[str, float],
    policy: RecallPolicy,
) -> dict[str, NDArray[np.float64]]:
    """Return what speaks for and against episodes beside their likeness."""
    speakers = {candidate.speaker for candidate in candidates}
    named = _speakers_named(query, speakers)
    assistants = {speaker for speaker in speakers if speaker.strip().casefold() in _ASSISTANTS}
    by_ai = [candidate.source == Source.AI or candidate.speaker in assistants for candidate in candidates]
    return score_priors(
        of_time=[of_time.get(candidate.id, 0.0) for candidate in candidates],
        is_named=[candidate.speaker in named for candidate in candidates],
        is_order=[
            not is_by_ai and candidate.category == Category.PRINCIPLE
            for candidate, is_by_ai in zip(candidates, by_ai, strict=True)
        ],
        is_by_ai=by_ai,
        length=[candidate.length for candidate in candidates],
        policy=policy,
    )


_ASSISTANTS = frozenset(("ai", "assistant", "assistent", "bot", "chatbot", "ki"))  # speakers that are machines


def _speakers_named(query: str, speakers: Collection[str]) -> set[str]:
    """Return those whom a query names, by their whole name or by its first word."""
    asked = query.casefold()
    first_names = {speaker: speaker.split()[0] for speaker in speakers if speaker.strip()}
    return {
        speaker
        for speaker, first_name in first_names.items()
        if first_name.casefold() in asked and names_any(query=query, names=(speaker, first_name))
    }


def rank_beliefs(
    *,
    candidates: Sequence[BeliefCandidate],
    episodes: Sequence[EpisodeCandidate],
    of_time: Mapping[str, float] | None = None,
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> list[Ranked]:
    """Score beliefs as they stand beside the episodes found; one without a vector is like nothing.

    `of_time` says by id how well they fit the time that the query asks about, None where it asks about none.
    """
    similarity = reference_similarities(candidates, profile)
    likeness = np.where(np.isnan(similarity), 0.0, similarity)
    held = None if of_time is None else [of_time.get(candidate.id, 0.0) for candidate in candidates]
    factor = belief_factors(count=len(candidates), held=held, policy=policy.recall)
    text, text_beside = _text_scores(candidates), _text_scores(episodes)
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
        "telling": [candidate.telling for candidate in candidates],
        "by_likeness": scores.likeness,
        "by_strength": scores.strength,
        "by_text": scores.text,
        "blend": factor,
        "fit": fit_among(
            similarity=likeness,
            text=text,
            episode_similarity=_mean_filled(reference_similarities(episodes, profile)),
            episode_text=text_beside,
            weight=text_weight(trust=_trust_in_words([*candidates, *episodes], policy), policy=policy.recall),
        ),
    }
    return _rank_kind(MemoryType.BELIEF, candidates, factor * scores.score, components)


def take_best(*, ranked: Sequence[Ranked], limit: int | None = None) -> list[Ranked]:
    """Return the best of all kinds, equal scores by id."""
    by_id = sorted(ranked, key=attrgetter("id"))  # sorted twice by what is there: quicker than once by pairs to be made
    return sorted(by_id, key=attrgetter("score"), reverse=True)[:limit]


def of_kind(*, ranked: Sequence[Ranked], kind: MemoryType) -> list[Ranked]:
    """Return those of one kind, in their order."""
    return [item for item in ranked if item.type == kind]


def _mean_filled(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    is_unknown = np.isnan(similarity)
    known = similarity[~is_unknown]
    return np.where(is_unknown, known.mean() if known.size else 0.0, similarity)


def _trust_in_words(candidates: Sequence[EpisodeCandidate | BeliefCandidate], policy: Policy) -> float:
    return trust_in_words(coverage=[candidate.coverage for candidate in candidates], policy=policy.recall)


def _text_scores(candidates: Sequence[EpisodeCandidate | BeliefCandidate]) -> list[float]:
    return [candidate.text_score for candidate in candidates]


def reference_similarities(
    candidates: Sequence[EpisodeCandidate | BeliefCandidate], profile: Profile
) -> NDArray[np.float64]:
    """Put raw cosines on the reference scale; NaN where there is none."""
    raw = np.array([candidate.similarity for candidate in candidates], dtype=np.float64)  # None becomes NaN
    return np.asarray(profile.reference(raw), dtype=np.float64)


def _strength(candidate: BeliefCandidate, now: datetime, policy: Policy) -> float:
    return retrieval_strength(
        stability=candidate.stability or policy.strength.initial_stability,
        since_creation=now - candidate.created_at,
        since_access=now - candidate.accessed_at if candidate.accessed_at else None,
        policy=policy.strength,
    )


def _rank_kind(
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
    boost_by = {mark: lifecycle_boost(state=mark[0], verification=mark[1], policy=policy) for mark in marks}
    if not any(boost_by.values()):
        return list(ranked)
    boosts = {episode.id: boost_by[episode.lifecycle_state, episode.verification] for episode in episodes}
    return [item.gain(boost, boost=boost) if (boost := boosts.get(item.id)) else item for item in ranked]


def raise_linked(*, ranked: Sequence[Ranked], spread: Spread, policy: GraphPolicy) -> list[Ranked]:
    """Give episodes that edges lead to a share of what their scores lack to 1, by what the graph says of them."""
    if not spread.scores:
        return list(ranked)
    return [
        _raised_by_links(item, spread.scores[item.id], policy)
        if item.type == MemoryType.EPISODE and item.id in spread.scores
        else item
        for item in ranked
    ]


def _raised_by_links(item: Ranked, score: float, policy: GraphPolicy) -> Ranked:
    gain = policy.share * score * (1.0 - item.score)
    return item.gain(gain, graph=score, graph_gain=gain)


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
    waiting: Mapping[str, MemoryText],
    beliefs: Sequence[BeliefCandidate],
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> list[Ranked]:
    """Score memories of both kinds; where there is no vector on either side, words stand in for likeness.

    `waiting` are the episodes that are turns which nobody has read yet.
    """
    traits = _traits_of_episodes(episodes, now, policy) | _traits_of_turns(episodes, waiting, policy)
    traits |= _traits_of_beliefs(beliefs, policy)
    found: list[EpisodeCandidate | BeliefCandidate] = [*episodes, *beliefs]
    candidates = [candidate for candidate in found if candidate.id in traits]
    known = [traits[candidate.id] for candidate in candidates]
    similarity = reference_similarities(candidates, profile)
    text = scale_min_max(values=[candidate.text_score for candidate in candidates])
    likeness = np.where(np.isnan(similarity), text, similarity)
    named = [names_any(query=query, names=trait.names) for trait in known]
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
        "likeness": likeness,
        "by_likeness": scores.likeness,
        "by_importance": scores.importance,
        "by_recency": scores.recency,
        "by_stability": scores.stability,
        "by_subject": scores.subject,
        "insight": _insight_factors(known, policy),
    }
    kinds = [MemoryType.EPISODE if isinstance(c, EpisodeCandidate) else MemoryType.BELIEF for c in candidates]
    return collect_ranked(kinds=kinds, candidates=candidates, scores=scores.score, components=components)


def _insight_factors(known: Sequence[_Traits], policy: Policy) -> NDArray[np.float64]:
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
            stability=policy.strength.initial_stability,
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
            stability=policy.strength.initial_stability,
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
            stability=found[key].stability or policy.strength.initial_stability,
            is_insight=fact_type == FactType.INSIGHT,
        )
        for key, importance, subject, fact_type in rows
    }
