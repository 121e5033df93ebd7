"""The retrievers of one query, each within its time limit.

`Retrievers` searches by vector, words and claims and drops a retriever that fails or is slow; `TimeRetriever` finds
memories of the time that the query asks about; `match_claims` compares the claims of the candidates with the query.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, Protocol

import structlog

from memory.domain.policy_recall import RecallPolicy
from memory.models.fields import VectorKind
from memory.recall.questions.times import BoundingEvent, EventSide, Occasion, TimeAsked
from memory.search.hybrid import (
    BeliefCandidate,
    Candidate,
    EpisodeCandidate,
    SearchHits,
    search_claims,
    search_closed_beliefs,
)
from memory.search.plan import SearchPlan
from memory.search.prepared import Result, SearchFailed, TimedSearch
from memory.search.related import (
    FoundClaim,
    read_belief_validity,
    read_episode_candidates,
    read_episode_times,
    read_found_claims,
)
from memory.search.scope import SearchScope, VectorMethod
from memory.search.statements import QueryWords, SearchQuery
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)


class Search(Protocol[Candidate]):
    """A search of one kind of memory, complete but for what is looked for."""

    def __call__(self, *, query: SearchQuery) -> SearchHits[Candidate]: ...


class RecallPart(StrEnum):
    """What an answer can come to lack."""

    VECTORS = "vectors"
    TEXT = "text"
    BELIEFS = "beliefs"
    GRAPH = "graph"
    RERANKER = "reranker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """How each kind of memory is searched, complete but for what is looked for, and which ways suit it."""

    ways: Callable[..., SearchPlan]
    episodes: Search[EpisodeCandidate]
    beliefs: Search[BeliefCandidate]


class Retrievers:
    """One query's way through the channels.

    Both arms of a search are one statement. If it takes too long, each arm is tried alone in what time is left, text
    first: no statement begins later than twice the time of a channel after the first for its kind of memory.
    """

    def __init__(self, *, timed: TimedSearch, searches: Searches, query: SearchQuery, policy: RecallPolicy) -> None:
        self._timed, self._searches, self._query = timed, searches, query
        self._seconds = policy.channel_seconds
        self._dropped = {RecallPart.VECTORS} if query.vector is None else set()

    @property
    def query(self) -> SearchQuery:
        """Return what was looked for in the end, by the arms that are left."""
        return self._query

    @property
    def degraded(self) -> tuple[str, ...]:
        """Name the channels that could not be used."""
        return tuple(channel.value for channel in RecallPart if channel in self._dropped)

    def read_words(self, read: Callable[[], QueryWords]) -> None:
        """Read how common the words of the query are; without that there is no search by text."""
        try:
            self._query = replace(self._query, words=self._timed.run(read, seconds=self._seconds))
        except SearchFailed as error:
            _log_failure(error)
            self._dropped.add(RecallPart.TEXT)

    def weigh_vector(self, weigh: Callable[[QueryWords], Vectors | None]) -> None:
        """Have episodes compared with a vector that goes by how rare each word is, too, where there is one."""
        if self._query.vector is not None and self._query.words is not None:
            self._query = replace(self._query, weighted=weigh(self._query.words))

    def find_episodes(self) -> list[EpisodeCandidate]:
        """Find episodes by both arms, or by the one that answers."""
        found = self._find(VectorKind.EPISODE, self._searches.episodes)
        if found is None:
            self._query = replace(self._query, vector=None, words=None)
            self._dropped |= {RecallPart.VECTORS, RecallPart.TEXT}
        return found or []

    def find_by_claims(self, *, reach: SearchScope, count: int, known: Collection[str]) -> list[EpisodeCandidate]:
        """Find further episodes by the claims nearest to the query, of those that are not known yet.

        There may be none, where there are no claims: of a text that claims but itself, its own vector tells.
        """
        query = self._query
        if query.vector is None:
            return []
        try:
            ways = self._timed.run(partial(self._ways, VectorKind.CLAIM, query), seconds=self._seconds)
            if not ways.searched:
                return []
            search = partial(
                search_claims,
                reach=reach,
                vector=query.vector,
                model=query.model,
                arm=ways.arm,
                effort=ways.effort,
                candidates=count,
            )
            near = self._timed.run(search, seconds=self._seconds)
            new = [key for key in near if key not in known]
            read = partial(read_episode_candidates, reach=reach, query=query, ids=new)
            return self._timed.run(read, seconds=self._seconds) if new else []
        except SearchFailed as error:
            log.warning("recall.claims_failed", error=str(error))
            return []

    def find_beliefs(self) -> list[BeliefCandidate]:
        """Find beliefs by the arms that are left, or by the one of them that answers."""
        if self._query.vector is None and self._query.words is None:
            return []
        found = self._find(VectorKind.BELIEF, self._searches.beliefs)
        if found is None:
            self._dropped.add(RecallPart.BELIEFS)
        return found or []

    def _find(self, kind: VectorKind, search: Search[Candidate]) -> list[Candidate] | None:
        """Find one kind of memory by as many arms as answer in time; None if none does."""
        ends_at = time.monotonic() + 2 * self._seconds
        for query, dropped in self._attempts():
            try:
                found = self._search(kind, search, query, ends_at)
            except SearchFailed as error:
                _log_failure(error)
                continue
            self._query = query
            self._dropped |= dropped
            return found
        return None

    def _attempts(self) -> Iterator[tuple[SearchQuery, set[RecallPart]]]:
        """Yield what to search by, and which channels that leaves out."""
        if self._query.vector is not None or self._query.words is not None:
            yield self._query, set()
        if self._query.vector is not None and self._query.words is not None:
            yield replace(self._query, vector=None), {RecallPart.VECTORS}
            yield replace(self._query, words=None), {RecallPart.TEXT}

    def _search(
        self, kind: VectorKind, search: Search[Candidate], query: SearchQuery, ends_at: float
    ) -> list[Candidate]:
        """Search, further on where what is nearest does not count, and at last compare all that counts."""
        query = self._run(partial(self._with_arm, kind, query), ends_at)
        found = self._run(partial(search, query=query), ends_at)
        further, all_of_it = replace(query, is_further=True), replace(query, arm=VectorMethod.JOIN)
        for another in (further, all_of_it) if found.may_go_further else (all_of_it,):
            if found.is_short:
                try:
                    found = self._run(partial(search, query=another), ends_at)
                except SearchFailed as error:
                    _log_failure(error)
                    self._dropped.add(RecallPart.VECTORS)
                    break
        return found.found

    def _run(self, read: Callable[[], Result], ends_at: float) -> Result:
        return self._timed.run(read, seconds=min(self._seconds, ends_at - time.monotonic()))

    def _with_arm(self, kind: VectorKind, query: SearchQuery) -> SearchQuery:
        if query.vector is None:
            return query
        ways = self._ways(kind, query)
        return replace(query, arm=ways.arm, lookup=ways.lookup, is_small=ways.is_small, effort=ways.effort)

    def _ways(self, kind: VectorKind, query: SearchQuery) -> SearchPlan:
        return self._searches.ways(kind=kind, model=query.model, documents=query.words.documents if query.words else 0)


def _log_failure(error: SearchFailed) -> None:
    log.warning("recall.channel_failed", error=str(error))


_SAME_EVENT = 0.8  # share of the best text score from which on a text tells of the event, too
Span = tuple[datetime | None, datetime | None]  # its end excluded, either of which may be open


class TimeMatches(NamedTuple):
    """Further episodes of the time asked about, beliefs that held then and changed since, and how well all fit it.

    The weights are by id, 0 to 1; what is not named does not fit, or is of no time that anybody knows. They are None
    where no time is asked about, or none can be searched.
    """

    episodes: Sequence[EpisodeCandidate] = ()
    closed: Sequence[BeliefCandidate] = ()
    weights: dict[str, float] | None = None
    span: Span = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRetriever:
    """A question's way to what is of a time: `reach` has no time of its own, `channels` searches a reach."""

    timed: TimedSearch
    reach: SearchScope
    count: int
    channels: Callable[[SearchScope, SearchQuery], Retrievers]
    policy: RecallPolicy

    def resolve(self, asked: TimeAsked, *, read_words: Callable[[str], QueryWords]) -> TimeAsked | None:
        """Return a time with its event as a bound, None where nobody told of such an event.

        `read_words` weighs words as those of a query. An event was at the first of what its words find best.
        """
        if asked.event is None:
            return asked
        try:
            moment = self._moment_of(asked.event, read_words)
        except SearchFailed as error:
            log.warning("recall.times_failed", error=str(error))
            return None
        if moment is None:
            return None
        is_before = asked.event.side == EventSide.BEFORE
        return replace(asked, start=None if is_before else moment, end=moment if is_before else None)

    def find(
        self,
        *,
        asked: TimeAsked | None,
        query: SearchQuery,
        episodes: Sequence[EpisodeCandidate] | None,
        beliefs: Sequence[BeliefCandidate] | None,
    ) -> TimeMatches:
        """Find what is of a time beside what a query found; of a kind that is None nothing is wanted.

        Where no time is asked about, or anything is slow or fails, the time is left out.
        """
        if asked is None:
            return TimeMatches()
        span = (asked.start, asked.end)
        try:
            inside = self._inside(span, query) if episodes is not None else []
            closed = self._closed(span, query) if beliefs is not None else []
            known = {episode.id for episode in episodes or ()}
            new = [episode for episode in inside if episode.id not in known]
            weigh = partial(self._weigh, asked, span, [*(episodes or ()), *new], inside, [*(beliefs or ()), *closed])
            return TimeMatches(episodes=new, closed=closed, weights=self._run(weigh), span=span)
        except SearchFailed as error:
            log.warning("recall.times_failed", error=str(error))
            return TimeMatches()

    def _run(self, read: Callable[[], Result]) -> Result:
        return self.timed.run(read, seconds=self.policy.channel_seconds)

    def _moment_of(self, event: BoundingEvent, read_words: Callable[[str], QueryWords]) -> datetime | None:
        words = self._run(partial(read_words, event.words))
        query = SearchQuery(vector=None, model="", words=words)
        spans: list[Span] = [(event.start, event.end), (None, None)] if event.start else [(None, None)]
        for span in spans:
            found = self.channels(replace(self.reach, occurred=span), query).find_episodes()
            best = max((episode.text_score for episode in found), default=0.0)
            told = [episode.id for episode in found if episode.text_score >= _SAME_EVENT * best > 0]
            if told:
                return min(one.began_at for one in self._run(partial(read_episode_times, episodes=told)).values())
        return None

    def _inside(self, span: Span, query: SearchQuery) -> list[EpisodeCandidate]:
        """Find episodes of a span by all that the query is asked by; raise SearchFailed where it takes less."""
        if span == (None, None):
            return []
        channels = self.channels(replace(self.reach, occurred=span), query)
        before, inside = channels.degraded, channels.find_episodes()
        if channels.degraded != before:
            raise SearchFailed("Episodes of the time asked about could not be searched by all channels.")
        return inside

    def _closed(self, span: Span, query: SearchQuery) -> list[BeliefCandidate]:
        if span == (None, None):
            return []
        search = partial(
            search_closed_beliefs,
            reach=self.reach,
            query=query,
            candidates=self.count,
            matching=self.policy.matching_texts,
            min_confidence=self.policy.min_confidence,
            span=span,
        )
        return self._run(search).found

    def _weigh(
        self,
        asked: TimeAsked,
        span: Span,
        episodes: Sequence[EpisodeCandidate],
        inside: Sequence[EpisodeCandidate],
        beliefs: Sequence[BeliefCandidate],
    ) -> dict[str, float]:
        """Weigh each memory by how well it fits; all episodes of a span alike, but for the order of occasions."""
        weights = {episode.id: 1.0 for episode in inside}
        if asked.order != Occasion.ANY:
            among = [episode for episode in episodes if episode.id in weights] if inside else episodes
            occasions = [episode.id for episode in _most_telling(among, self.policy)]
            occurred = {key: one.occurred_at for key, one in read_episode_times(episodes=occasions).items()}
            ordered = sorted(occurred, key=lambda key: (occurred[key], key), reverse=asked.order == Occasion.LAST)
            weights = {key: 1.0 - place / len(ordered) for place, key in enumerate(ordered)}
        if beliefs and span != (None, None):
            validity = read_belief_validity(beliefs=[belief.id for belief in beliefs])
            weights |= {key: 1.0 for key, held in validity.items() if _overlap(held, span)}
        return weights


