"""What occurred, or held, at the time that a question asks about: a channel of its own (B17, C2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import structlog

from memory.domain.policy import RecallPolicy
from memory.language.times import Event, Order, Side, TimeAsked
from memory.recall.channels import Channels
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate, search_closed_beliefs
from memory.search.prepared import Result, SearchFailed, TimedSearch
from memory.search.related import read_belief_validity, read_episode_times
from memory.search.scope import SearchScope
from memory.search.statements import QueryWords, SearchQuery

log = structlog.get_logger(__name__)

_SAME_EVENT = 0.8  # share of the best text score from which on a text tells of the event, too

Span = tuple[datetime | None, datetime | None]  # its end excluded, either of which may be open


class Timely(NamedTuple):
    """Further episodes of the time asked about, beliefs that held then and changed since, and how well all fit it.

    The weights are by id, 0 to 1; what is not named does not fit, or is of no time that anybody knows. They are None
    where no time is asked about, or none can be searched.
    """

    episodes: Sequence[EpisodeCandidate] = ()
    closed: Sequence[BeliefCandidate] = ()
    weights: dict[str, float] | None = None
    span: Span = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChannel:
    """A question's way to what is of a time: `reach` has no time of its own, `channels` searches a reach."""

    timed: TimedSearch
    reach: SearchScope
    count: int
    channels: Callable[[SearchScope, SearchQuery], Channels]
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
        is_before = asked.event.side == Side.BEFORE
        return replace(asked, start=None if is_before else moment, end=moment if is_before else None)

    def find(
        self,
        *,
        asked: TimeAsked,
        query: SearchQuery,
        episodes: Sequence[EpisodeCandidate] | None,
        beliefs: Sequence[BeliefCandidate] | None,
    ) -> Timely:
        """Find what is of a time beside what a query found; of a kind that is None nothing is wanted.

        Where anything is slow or fails, the time is left out.
        """
        span = (asked.start, asked.end)
        try:
            inside = self._inside(span, query) if episodes is not None else []
            closed = self._closed(span, query) if beliefs is not None else []
            known = {episode.id for episode in episodes or ()}
            new = [episode for episode in inside if episode.id not in known]
            weigh = partial(self._weigh, asked, span, [*(episodes or ()), *new], inside, [*(beliefs or ()), *closed])
            return Timely(episodes=new, closed=closed, weights=self._run(weigh), span=span)
        except SearchFailed as error:
            log.warning("recall.times_failed", error=str(error))
            return Timely()

    def _run(self, read: Callable[[], Result]) -> Result:
        return self.timed.run(read, seconds=self.policy.channel_seconds)

    def _moment_of(self, event: Event, read_words: Callable[[str], QueryWords]) -> datetime | None:
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
        if asked.order != Order.ANY:
            among = [episode for episode in episodes if episode.id in weights] if inside else episodes
            occasions = [episode.id for episode in _occasions(among, self.policy)]
            occurred = {key: one.occurred_at for key, one in read_episode_times(episodes=occasions).items()}
            ordered = sorted(occurred, key=lambda key: (occurred[key], key), reverse=asked.order == Order.LAST)
            weights = {key: 1.0 - place / len(ordered) for place, key in enumerate(ordered)}
        if beliefs and span != (None, None):
            validity = read_belief_validity(beliefs=[belief.id for belief in beliefs])
            weights |= {key: 1.0 for key, held in validity.items() if _overlap(held, span)}
        return weights


def _overlap(one: Span, other: Span) -> bool:
    (first, last), (start, end) = one, other
    return not (first and end and first >= end) and not (last and start and last <= start)


def _occasions(episodes: Sequence[EpisodeCandidate], policy: RecallPolicy) -> list[EpisodeCandidate]:
    """Choose what the query is about: what has most of its telling words, where any has; else what is nearest."""
    most = max((episode.telling for episode in episodes), default=0.0)
    if most > 0:
        return [episode for episode in episodes if episode.telling >= policy.occasion_share * most]
    known = [episode for episode in episodes if episode.similarity is not None]
    return sorted(known, key=lambda episode: episode.similarity or 0.0, reverse=True)[: policy.occasions]
