"""How recall scores beliefs and episodes, and blends the two (B17).

The associative profile (R5, R6) and what a score is made of stand below: retrieval strength and stability (B5), decay
of confidence (R7d), trust in a source (D7).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.domain.policy_beliefs import ReflectionPolicy, StrengthPolicy
from memory.domain.policy_memories import TrustPolicy
from memory.domain.policy_recall import AssociativePolicy, RecallPolicy

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefScores:
    """The parts of beliefs' scores, each already weighed, and their sums in 0..1; arrays of one length."""

    likeness: Scores
    strength: Scores
    text: Scores
    score: Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeScores:
    """Episodes' standardised scores by either arm, the text arm's weight, what their sessions add, and the sum.

    The sum is standardised; `score` is it in 0..1.
    """

    vector: Scores
    text: Scores
    text_weight: float
    session: Scores
    together: Scores
    score: Scores


def score_beliefs(
    *,
    confidence: ArrayLike,
    similarity: ArrayLike,
    strength: ArrayLike,
    text: ArrayLike,
    text_beside: ArrayLike = (),
    policy: RecallPolicy,
) -> BeliefScores:
    """Score each candidate.

    Similarity is on the reference scale, strength is the retrieval strength, text is any text score, made comparable by
    min-max over all candidates: `text_beside` are the text scores of the episodes found with them.
    """
    likeness = np.clip(_floats(similarity), 0.0, 1.0)  # below zero there is nothing left to be unlike
    by_likeness = policy.similarity_weight * _floats(confidence) * likeness
    by_strength = policy.strength_weight * _floats(strength)
    by_text = policy.text_weight * scale_min_max(values=text, beside=text_beside)
    return BeliefScores(
        likeness=by_likeness, strength=by_strength, text=by_text, score=by_likeness + by_strength + by_text
    )


def inverse_document_frequency(*, documents: int, frequency: int) -> float:
    """Return how much a word tells that stands in `frequency` of so many texts (BM25's, never negative)."""
    return math.log1p(max(documents - frequency + 0.5, 0.0) / (frequency + 0.5))


def trust_in_words(*, coverage: Sequence[float], policy: RecallPolicy) -> float:
    """Return in 0..1 how far a query's words are trusted: the more of it the best text covers, the more."""
    best = max(coverage, default=0.0)
    span = policy.enough_coverage - policy.least_coverage
    return min(max((best - policy.least_coverage) / span, 0.0), 1.0)


def text_weight(*, trust: float, policy: RecallPolicy) -> float:
    """Return the text arm's weight, by the trust in a query's words."""
    return policy.least_text_weight + (policy.most_text_weight - policy.least_text_weight) * trust


def score_episodes(
    *,
    similarity: ArrayLike,
    weighted: ArrayLike | None = None,
    text: ArrayLike,
    sessions: Sequence[Hashable | None] = (),
    priors: Collection[Scores] = (),
    weight: float,
    trust: float = 0.0,
    policy: RecallPolicy,
) -> EpisodeScores:
    """Score each candidate: its standardised scores, weighed, and its session's, standardised anew, through a logistic.

    `weight` is the text arm's. Of what vectors say, `trust` is the share of similarity to the query's words as they are
    `weighted` by their rarity. `priors` are added to what both arms say (`score_priors`); a session of None is none.
    The logistic's constants are fixed, so that a score means the same from query to query, whatever the weight.
    """
    by_vector, by_text = standardise(values=similarity), standardise(values=text)
    if weighted is not None:
        by_vector = (1 - trust) * by_vector + trust * standardise(values=weighted)
    own = sum(priors, (1 - weight) * by_vector + weight * by_text)
    by_session = policy.session_weight * score_sessions(scores=own, sessions=sessions, best=policy.session_turns)
    together = _stretch(own + by_session, least=policy.least_deviation)
    score = 1.0 / (1.0 + np.exp(-policy.logistic_slope * (together - policy.logistic_midpoint)))
    return EpisodeScores(
        vector=by_vector,
        text=by_text,
        text_weight=weight,
        session=by_session,
        together=together,
        score=np.asarray(score),
    )


def score_priors(
    *,
    of_time: Sequence[float],
    is_named: Sequence[bool],
    is_order: Sequence[bool],
    is_by_ai: Sequence[bool],
    length: Sequence[int],
    policy: RecallPolicy,
) -> dict[str, Scores]:
    """Return what speaks for and against episodes beside their likeness, in standard scores, each under its name.

    For: that one is of the time that is asked about (`of_time`, 0 to 1), that the query names who said it, and that it
    tells what is always to be done. Against: that an AI said it, for of a person, the person is the better witness; and
    that it is long (in different words), for it then says much else.
    """
    longer = np.log(np.maximum(_floats(length) / policy.long_text, 1.0))
    return {
        "asked_time": policy.asked_time_prior * _floats(of_time),
        "named_speaker": policy.named_speaker_prior * _floats(is_named),
        "standing_order": policy.standing_order_prior * _floats(is_order),
        "own_turn": -policy.own_turn_prior * _floats(is_by_ai),
        "long_text": -policy.long_text_prior * longer,
    }


def score_sessions(*, scores: ArrayLike, sessions: Sequence[Hashable | None], best: int) -> Scores:
    """Return how well each episode's session answers: the mean of its `best` best scores, 0 for each that it lacks.

    Scores are standardised. The mean over all episodes that have a session is taken off, so that one session alone
    changes nothing; an episode of none has 0.
    """
    own = _floats(scores)
    # Sessions are many and small: plain numbers take a fraction of the time that arrays of them do.
    of_session: defaultdict[Hashable, list[float]] = defaultdict(list)
    for score, session in zip(own.tolist(), sessions, strict=bool(sessions)):
        if session is not None:
            of_session[session].append(score)
    if not of_session:
        return np.zeros_like(own)
    answers = {session: sum(sorted(members)[-best:]) / best for session, members in of_session.items()}
    found = [answers.get(session) for session in sessions]
    inside = [answer for answer in found if answer is not None]
    mean = sum(inside) / len(inside)
    return _floats([0.0 if answer is None else answer - mean for answer in found])


