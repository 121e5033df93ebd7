"""Find what may answer a query.

`find_candidates` runs the retrievers; `add_buffered_turns` adds turns that wait in a buffer, `follow_links` adds
episodes linked to the best candidates.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import numpy as np
import structlog
from django.db.models import Q

from memory.access import visible_beliefs
from memory.domain.graph import NO_SPREAD, Spread, WalkedEdge, spread_from
from memory.domain.identity import turn_id_of
from memory.domain.policy_memories import GraphPolicy
from memory.domain.policy_recall import RecallPolicy
from memory.domain.taxonomy import Role
from memory.history import beliefs_as_of
from memory.language.sentences import strip_echo
from memory.language.words import detect_language
from memory.llm.call_log import DailyCapReached
from memory.llm.embeddings import embed_query
from memory.llm.types import CallFailed, Embedder
from memory.models import Source
from memory.models.fields import TEXT_CONFIGURATIONS
from memory.recall.query import MemoryType, RecallRun, RecallScope
from memory.recall.questions.times import TimeAsked, read_time_asked
from memory.recall.questions.words import is_telling
from memory.recall.ranking import rank_episodes, take_best
from memory.recall.retrievers import (
    ClaimMatches,
    RecallPart,
    Retrievers,
    Searches,
    Span,
    TimeRetriever,
    match_claims,
)
from memory.search.hybrid import (
    BeliefCandidate,
    BufferedTurn,
    ContextShares,
    EpisodeCandidate,
    search_beliefs,
    search_buffered_turns,
    search_episodes,
    search_past_beliefs,
    search_past_episodes,
)
from memory.search.plan import SearchPlan, SearchPlanner
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import FoundClaim, MemoryText, read_episode_candidates, walk_edges
from memory.search.scope import SearchScope, VectorMethod
from memory.search.statements import QueryWords, SearchQuery, TextMethod
from memory.search.vectors import Vectors
from memory.search.words import read_query_words

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Candidates of each kind, what was looked for, and the channels that could not be used.

    `claims` are those of episodes that the query may mean. `spread` is what the graph says of episodes, where it was
    asked; `waiting` are the words of those episodes that are turns which nobody has read yet, by their ids.
    """

    episodes: list[EpisodeCandidate]
    beliefs: list[BeliefCandidate]
    query: SearchQuery
    degraded: tuple[str, ...]
    spread: Spread = NO_SPREAD
    of_time: Mapping[str, float] | None = None  # how well they fit the time that it asks about, if it does
    span: Span = (None, None)  # of that time, as far as it is bounded
    closed: frozenset[str] = frozenset()  # of the beliefs, those that changed since that time
    waiting: Mapping[str, MemoryText] = field(default_factory=dict)
    claims: Mapping[str, Sequence[FoundClaim]] = field(default_factory=dict)


def find_candidates(*, run: RecallRun, types: Collection[MemoryType]) -> Candidates:
    """Find what may answer the question, now or as it stood: of each kind the same number by each channel."""
    timed, policy, reach, as_of = run.timed, run.policy.recall, run.reach, run.question.as_of
    count = max(policy.candidates, run.question.limit)
    searches = _searches_now(reach, count, policy) if as_of is None else _searches_as_of(run, as_of, count)
    read_words = partial(_read_words, reach, policy)
    times = _time_retriever(timed, reach, count, policy)
    is_bounded = as_of is not None or run.narrowed.narrowing.occurred != (None, None)  # by who asks
    time_asked = None if is_bounded else _read_time_asked(times, run.question.query, read_words, run.now)
    query = (time_asked.question if time_asked else "") or run.question.query
    vector = _embed_query(run, query)
    asked = SearchQuery(vector=vector, model=run.model.name, words=None)
    channels = Retrievers(timed=timed, searches=searches, query=asked, policy=policy)
    channels.read_words(partial(read_words, query))
    channels.weigh_vector(partial(_weigh_words, query, run.model, policy))
    episodes = channels.find_episodes() if MemoryType.EPISODE in types else []
    if episodes and as_of is None:
        episodes += channels.find_by_claims(reach=reach, count=count, known={episode.id for episode in episodes})
    beliefs = channels.find_beliefs() if MemoryType.BELIEF in types else []
    timely = times.find(
        asked=time_asked,
        query=channels.query,
        episodes=episodes if MemoryType.EPISODE in types else None,
        beliefs=beliefs if MemoryType.BELIEF in types else None,
    )
    episodes, beliefs = [*episodes, *timely.episodes], [*beliefs, *timely.closed]
    matches = _match_claims(timed, episodes, channels.query, policy)
    return Candidates(
        episodes=matches.episodes,
        beliefs=beliefs,
        query=channels.query,
        degraded=channels.degraded,
        claims=matches.claims,
        of_time=timely.weights,
        span=timely.span,
        closed=frozenset(one.id for one in timely.closed),
    )