def _overlap(one: Span, other: Span) -> bool:
    (first, last), (start, end) = one, other
    return not (first and end and first >= end) and not (last and start and last <= start)


def _most_telling(episodes: Sequence[EpisodeCandidate], policy: RecallPolicy) -> list[EpisodeCandidate]:
    """Choose what the query is about: what has most of its telling words, where any has; else what is nearest."""
    most = max((episode.telling for episode in episodes), default=0.0)
    if most > 0:
        return [episode for episode in episodes if episode.telling >= policy.occasion_share * most]
    known = [episode for episode in episodes if episode.similarity is not None]
    return sorted(known, key=lambda episode: episode.similarity or 0.0, reverse=True)[: policy.occasions]


class ClaimMatches(NamedTuple):
    """Episodes, each as near as the nearest of its claims, and by episode the claims that may be meant."""

    episodes: list[EpisodeCandidate]
    claims: Mapping[str, Sequence[FoundClaim]] = MappingProxyType({})


def match_claims(*, episodes: Sequence[EpisodeCandidate], searched: SearchQuery) -> ClaimMatches:
    """Compare the claims of the episodes found with the query."""
    if not episodes or searched.vector is None:
        return ClaimMatches(episodes=list(episodes))
    ids = [episode.id for episode in episodes]
    claims: defaultdict[str, list[FoundClaim]] = defaultdict(list)
    for claim in read_found_claims(episodes=ids, vector=searched.vector, model=searched.model):
        claims[claim.episode].append(claim)
    return ClaimMatches(episodes=[_as_near_as_claims(one, claims.get(one.id, ())) for one in episodes], claims=claims)


def _as_near_as_claims(episode: EpisodeCandidate, claims: Sequence[FoundClaim]) -> EpisodeCandidate:
    nearest = max((claim.similarity for claim in claims), default=-1.0)
    own = 1.0 if episode.similarity is None else episode.similarity
    return episode._replace(similarity=nearest) if nearest > own else episode
