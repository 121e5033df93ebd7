"""The channels of recall: the query's vector and its words, sent to each kind of memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import partial

import structlog
from django.db.models import Q

from memory.access import Viewer, visible_beliefs
from memory.domain.policy import RecallPolicy
from memory.domain.spreading import NOWHERE, Spread
from memory.history.as_of import beliefs_as_of
from memory.language.times import TimeAsked, read_time_asked
from memory.llm.budget import DailyCapReached
from memory.llm.embedding_calls import embed_query
from memory.llm.embeddings import Embedder
from memory.llm.model import CallFailed
from memory.recall.answering import Answering, read_answers
from memory.recall.arms import Arms, Ways
from memory.recall.channels import Channels, Searches
from memory.recall.ranking import MemoryType
from memory.recall.terms import words_of
from memory.recall.timing import Span, TimeChannel, Timely
from memory.search.hybrid import (
    BeliefCandidate,
    ContextShares,
    EpisodeCandidate,
    search_beliefs,
    search_episodes,
    search_past_beliefs,
    search_past_episodes,
)
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import FoundClaim, MemoryText
from memory.search.scope import SearchScope, VectorMethod
from memory.search.statements import QueryWords, SearchQuery, TextMethod
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """Which memories of a scope are wanted: see `SearchScope`; nothing given narrows nothing."""

    occurred: tuple[datetime | None, datetime | None] = (None, None)
    categories: tuple[str, ...] | None = None
    fact_types: tuple[str, ...] | None = None
    with_expired: bool = False
    hidden_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallScope:
    """Whose memories are searched: what the viewer may see, and of it a project's, a user's, an agent's, if named.

    `narrowing` is what else is asked of them.
    """

    viewer: Viewer
    project_id: int | None = None
    user: str = ""
    agent: str = ""
    narrowing: Narrowing = Narrowing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates of each kind, what was looked for, and the channels that could not be used.

    `claims` are those of episodes that the query may mean. `spread` is what the graph says of episodes, where it was
    asked; `waiting` are the words of those episodes that are turns which nobody has read yet, by their ids.
    """

    episodes: list[EpisodeCandidate]
    beliefs: list[BeliefCandidate]
    query: SearchQuery
    degraded: tuple[str, ...]
    spread: Spread = NOWHERE
    asked: Mapping[str, float] = field(default_factory=dict)  # how much memories say what the query asks for
    of_time: Mapping[str, float] | None = None  # how well they fit the time that it asks about, if it does
    span: Span = (None, None)  # of that time, as far as it is bounded
    closed: frozenset[str] = frozenset()  # of the beliefs, those that changed since that time
    waiting: Mapping[str, MemoryText] = field(default_factory=dict)
    claims: Mapping[str, Sequence[FoundClaim]] = field(default_factory=dict)


def find_candidates(
    *,
    timed: TimedSearch,
    scope: RecallScope,
    query: str,
    types: Collection[MemoryType],
    count: int,
    embedder: Embedder,
    now: datetime,
    as_of: datetime | None = None,
    policy: RecallPolicy,
) -> Found:
    """Find what may answer the query, now or as it stood, `count` memories of each kind by each channel."""
    reach = reach_of(scope=scope, now=as_of or now)
    searches = _now(reach, count, policy) if as_of is None else _then(scope, reach, as_of, count, policy)
    read_words = partial(_read_words, reach, policy)
    times = _times(timed, reach, count, policy)
    is_bounded = as_of is not None or scope.narrowing.occurred != (None, None)  # by who asks
    time_asked = None if is_bounded else _read_time(times, query, read_words, now)
    query = (time_asked.question if time_asked else "") or query
    vector = _embed(scope, query, embedder, policy)
    asked = SearchQuery(vector=vector, model=embedder.name, words=None)
    channels = Channels(timed=timed, searches=searches, query=asked, policy=policy)
    channels.read_words(partial(read_words, query))
    channels.weigh_vector(partial(_weigh, query, embedder, policy))
    episodes = channels.find_episodes() if MemoryType.EPISODE in types else []
    if episodes and as_of is None:
        episodes += channels.find_by_claims(reach=reach, count=count, known={episode.id for episode in episodes})
    beliefs = channels.find_beliefs() if MemoryType.BELIEF in types else []
    timely = Timely()
    if time_asked:
        timely = times.find(
            asked=time_asked,
            query=channels.query,
            episodes=episodes if MemoryType.EPISODE in types else None,
            beliefs=beliefs if MemoryType.BELIEF in types else None,
        )
    episodes, beliefs = [*episodes, *timely.episodes], [*beliefs, *timely.closed]
    answering = _read_answers(timed, episodes, beliefs, query, channels.query, policy)
    return Found(
        episodes=answering.episodes,
        beliefs=beliefs,
        query=channels.query,
        degraded=channels.degraded,
        asked=answering.asked,
        claims=answering.claims,
        of_time=timely.weights,
        span=timely.span,
        closed=frozenset(one.id for one in timely.closed),
    )


