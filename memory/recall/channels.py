"""The channels of recall, each within its time: what fails or is slow is dropped and named, and the others answer."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Protocol

import structlog

from memory.domain.policy import RecallPolicy
from memory.models.fields import VectorKind
from memory.recall.arms import Ways
from memory.search.hybrid import BeliefCandidate, Candidate, EpisodeCandidate, SearchHits, search_claims
from memory.search.prepared import Result, SearchFailed, TimedSearch
from memory.search.related import read_episode_candidates
from memory.search.scope import SearchScope, VectorMethod
from memory.search.statements import QueryWords, SearchQuery
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)


class Search(Protocol[Candidate]):
    """A search of one kind of memory, complete but for what is looked for."""

    def __call__(self, *, query: SearchQuery) -> SearchHits[Candidate]: ...


class Channel(StrEnum):
    """What an answer can come to lack."""

    VECTORS = "vectors"
    TEXT = "text"
    BELIEFS = "beliefs"
    GRAPH = "graph"
    RERANKER = "reranker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """How each kind of memory is searched, complete but for what is looked for, and which ways suit it."""

    ways: Callable[..., Ways]
    episodes: Search[EpisodeCandidate]
    beliefs: Search[BeliefCandidate]


class Channels:
    """One query's way through the channels.

    Both arms of a search are one statement. If it takes too long, each arm is tried alone in what time is left, text
    first: no statement begins later than twice the time of a channel after the first for its kind of memory.
    """

    def __init__(self, *, timed: TimedSearch, searches: Searches, query: SearchQuery, policy: RecallPolicy) -> None:
        self._timed, self._searches, self._query = timed, searches, query
        self._seconds = policy.channel_seconds
        self._dropped = {Channel.VECTORS} if query.vector is None else set()

    @property
    def query(self) -> SearchQuery:
        """Return what was looked for in the end, by the arms that are left."""
        return self._query

    @property
    def degraded(self) -> tuple[str, ...]:
        """Name the channels that could not be used."""
        return tuple(channel.value for channel in Channel if channel in self._dropped)

    def read_words(self, read: Callable[[], QueryWords]) -> None:
        """Read how common the words of the query are; without that there is no search by text."""
        try:
            self._query = replace(self._query, words=self._timed.run(read, seconds=self._seconds))
        except SearchFailed as error:
            _note(error)
            self._dropped.add(Channel.TEXT)

    def weigh_vector(self, weigh: Callable[[QueryWords], Vectors | None]) -> None:
        """Have episodes compared with a vector that goes by how rare each word is, too, where there is one."""
        if self._query.vector is not None and self._query.words is not None:
            self._query = replace(self._query, weighted=weigh(self._query.words))

    def find_episodes(self) -> list[EpisodeCandidate]:
        """Find episodes by both arms, or by the one that answers."""
        found = self._find(VectorKind.EPISODE, self._searches.episodes)
        if found is None:
            self._query = replace(self._query, vector=None, words=None)
            self._dropped |= {Channel.VECTORS, Channel.TEXT}
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
            self._dropped.add(Channel.BELIEFS)
        return found or []

    def _find(self, kind: VectorKind, search: Search[Candidate]) -> list[Candidate] | None:
        """Find one kind of memory by as many arms as answer in time; None if none does."""
        ends_at = time.monotonic() + 2 * self._seconds
        for query, dropped in self._attempts():
            try:
                found = self._search(kind, search, query, ends_at)
            except SearchFailed as error:
                _note(error)
                continue
            self._query = query
            self._dropped |= dropped
            return found
        return None

    def _attempts(self) -> Iterator[tuple[SearchQuery, set[Channel]]]:
        """Yield what to search by, and which channels that leaves out."""
        if self._query.vector is not None or self._query.words is not None:
            yield self._query, set()
        if self._query.vector is not None and self._query.words is not None:
            yield replace(self._query, vector=None), {Channel.VECTORS}
            yield replace(self._query, words=None), {Channel.TEXT}

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
                    _note(error)
                    self._dropped.add(Channel.VECTORS)
                    break
        return found.found

    def _run(self, read: Callable[[], Result], ends_at: float) -> Result:
        return self._timed.run(read, seconds=min(self._seconds, ends_at - time.monotonic()))

    def _with_arm(self, kind: VectorKind, query: SearchQuery) -> SearchQuery:
        if query.vector is None:
            return query
        ways = self._ways(kind, query)
        return replace(query, arm=ways.arm, lookup=ways.lookup, is_small=ways.is_small, effort=ways.effort)

    def _ways(self, kind: VectorKind, query: SearchQuery) -> Ways:
        return self._searches.ways(kind=kind, model=query.model, documents=query.words.documents if query.words else 0)


def _note(error: SearchFailed) -> None:
    log.warning("recall.channel_failed", error=str(error))