def fit_among(
    *,
    similarity: ArrayLike,
    text: ArrayLike,
    episode_similarity: ArrayLike,
    episode_text: ArrayLike,
    weight: float,
) -> Scores:
    """Return of each belief by how many standard scores it fits a query better than the episodes found do on average.

    A belief's score has parts that no query changes; without this, a fresh belief would answer every question.
    """
    by_vector = standardise(values=similarity, by=episode_similarity)
    by_text = standardise(values=text, by=episode_text)
    return np.asarray((1 - weight) * by_vector + weight * by_text)


def belief_factors(*, count: int, held: Sequence[float] | None = None, policy: RecallPolicy) -> Scores:
    """Return by what the scores of so many beliefs are multiplied beside those of episodes.

    Of a time, episodes tell more than beliefs, but for one that says that it held then: `held` is above 0 for those,
    None where the query asks about no time.
    """
    factors = np.full(count, policy.belief_blend)
    return factors if held is None else np.where(_floats(held) > 0, 1.0, factors * policy.asked_time_beliefs)


def scale_min_max(*, values: ArrayLike, beside: ArrayLike = ()) -> Scores:
    """Return the values scaled to 0..1 by the range of all, those beside them included; all 0.5 if all are equal."""
    array = _floats(values)
    everything = np.concatenate([array, _floats(beside)])
    low, high = everything.min(initial=np.inf), everything.max(initial=-np.inf)
    if not low < high:
        return np.full_like(array, 0.5)
    return np.asarray((array - low) / (high - low))


def standardise(*, values: ArrayLike, by: ArrayLike | None = None) -> Scores:
    """Return the values less the mean, in standard deviations, of themselves or of others; all 0 if these are equal."""
    array = _floats(values)
    measure = array if by is None else _floats(by)
    if not measure.size or (measure == measure[0]).all():
        return np.zeros_like(array)
    mean, deviation = _mean_and_deviation(measure)
    return np.asarray((array - mean) / deviation) if deviation > 0 else np.zeros_like(array)


def _stretch(values: Scores, *, least: float) -> Scores:
    """Return values of mean 0 and deviation 1; of less, if theirs is below `least`: rounding must not stand out."""
    if not values.size:
        return values
    mean, deviation = _mean_and_deviation(values)
    return np.asarray((values - mean) / max(deviation, least))


def _mean_and_deviation(values: Scores) -> tuple[float, float]:
    """Return what `mean` and `std` do, which take longer to be called than a query's few values to be added."""
    mean = np.add.reduce(values) / values.size
    apart = values - mean
    return float(mean), math.sqrt(np.add.reduce(apart * apart) / values.size)


def _floats(values: Any) -> Scores:
    return np.asarray(values, dtype=np.float64)


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
    likeness = policy.similarity_weight * np.clip(_as_floats(similarity), 0.0, 1.0)
    by_importance = policy.importance_weight * _as_floats(importance)
    recency = policy.recency_weight * np.exp(-policy.recency_decay * np.maximum(_as_floats(unread_days), 0.0))
    steadiness = np.minimum(_as_floats(stability), policy.full_stability) / policy.full_stability
    by_stability = policy.stability_weight * steadiness
    subject = policy.subject_weight * _as_floats(is_named)
    factor = np.where(np.asarray(is_insight, dtype=bool), policy.insight_factor, 1.0)
    score = factor * (likeness + by_importance + recency + by_stability + subject)
    return AssociationScores(
        likeness=likeness, importance=by_importance, recency=recency, stability=by_stability, subject=subject,
        score=score,
    )  # fmt: skip


def _as_floats(values: ArrayLike) -> Scores:
    return np.asarray(values, dtype=np.float64)


_DAY = timedelta(days=1)


def retrieval_strength(
    *, stability: float, since_creation: timedelta, since_access: timedelta | None, policy: StrengthPolicy
) -> float:
    """Return the strength in 0..1: e^(−days since access/(7·S)), half of that from creation on if never accessed."""
    scale = policy.unread_strength if since_access is None else 1.0
    elapsed = since_creation if since_access is None else since_access
    return scale * math.exp(-_days(elapsed) / (policy.decay_days * stability))


def grow_stability(*, stability: float, waited: timedelta, policy: StrengthPolicy) -> float:
    """Return the stability after an access, `waited` being the time since the last one, or since creation."""
    grown = stability * (1.0 + policy.stability_growth * math.log1p(_days(waited)))
    return min(grown, policy.stability_cap)


def _days(elapsed: timedelta) -> float:
    """Return days, none below zero: a clock set back must not make a memory stronger."""
    return max(elapsed / _DAY, 0.0)


def effective_confidence(
    *, confidence: float, since_evidence: timedelta, stability: float, policy: ReflectionPolicy
) -> float:
    """Halve a confidence every so many days since the last evidence, the more slowly the more stable the belief is."""
    days = max(since_evidence / _DAY, 0.0)
    half_life = policy.half_life_days * min(stability, policy.full_stability)
    left: float = confidence * 0.5 ** (days / half_life)
    return left


def trust_in(*, source: str, policy: TrustPolicy) -> float:
    """Return the trust in a source: human, ai, interaction, ingest or dream."""
    trust: float = getattr(policy, source)
    return trust
