"""The service behind every recall."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import structlog
from django.conf import settings

from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.llm.embeddings import Embedder
from memory.llm.workspace_model import embedder_of
from memory.recall.access import count_access
from memory.recall.answering import Fit, find_meant
from memory.recall.associative import rank_associatively
from memory.recall.channels import Channel
from memory.recall.choosing import Floor
from memory.recall.fitness import Doubted, doubt_beliefs, find_unfit
from memory.recall.links import follow_links, paths_of, raise_linked
from memory.recall.neighbours import bring_neighbours
from memory.recall.question import Question, RecallProfile
from memory.recall.ranking import MemoryType, Ranked, best, boost_ranked, of_kind, rank_beliefs, rank_episodes
from memory.recall.reading import RecalledMemory, read_memories, read_words
from memory.recall.reranking import rerank
from memory.recall.search import Found, RecallScope, find_candidates, reach_of
from memory.recall.succession import Successions, give_way, successors_of
from memory.recall.surfacing import note_surfaced
from memory.recall.waiting import add_waiting
from memory.recall.xray import Step, explain
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import EvidenceLookup, look_up_evidence

log = structlog.get_logger(__name__)

BELOW_THE_LAST = "below_the_last"  # a smaller score than that of the last result
FITS_NO_BETTER = "fits_no_better"  # a belief that is hardly nearer to the query than the episodes found
TOO_UNLIKE = "too_unlike"  # less like the query than the associative profile asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A memory that fell just short of the answer, and why."""

    memory: RecalledMemory
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Results, best first, the channels that could not be used, and, if asked for, what fell short."""

    results: tuple[RecalledMemory, ...]
    degraded: tuple[str, ...]
    near_misses: tuple[Missed, ...] = ()
    is_explained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came to mind, among what it was found, and the search that is still open; nothing is counted yet."""

    recalled: Recalled
    found: Found
    timed: TimedSearch


def recall(
    *,
    scope: RecallScope,
    question: Question,
    now: datetime,
    later: Callable[[Callable[[], None]], None] | None = None,
) -> Recalled:
    """Return the memories that answer a question best, and count them as accessed (B17, B21).

    Looking at the X-ray or at the past is no access. A session is told what it was shown, whichever way (Echo), before
    it can go on. Else the count, and with it the end of the search, is left to `later`, if that is given.
    """
    with ExitStack() as search:
        answer = search.enter_context(find_answer(scope=scope, question=question, now=now))
        results = answer.recalled.results
        if not question.is_explained and question.as_of is None:
            search.callback(count_shown, results=results, answer=answer, now=now)
            if later and not question.session and results:
                later(search.pop_all().close)
    if question.session:
        note_surfaced(workspace=scope.viewer.workspace, session=question.session, memories=results, now=now)
    return answer.recalled


@contextmanager
def find_answer(*, scope: RecallScope, question: Question, now: datetime) -> Iterator[Answer]:
    """Find what answers a question; where the workspace keeps no beliefs, episodes alone do (B22).

    What is shown of it is counted before the search is over: that saves a transaction.
    """
    policy: Policy = settings.POLICY
    model = embedder_of(scope.viewer.workspace)
    with TimedSearch(effort=policy.recall.search_effort) as timed:
        found = _find(timed, scope, question, model, now, policy)
        tell = partial(_tell, timed, found, question, scope, model.profile, question.as_of or now, policy)
        try:
            recalled = timed.run(tell, seconds=policy.recall.channel_seconds)
        except SearchFailed as error:
            log.warning("recall.reading_failed", error=str(error))
            recalled = Recalled(results=(), degraded=_channels(question), is_explained=question.is_explained)
        yield Answer(recalled=recalled, found=found, timed=timed)


def _find(
    timed: TimedSearch, scope: RecallScope, question: Question, model: Embedder, now: datetime, policy: Policy
) -> Found:
    narrowed = question.narrow(scope=scope, policy=policy.lifecycle)
    found = find_candidates(
        timed=timed,
        scope=narrowed,
        query=question.query,
        types=_kinds(question, scope),
        count=max(policy.recall.candidates, question.limit),
        embedder=model,
        now=now,
        as_of=question.as_of,
        policy=policy.recall,
    )
    reach = reach_of(scope=narrowed, now=now)
    if question.includes_waiting_turns:
        found = add_waiting(
            timed=timed,
            reach=reach,
            found=found,
            query=question.query,
            session=question.session,
            embedder=model,
            policy=policy.recall,
        )
    if not question.follows_links:
        return found
    return follow_links(
        timed=timed, reach=reach, query=question.query, found=found, profile=model.profile, policy=policy
    )


def _channels(question: Question) -> tuple[str, ...]:
    without = {Channel.RERANKER} if question.follows_links else {Channel.RERANKER, Channel.GRAPH}
    return tuple(channel for channel in Channel if channel not in without)


