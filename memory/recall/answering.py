"""What makes a memory that was found an answer, beside its likeness: its claims (E1, B17)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from memory.domain.matching.analysis import guess_language
from memory.domain.policy import RecallPolicy
from memory.language.queries import telling_stems
from memory.language.slots import slots_asked, slots_by_name
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.related import FoundClaim, find_beliefs_with_slots, read_found_claims
from memory.search.statements import SearchQuery


class Answering(NamedTuple):
    """Episodes as near as the nearest of their claims; by id, how much each memory counts that says what is asked for.

    A belief says it if a claim does that bears it out. `claims` are those that may be meant.
    """

    episodes: list[EpisodeCandidate]
    asked: dict[str, float]
    claims: Mapping[str, Sequence[FoundClaim]] = MappingProxyType({})  # by episode


def read_answers(
    *,
    episodes: Sequence[EpisodeCandidate],
    beliefs: Sequence[BeliefCandidate],
    query: str,
    searched: SearchQuery,
    policy: RecallPolicy,
) -> Answering:
    """Compare the claims of the memories found with the query."""
    slots = slots_asked(query)
    claims: list[FoundClaim] = []
    if episodes and (searched.vector is not None or slots):
        ids = [episode.id for episode in episodes]
        claims = read_found_claims(episodes=ids, slots=slots, vector=searched.vector, model=searched.model)
    asked = _weigh(claims, policy)
    if beliefs and slots:
        asked |= dict.fromkeys(find_beliefs_with_slots(beliefs=[belief.id for belief in beliefs], slots=slots), 1.0)
    by_episode: defaultdict[str, list[FoundClaim]] = defaultdict(list)
    for claim in claims:
        by_episode[claim.episode].append(claim)
    return Answering(episodes=_as_near_as_claims(episodes, claims), asked=asked, claims=by_episode)


class Fit:
    """How well a sentence fits a query: whether it says what is asked for, and how many telling words it shares."""

    def __init__(self, query: str) -> None:
        self.language = guess_language(query)
        self._words = telling_stems(query, self.language)

    def of(self, sentence: str, *, is_answer: bool) -> tuple[bool, int]:
        """Return both, the more the better; (False, 0) where nothing fits."""
        return is_answer, self.count_shared(telling_stems(sentence, self.language))

    def count_shared(self, stems: Collection[str]) -> int:
        """Count the query's telling words among some stems."""
        return len(self._words.intersection(stems))


def find_meant(*, claims: Sequence[FoundClaim], fit: Fit, nearest: float) -> str:
    """Return which assertion of an episode a query means: what is asked for, else what shares most of its words.

    Else the one that makes the episode as near to the query as it is (`nearest`, a cosine); it may be none.
    """
    meant = []
    for claim in claims:
        fits = fit.of(claim.sentence, is_answer=bool(claim.slots))
        near = -1.0 if claim.similarity is None else claim.similarity
        if claim.sentence and (fits != (False, 0) or near >= nearest):
            meant.append((fits, near, claim.sentence))
    return max(meant, key=itemgetter(0, 1))[2] if meant else ""


def _as_near_as_claims(episodes: Sequence[EpisodeCandidate], claims: Sequence[FoundClaim]) -> list[EpisodeCandidate]:
    nearest: dict[str, float] = {}
    for claim in claims:
        if claim.similarity is not None:
            nearest[claim.episode] = max(claim.similarity, nearest.get(claim.episode, -1.0))
    return [
        episode._replace(similarity=nearest[episode.id])
        if nearest.get(episode.id, -1.0) > (1.0 if episode.similarity is None else episode.similarity)
        else episode
        for episode in episodes
    ]


def _weigh(claims: Sequence[FoundClaim], policy: RecallPolicy) -> dict[str, float]:
    """Return how much each episode counts as an answer: of what has one value at a time, the later said, the more."""
    said: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
    for claim in claims:
        for slot in claim.slots:
            said[slot][claim.episode] = claim.said_at
    weights: dict[str, float] = {}
    for slot, times in said.items():
        newest_first = sorted(times, key=lambda episode: (times[episode], episode), reverse=True)
        for place, episode in enumerate(newest_first):
            late = max(policy.newest_answer - policy.answer_step * place, policy.oldest_answer)
            weight = late if slots_by_name()[slot].is_single else 1.0
            weights[episode] = max(weight, weights.get(episode, 0.0))
    return weights