def _read_words(reach: SearchScope, policy: RecallPolicy, query: str) -> QueryWords:
    return words_of(query=query, workspace_id=reach.workspace_id, policy=policy)


def _times(timed: TimedSearch, reach: SearchScope, count: int, policy: RecallPolicy) -> TimeChannel:
    def channels(narrowed: SearchScope, query: SearchQuery) -> Channels:
        return Channels(timed=timed, searches=_now(narrowed, count, policy), query=query, policy=policy)

    return TimeChannel(timed=timed, reach=reach, count=count, channels=channels, policy=policy)


def _read_time(
    times: TimeChannel, query: str, read_words: Callable[[str], QueryWords], now: datetime
) -> TimeAsked | None:
    """Return the time that a query asks about, if it does and its bounds are known."""
    asked = read_time_asked(query=query, now=now)
    return times.resolve(asked, read_words=read_words) if asked else None


def _read_answers(
    timed: TimedSearch,
    episodes: list[EpisodeCandidate],
    beliefs: list[BeliefCandidate],
    query: str,
    searched: SearchQuery,
    policy: RecallPolicy,
) -> Answering:
    """Compare the claims of what was found with the query; without them it goes on."""
    read = partial(read_answers, episodes=episodes, beliefs=beliefs, query=query, searched=searched, policy=policy)
    try:
        return timed.run(read, seconds=policy.channel_seconds)
    except SearchFailed as error:
        log.warning("recall.claims_failed", error=str(error))
        return Answering(episodes=episodes, asked={})


def _now(reach: SearchScope, count: int, policy: RecallPolicy) -> Searches:
    return Searches(
        ways=Arms(reach=reach, policy=policy),
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


def _then(scope: RecallScope, reach: SearchScope, at: datetime, count: int, policy: RecallPolicy) -> Searches:
    """Search among memories as they stood at a time; what was active then is in no index."""
    return Searches(
        ways=lambda **_: Ways(arm=VectorMethod.SCAN, lookup=TextMethod.PLANNED),
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
            events=partial(_events_of, scope, reach, at),
        ),
    )


def _context(policy: RecallPolicy) -> ContextShares:
    return ContextShares(
        next_share=policy.next_share,
        answer_share=policy.answer_share,
        second_share=policy.second_share,
        context_matches=policy.context_matches,
    )


def _events_of(scope: RecallScope, reach: SearchScope, at: datetime) -> list[int]:
    """List the events that tell how the beliefs of a scope stood at a time."""
    beliefs = visible_beliefs(viewer=scope.viewer)
    if reach.projects is not None:
        beliefs = beliefs.filter(Q(project=None) | Q(project__in=reach.projects))
    if reach.user:
        beliefs = beliefs.filter(user__in=("", reach.user))
    return list(beliefs_as_of(beliefs=beliefs, at=at).values_list("pgh_id", flat=True))


def reach_of(*, scope: RecallScope, now: datetime) -> SearchScope:
    """Turn a scope into what a statement filters by; a project outside the viewer's own reaches nothing (B21)."""
    allowed = scope.viewer.projects
    projects = allowed if scope.project_id is None else (scope.project_id,)
    if allowed is not None and scope.project_id is not None and scope.project_id not in allowed:
        projects = ()
    narrowing = {one.name: getattr(scope.narrowing, one.name) for one in fields(scope.narrowing)}
    return SearchScope(
        workspace_id=scope.viewer.workspace.pk, projects=projects, allowed=allowed, user=scope.user, agent=scope.agent,
        now=now, **narrowing,
    )  # fmt: skip


def _embed(scope: RecallScope, query: str, embedder: Embedder, policy: RecallPolicy) -> Vectors | None:
    """Embed the query; None if the model fails or recall's cap is reached: recall then goes on by text alone."""
    workspace = scope.viewer.workspace
    try:
        vector: Vectors = embed_query(workspace=workspace, model=embedder, text=query, timeout=policy.embed_seconds)
    except (CallFailed, DailyCapReached) as error:
        log.warning("recall.vectors_failed", model=embedder.name, error=str(error))
        return None
    return vector


def _weigh(query: str, embedder: Embedder, policy: RecallPolicy, words: QueryWords) -> Vectors | None:
    """Weigh the query's words by how rare they are, where its vector is a sum of theirs: common ones drown the rest."""
    weights = zip(words.lexemes, words.weights, strict=True)
    weighted: Vectors | None = embedder.embed_weighted(
        query, weights={lexeme: weight**policy.query_rarity for lexeme, weight in weights}
    )
    return weighted