def count_shown(*, results: Sequence[RecalledMemory], answer: Answer, now: datetime) -> None:
    """Count the memories that were shown of an answer as accessed, both kinds in one statement (B5)."""
    shown = {result.id for result in results}
    count_access(
        episodes=[one for one in answer.found.episodes if one.id in shown and one.id not in answer.found.waiting],
        beliefs=[belief for belief in answer.found.beliefs if belief.id in shown],
        now=now,
        policy=settings.POLICY.retrieval,
        timed=answer.timed,
    )


def _kinds(question: Question, scope: RecallScope) -> Collection[MemoryType]:
    keeps_beliefs = scope.viewer.workspace.keeps_beliefs
    return question.types if keeps_beliefs else set(question.types) - {MemoryType.BELIEF}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """All candidates with their scores, those that answer, best first, and why others may not."""

    candidates: Sequence[Ranked]
    ranked: Sequence[Ranked]
    barred: Mapping[str, str]
    successions: Successions
    paths: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)  # by which some came along


def _candidates(found: Found, question: Question, profile: Profile, now: datetime, policy: Policy) -> list[Ranked]:
    """Score both kinds, best first."""
    scored = _score(found, question, profile, now, policy)
    boosted = boost_ranked(ranked=scored, episodes=found.episodes, policy=policy.lifecycle)
    return best(ranked=raise_linked(ranked=boosted, spread=found.spread, policy=policy.graph))


def _rank(
    *,
    candidates: Sequence[Ranked],
    found: Found,
    question: Question,
    scope: RecallScope,
    now: datetime,
    policy: Policy,
) -> _Ranking:
    """Bar what does not belong, and share out the places."""
    if question.profile == RecallProfile.ASSOCIATIVE:
        return _associated(candidates, found, question, scope, now, policy)
    doubted = _doubt(candidates, found, question, policy)
    bearing = _bearing(candidates, doubted, question, scope, now, policy)
    unfit = find_unfit(doubted=doubted, resting=bearing.resting, policy=policy.recall)
    if unfit and bearing.successions:  # what would be shown of the past brings along what holds now
        shown = [item for item in candidates if item.id not in unfit][: question.limit]
        unfit -= set(successors_of(ranked=shown, successions=bearing.successions))
    return _settled(candidates, dict.fromkeys(unfit, FITS_NO_BETTER), bearing.successions, question)


def _settled(
    candidates: Sequence[Ranked], barred: Mapping[str, str], successions: Successions, question: Question
) -> _Ranking:
    """Let what was superseded give way among what is not barred, and share out the places."""
    others = [item for item in candidates if item.id not in barred]
    moved = give_way(ranked=others, successions=successions)
    return _Ranking(
        candidates=[*moved, *(item for item in candidates if item.id in barred)],
        ranked=_share_out(best(ranked=moved), question),
        barred=barred,
        successions=successions,
    )


def _doubt(candidates: Sequence[Ranked], found: Found, question: Question, policy: Policy) -> Doubted:
    """Doubt beliefs, but not by half of what could have been found, nor with quotas: no kind takes another's places."""
    if question.quotas or found.degraded:
        return Doubted()
    return doubt_beliefs(candidates=candidates, limit=question.limit, policy=policy.recall)


def _bearing(
    candidates: Sequence[Ranked],
    doubted: Doubted,
    question: Question,
    scope: RecallScope,
    now: datetime,
    policy: Policy,
) -> EvidenceLookup:
    """Ask which of the best episodes were superseded, and which of them bear out what is doubted.

    Nothing is asked where nothing is believed (B22).
    """
    episodes = of_kind(ranked=candidates, kind=MemoryType.EPISODE)
    if not episodes or not scope.viewer.workspace.keeps_beliefs:
        return EvidenceLookup(successions={}, resting={})
    looked_at = max(2 * question.limit, policy.recall.successions)
    return look_up_evidence(
        episodes=[item.id for item in episodes[:looked_at]],
        rivals=[item.id for item in doubted.rivals],
        beliefs=[item.id for item in doubted.beliefs],
        reach=reach_of(scope=scope, now=now),
        at=question.as_of,
    )