def _read_words(reach: SearchScope, policy: RecallPolicy, query: str) -> QueryWords:
    return read_query_words(query=query, workspace_id=reach.workspace_id, is_telling=is_telling, policy=policy)


def _time_retriever(timed: TimedSearch, reach: SearchScope, count: int, policy: RecallPolicy) -> TimeRetriever:
    def channels(narrowed: SearchScope, query: SearchQuery) -> Retrievers:
        return Retrievers(timed=timed, searches=_searches_now(narrowed, count, policy), query=query, policy=policy)

    return TimeRetriever(timed=timed, reach=reach, count=count, channels=channels, policy=policy)


def _read_time_asked(
    times: TimeRetriever, query: str, read_words: Callable[[str], QueryWords], now: datetime
) -> TimeAsked | None:
    """Return the time that a query asks about, if it does and its bounds are known."""
    asked = read_time_asked(query=query, now=now)
    return times.resolve(asked, read_words=read_words) if asked else None


def _match_claims(
    timed: TimedSearch, episodes: list[EpisodeCandidate], searched: SearchQuery, policy: RecallPolicy
) -> ClaimMatches:
    """Compare the claims of what was found with the query; without them it goes on."""
    try:
        return timed.run(partial(match_claims, episodes=episodes, searched=searched), seconds=policy.channel_seconds)
    except SearchFailed as error:
        log.warning("recall.claims_failed", error=str(error))
        return ClaimMatches(episodes=episodes)


def _searches_now(reach: SearchScope, count: int, policy: RecallPolicy) -> Searches:
    return Searches(
        ways=SearchPlanner(reach=reach, policy=policy),
        episodes=partial(
            search_episodes,
            reach=reach,
            candidates=count,
            matching=policy.matching_texts,
            context=_context(policy),
        ),
        beliefs=partial(
            search_beliefs,
            reach=reach,
            candidates=count,
            matching=policy.matching_texts,
            min_confidence=policy.min_confidence,
        ),
    )


def _searches_as_of(run: RecallRun, at: datetime, count: int) -> Searches:
    """Search among memories as they stood at a time; what was active then is in no index."""
    reach, policy = run.reach, run.policy.recall
    return Searches(
        ways=lambda **_: SearchPlan(arm=VectorMethod.SCAN, lookup=TextMethod.PLANNED),
        episodes=partial(
            search_past_episodes,
            reach=reach,
            candidates=count,
            matching=policy.matching_texts,
            context=_context(policy),
            at=at,
        ),
        beliefs=partial(
            search_past_beliefs,
            reach=reach,
            candidates=count,
            matching=policy.matching_texts,
            min_confidence=policy.min_confidence,
            events=partial(_belief_events, run.narrowed, reach, at),
        ),
    )


def _context(policy: RecallPolicy) -> ContextShares:
    return ContextShares(
        next_share=policy.next_share,
        answer_share=policy.answer_share,
        second_share=policy.second_share,
        context_matches=policy.context_matches,
    )


def _belief_events(scope: RecallScope, reach: SearchScope, at: datetime) -> list[int]:
    """List the events that tell how the beliefs of a scope stood at a time."""
    beliefs = visible_beliefs(viewer=scope.viewer)
    if reach.projects is not None:
        beliefs = beliefs.filter(Q(project=None) | Q(project__in=reach.projects))
    if reach.user:
        beliefs = beliefs.filter(user__in=("", reach.user))
    return list(beliefs_as_of(beliefs=beliefs, at=at).values_list("pgh_id", flat=True))


def _embed_query(run: RecallRun, query: str) -> Vectors | None:
    """Embed the query; None if the model fails or recall's cap is reached: recall then goes on by text alone."""
    workspace, seconds = run.scope.viewer.workspace, run.policy.recall.embed_seconds
    try:
        vector: Vectors = embed_query(workspace=workspace, model=run.model, text=query, timeout=seconds)
    except (CallFailed, DailyCapReached) as error:
        log.warning("recall.vectors_failed", model=run.model.name, error=str(error))
        return None
    return vector


def _weigh_words(query: str, embedder: Embedder, policy: RecallPolicy, words: QueryWords) -> Vectors | None:
    """Weigh the query's words by how rare they are, where its vector is a sum of theirs: common ones drown the rest."""
    weights = zip(words.lexemes, words.weights, strict=True)
    weighted: Vectors | None = embedder.embed_weighted(
        query, weights={lexeme: weight**policy.query_rarity for lexeme, weight in weights}
    )
    return weighted


_SOURCES: Mapping[str, Source] = {Role.USER: Source.HUMAN, Role.ASSISTANT: Source.AI, Role.TOOL: Source.INGEST}