def _associated(
    candidates: Sequence[Ranked], found: Found, question: Question, scope: RecallScope, now: datetime, policy: Policy
) -> _Ranking:
    """Bar what is unlike the query, and let what lies beside the best come along (R5); the past has no links."""
    barred = {item.id: TOO_UNLIKE for item in candidates if _is_unlike(item, policy)}
    like = [item for item in candidates if item.id not in barred]
    successions = _bearing(like, Doubted(), question, scope, now, policy).successions
    if question.as_of is not None:
        return _settled(candidates, barred, successions, question)
    reach = reach_of(scope=question.narrow(scope=scope, policy=policy.lifecycle), now=now)
    brought = bring_neighbours(ranked=like, reach=reach, policy=policy)
    known = {one.id for one in found.beliefs}  # what is new to them counts as accessed likewise, if it is shown
    found.beliefs.extend(one for one in brought.candidates if one.id not in known)
    here = {item.id for item in brought.ranked}
    together = [*brought.ranked, *(item for item in candidates if item.id not in here)]
    still_barred = {key: reason for key, reason in barred.items() if key not in here}
    return replace(_settled(together, still_barred, successions, question), paths=brought.paths)


def _score(found: Found, question: Question, profile: Profile, now: datetime, policy: Policy) -> list[Ranked]:
    episodes, beliefs = found.episodes, found.beliefs
    if question.profile == RecallProfile.ASSOCIATIVE:
        return rank_associatively(
            query=question.query,
            episodes=episodes,
            asked=found.asked,
            waiting=found.waiting,
            beliefs=beliefs,
            profile=profile,
            now=now,
            policy=policy,
        )
    return [
        *rank_episodes(
            candidates=episodes,
            query=question.query,
            asked=found.asked,
            of_time=found.of_time,
            profile=profile,
            policy=policy,
        ),
        *rank_beliefs(
            candidates=beliefs,
            episodes=episodes,
            asked=found.asked,
            of_time=found.of_time,
            profile=profile,
            now=now,
            policy=policy,
        ),
    ]


def _is_unlike(item: Ranked, policy: Policy) -> bool:
    """R5: tell whether a memory is less like the query than asked for; without a vector that is not known."""
    return item.part("similarity") < policy.associative.min_similarity  # never true of NaN


def _share_out(ordered: Sequence[Ranked], question: Question) -> list[Ranked]:
    """Give the places to the best, to those of a kind no more than its quota."""
    taken: Counter[MemoryType] = Counter()
    ranked: list[Ranked] = []
    for item in ordered:
        if len(ranked) == question.limit:
            break
        if taken[item.type] < question.quotas.get(item.type, question.limit):
            taken[item.type] += 1
            ranked.append(item)
    return ranked


def _tell(
    timed: TimedSearch,
    found: Found,
    question: Question,
    scope: RecallScope,
    profile: Profile,
    now: datetime,
    policy: Policy,
) -> Recalled:
    """Rank what was found, and read the texts of the results and, if asked for, of the nearest misses."""
    candidates, unused = rerank(
        candidates=_candidates(found, question, profile, now, policy),
        query=question.query,
        read=partial(read_words, viewer=scope.viewer, as_of=question.as_of, waiting=found.waiting, closed=found.closed),
        timed=timed,
        policy=policy.recall,
    )
    degraded = (*found.degraded, *unused)
    ranking = _rank(candidates=candidates, found=found, question=question, scope=scope, now=now, policy=policy)
    read = partial(
        read_memories,
        viewer=scope.viewer,
        as_of=question.as_of,
        waiting=found.waiting,
        closed=found.closed,
        successions=ranking.successions,
        is_relevant=Floor(
            query=question.query,
            asks_of_time=found.of_time is not None,
            is_for_task=question.is_for_task,
            is_multilingual=embedder_of(scope.viewer.workspace).is_multilingual,
            policy=policy.relevance,
        ).is_cleared_by,
        claim_of=partial(_claim_of, found, Fit(question.query)),
    )
    if not question.is_explained:
        return Recalled(results=read(ranked=ranking.ranked, explained={}), degraded=degraded)
    paths = paths_of(spread=found.spread) | dict(ranking.paths)
    explained = explain(candidates=ranking.candidates, paths=paths)
    missed = read(ranked=_missed(ranking, policy), explained=explained)
    return Recalled(
        results=read(ranked=ranking.ranked, explained=explained),
        degraded=degraded,
        is_explained=True,
        near_misses=tuple(
            Missed(memory=memory, reason=ranking.barred.get(memory.id, BELOW_THE_LAST)) for memory in missed
        ),
    )


def _claim_of(found: Found, fit: Fit, episode_id: str) -> str | None:
    """Return which assertion of an episode the query means, if it means any."""
    claims = found.claims.get(episode_id)
    if not claims:
        return None
    nearest = next((one.similarity for one in found.episodes if one.id == episode_id), None)
    return find_meant(claims=claims, fit=fit, nearest=math.inf if nearest is None else nearest) or None


def _missed(ranking: _Ranking, policy: Policy) -> list[Ranked]:
    answered = {item.id for item in ranking.ranked}
    others = [item for item in ranking.candidates if item.id not in answered]
    return best(ranked=others, limit=policy.recall.near_misses)