def add_buffered_turns(*, run: RecallRun, found: Candidates) -> Candidates:
    """Add to what was found the turns that nobody has read yet; the session that asks has heard its own.

    Where they cannot be read in time, the answer does without.
    """
    words = found.query.words
    if words is None or not words.has_waiting:
        return found
    search = partial(
        search_buffered_turns,
        reach=run.reach,
        query=found.query,
        configuration=TEXT_CONFIGURATIONS.get(detect_language(run.question.query), ""),
        except_session=run.question.session,
        most=run.policy.recall.waiting_turns,
    )
    try:
        turns = run.timed.run(search, seconds=run.policy.recall.channel_seconds)
    except SearchFailed as error:
        log.warning("recall.waiting_failed", error=str(error))
        return found
    said = [(turn, matter) for turn in turns if (matter := strip_echo(turn.content, turn.speaker))]
    candidates = _turn_candidates(said, found.query, run.model)
    return replace(
        found,
        episodes=[*found.episodes, *candidates],
        of_time=_weigh_turns_by_time(found, [(one.id, turn) for one, (turn, _) in zip(candidates, said, strict=True)]),
        waiting={
            one.id: _turn_text(one.id, turn, matter) for one, (turn, matter) in zip(candidates, said, strict=True)
        },
    )


def _turn_candidates(
    said: Sequence[tuple[BufferedTurn, str]], query: SearchQuery, embedder: Embedder
) -> list[EpisodeCandidate]:
    """Put turns beside episodes; one has a vector here only where the model adds up those of words, in no time."""
    similar: Sequence[float | None] = [None] * len(said)
    weighted = similar
    if said and query.vector is not None and query.weighted is not None:
        vectors = embedder.embed([matter for _, matter in said])
        similar = [float(cosine) for cosine in vectors @ np.asarray(query.vector)]
        weighted = [float(cosine) for cosine in vectors @ np.asarray(query.weighted)]
    return [
        EpisodeCandidate(
            id=turn_id_of(turn.id),
            similarity=similarity,
            text_score=turn.text_score,
            coverage=turn.coverage,
            telling=turn.telling,
            context_score=0.0,
            session=turn.session,
            project_id=turn.project_id,
            source=_SOURCES[turn.role],
            speaker=turn.speaker,
            length=turn.length,
            weighted_similarity=weighted_similarity,
        )
        for (turn, _), similarity, weighted_similarity in zip(said, similar, weighted, strict=True)
    ]


def _weigh_turns_by_time(found: Candidates, turns: Sequence[tuple[str, BufferedTurn]]) -> Mapping[str, float] | None:
    """Weigh turns by the time that is asked about, as episodes are: those of its span fit it wholly."""
    start, end = found.span
    if found.of_time is None or (start is None and end is None):
        return found.of_time
    inside = [
        key for key, turn in turns if not (start and turn.occurred_at < start) and not (end and turn.occurred_at >= end)
    ]
    return {**found.of_time, **dict.fromkeys(inside, 1.0)}


def _turn_text(key: str, turn: BufferedTurn, matter: str) -> MemoryText:
    return MemoryText(
        id=key, text=matter, kind="", dated=turn.occurred_at, confidence=None, session=turn.session, is_derived=False,
        valid_from=None, valid_until=None,
    )  # fmt: skip


def follow_links(*, run: RecallRun, found: Candidates) -> Candidates:
    """Walk from the best episodes found, within a channel's time; if that fails, go on without and say so."""
    timed, policy, reach = run.timed, run.policy, run.reach
    ranked = rank_episodes(
        candidates=found.episodes,
        query=run.question.query,
        of_time=found.of_time,
        profile=run.model.profile,
        policy=policy,
    )
    seeds = {item.id: item.score for item in take_best(ranked=ranked, limit=policy.graph.seeds)}
    ends_at = time.monotonic() + policy.recall.channel_seconds
    try:
        walk = partial(walk_edges, reach=reach, seeds=list(seeds), policy=policy.graph)
        steps: list[WalkedEdge] = timed.run(walk, seconds=policy.recall.channel_seconds) if seeds else []
        spread = spread_from(seeds=seeds, steps=steps, policy=policy.graph)
        further = _best_new(spread, found.episodes, policy.graph)
        read = partial(read_episode_candidates, reach=reach, query=found.query, ids=further)
        linked: list[EpisodeCandidate] = timed.run(read, seconds=ends_at - time.monotonic()) if further else []
    except SearchFailed as error:
        log.warning("recall.channel_failed", error=str(error))
        return replace(found, degraded=(*found.degraded, RecallPart.GRAPH.value))
    episodes = sorted([*found.episodes, *linked], key=lambda candidate: candidate.id)
    return replace(found, episodes=episodes, spread=spread)


def _best_new(spread: Spread, known: Sequence[EpisodeCandidate], policy: GraphPolicy) -> list[str]:
    """Choose the best of those that no other channel has found."""
    others = spread.scores.keys() - {candidate.id for candidate in known}
    return sorted(others, key=lambda key: (-spread.scores[key], key))[: policy.found]
