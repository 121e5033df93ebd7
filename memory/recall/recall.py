"""Recall the memories that answer a query best.

`recall` retrieves candidates, scores both kinds, selects the results, reads their texts and counts them as accessed;
`find_answer` is the same without the counting, for texts that show only part of the results.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog
from django.conf import settings
from django.db.models import DateTimeField, FloatField, Value
from django.db.models.functions import Coalesce

from memory.access import Viewer, visible_beliefs, visible_episodes
from memory.domain.graph import Spread, WalkedEdge
from memory.domain.policy import Policy
from memory.domain.taxonomy import knowledge_of_belief, knowledge_of_episode
from memory.history import beliefs_as_of
from memory.llm.embeddings import embedder_of
from memory.recall.candidates import Candidates, add_buffered_turns, find_candidates, follow_links
from memory.recall.query import (
    BELOW_THE_LAST,
    Explanation,
    MemoryType,
    NearMiss,
    PathStep,
    Recalled,
    RecalledMemory,
    RecallProfile,
    RecallQuery,
    RecallRun,
    RecallScope,
    RetrieverRank,
)
from memory.recall.ranking import (
    Ranked,
    boost_ranked,
    raise_linked,
    rank_associatively,
    rank_beliefs,
    rank_episodes,
    take_best,
)
from memory.recall.relevance import QueryFit, RelevanceFloor, find_meant_claim
from memory.recall.retrievers import RecallPart
from memory.recall.selection import Selection, rerank, select_results
from memory.recall.usage import count_access, note_shown
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import MemoryText, read_texts

log = structlog.get_logger(__name__)


def recall(
    *,
    scope: RecallScope,
    question: RecallQuery,
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
        note_shown(workspace=scope.viewer.workspace, session=question.session, memories=results, now=now)
    return answer.recalled


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnswer:
    """What came to mind, among what it was found, and the search that is still open; nothing is counted yet."""

    recalled: Recalled
    found: Candidates
    timed: TimedSearch


@contextmanager
def find_answer(*, scope: RecallScope, question: RecallQuery, now: datetime) -> Iterator[FoundAnswer]:
    """Find what answers a question; where the workspace keeps no beliefs, episodes alone do (B22).

    What is shown of it is counted before the search is over: that saves a transaction.
    """
    policy: Policy = settings.POLICY
    model = embedder_of(scope.viewer.workspace)
    with TimedSearch(effort=policy.recall.search_effort) as timed:
        run = RecallRun(question=question, scope=scope, timed=timed, model=model, now=now, policy=policy)
        found = _retrieve(run)
        try:
            recalled = timed.run(partial(_rank_and_read, run, found), seconds=policy.recall.channel_seconds)
        except SearchFailed as error:
            log.warning("recall.reading_failed", error=str(error))
            recalled = Recalled(results=(), degraded=_all_parts(question), is_explained=question.is_explained)
        yield FoundAnswer(recalled=recalled, found=found, timed=timed)


def _retrieve(run: RecallRun) -> Candidates:
    """Find candidates of each kind that is searched, then the turns that wait and what links lead to."""
    found = find_candidates(run=run, types=_searched_types(run))
    if run.question.includes_waiting_turns:
        found = add_buffered_turns(run=run, found=found)
    if run.question.follows_links:
        found = follow_links(run=run, found=found)
    return found


def _searched_types(run: RecallRun) -> Collection[MemoryType]:
    keeps_beliefs = run.scope.viewer.workspace.keeps_beliefs
    return run.question.types if keeps_beliefs else set(run.question.types) - {MemoryType.BELIEF}


def _rank_and_read(run: RecallRun, found: Candidates) -> Recalled:
    """Rank what was found, and read the texts of the results and, if asked for, of the nearest misses."""
    scored = _score_candidates(run, found)
    candidates, unused = rerank(run=run, candidates=scored, read=partial(_read_words, run, found))
    degraded = (*found.degraded, *unused)
    ranking = select_results(run=run, candidates=candidates, found=found)
    read = partial(_read_memories, run, found, ranking)
    if not run.question.is_explained:
        return Recalled(results=read(ranking.ranked, {}), degraded=degraded)
    paths = link_paths(spread=found.spread) | dict(ranking.paths)
    explained = explain_scores(candidates=ranking.candidates, paths=paths)
    missed = read(_near_misses(ranking, run.policy), explained)
    return Recalled(
        results=read(ranking.ranked, explained),
        degraded=degraded,
        is_explained=True,
        near_misses=tuple(
            NearMiss(memory=memory, reason=ranking.barred.get(memory.id, BELOW_THE_LAST)) for memory in missed
        ),
    )


def _score_candidates(run: RecallRun, found: Candidates) -> list[Ranked]:
    """Score both kinds, best first."""
    scored = _score_by_profile(run, found)
    boosted = boost_ranked(ranked=scored, episodes=found.episodes, policy=run.policy.lifecycle)
    return take_best(ranked=raise_linked(ranked=boosted, spread=found.spread, policy=run.policy.graph))


def _score_by_profile(run: RecallRun, found: Candidates) -> list[Ranked]:
    profile, policy = run.model.profile, run.policy
    if run.question.profile == RecallProfile.ASSOCIATIVE:
        return rank_associatively(
            query=run.question.query,
            episodes=found.episodes,
            waiting=found.waiting,
            beliefs=found.beliefs,
            profile=profile,
            now=run.at,
            policy=policy,
        )
    episodes = rank_episodes(
        candidates=found.episodes,
        query=run.question.query,
        of_time=found.of_time,
        profile=profile,
        policy=policy,
    )
    beliefs = rank_beliefs(
        candidates=found.beliefs,
        episodes=found.episodes,
        of_time=found.of_time,
        profile=profile,
        now=run.at,
        policy=policy,
    )
    return [*episodes, *beliefs]


def _meant_claim(found: Candidates, fit: QueryFit, episode_id: str) -> str | None:
    """Return which assertion of an episode the query means, if it means any."""
    claims = found.claims.get(episode_id)
    if not claims:
        return None
    nearest = next((one.similarity for one in found.episodes if one.id == episode_id), None)
    return find_meant_claim(claims=claims, fit=fit, nearest=math.inf if nearest is None else nearest) or None


def _read_memories(
    run: RecallRun,
    found: Candidates,
    ranking: Selection,
    ranked: Sequence[Ranked],
    explained: Mapping[str, Explanation],
) -> tuple[RecalledMemory, ...]:
    """Read the texts of ranked memories, in their order; what a search found by mistake is not shown."""
    texts = _read_texts(run, found, ranked)
    floor = RelevanceFloor(
        query=run.question.query,
        asks_of_time=found.of_time is not None,
        is_for_task=run.question.is_for_task,
        is_multilingual=run.model.is_multilingual,
        policy=run.policy.relevance,
    )
    fit = QueryFit(run.question.query)
    return tuple(
        _hydrated(
            item,
            texts[item.id],
            superseded_by=ranking.successions.get(item.id),
            is_relevant=floor.is_cleared_by(item),
            claim=_meant_claim(found, fit, item.id),
            explain=explained.get(item.id),
        )
        for item in ranked
        if item.id in texts
    )


def _read_words(run: RecallRun, found: Candidates, ranked: Sequence[Ranked]) -> dict[str, str]:
    """Read what ranked memories say, by their ids, and nothing else of them."""
    return {key: text.text for key, text in _read_texts(run, found, ranked).items()}


def _read_texts(run: RecallRun, found: Candidates, ranked: Sequence[Ranked]) -> Mapping[str, MemoryText]:
    """Read memories by their ids; turns that wait are read already, closed beliefs are shown though they changed."""
    viewer = run.scope.viewer
    if run.question.as_of is not None:
        return _texts_as_of([item.id for item in ranked], viewer, run.question.as_of)
    read = read_texts(
        episodes=[item.id for item in ranked if item.type == MemoryType.EPISODE and item.id not in found.waiting],
        beliefs=[item.id for item in ranked if item.type == MemoryType.BELIEF],
        closed=list(found.closed),
        workspace_id=viewer.workspace.pk,
        allowed=viewer.projects,
    )
    return {**read, **found.waiting} if found.waiting else read


_NO_TIME = Value(None, output_field=DateTimeField())


def _texts_as_of(ids: Sequence[str], viewer: Viewer, at: datetime) -> dict[str, MemoryText]:
    """Read beliefs as history has them; an episode's text never changes."""
    stored = visible_episodes(viewer=viewer).filter(pk__in=ids, created_at__lte=at)
    unsure = Value(None, output_field=FloatField())
    episodes = stored.values_list(
        "pk", "text", "category", "occurred_at", unsure, "session", "is_derived", _NO_TIME, "valid_until"
    )
    beliefs = beliefs_as_of(beliefs=visible_beliefs(viewer=viewer).filter(pk__in=ids), at=at)
    dated = Coalesce("last_reinforced_at", "created_at")
    of_none = (Value(""), Value(False))
    validity = ("valid_from", "valid_until")
    events = beliefs.values_list("pgh_obj_id", "statement", "fact_type", dated, "confidence", *of_none, *validity)
    return {row[0]: MemoryText._make(row) for rows in (episodes, events) for row in rows}


def _hydrated(
    item: Ranked,
    text: MemoryText,
    *,
    superseded_by: str | None,
    is_relevant: bool,
    claim: str | None,
    explain: Explanation | None,
) -> RecalledMemory:
    is_episode = item.type == MemoryType.EPISODE
    return RecalledMemory(
        type=item.type,
        id=item.id,
        text=text.text,
        knowledge=knowledge_of_episode(category=text.kind) if is_episode else knowledge_of_belief(fact_type=text.kind),
        score=item.score,
        dated=text.dated,
        confidence=text.confidence,
        occurred_at=text.dated if is_episode else None,
        superseded_by=superseded_by,
        valid_from=text.valid_from,
        valid_until=text.valid_until,
        session=text.session,
        is_derived=text.is_derived,
        is_relevant=is_relevant,
        claim=claim,
        explain=explain,
    )


# What each channel goes by; a rank among candidates with the same number is shared.
_RETRIEVER_SCORES = {"vector": ("similarity",), "text": ("text", "context"), "graph": ("graph",)}


def explain_scores(
    *, candidates: Sequence[Ranked], paths: Mapping[str, tuple[PathStep, ...]] | None = None
) -> dict[str, Explanation]:
    """Return by id how each candidate came to its score, among those of its kind."""
    explained: dict[str, Explanation] = {}
    for kind in {item.type for item in candidates}:
        alike = [item for item in candidates if item.type == kind]
        heard = {name: _retriever_ranks(alike, parts) for name, parts in _RETRIEVER_SCORES.items()}
        for item in alike:
            channels = {name: ranks[item.id] for name, ranks in heard.items() if item.id in ranks}
            explained[item.id] = Explanation(
                channels=channels, components=_without_nan(item.components), path=(paths or {}).get(item.id, ())
            )
    return explained


def _retriever_ranks(alike: Sequence[Ranked], parts: Sequence[str]) -> dict[str, RetrieverRank]:
    """Rank what a channel has found: text that matches nothing, and a vector that is not there, are not found."""
    found = {item.id: sum(item.components.get(part, 0.0) for part in parts) for item in alike}
    known = {key: value for key, value in found.items() if not math.isnan(value) and value != 0.0}
    ordered = sorted(known.values(), reverse=True)
    return {key: RetrieverRank(rank=ordered.index(value) + 1, score=value) for key, value in known.items()}


def _without_nan(components: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in components.items()}


def link_paths(*, spread: Spread) -> dict[str, tuple[PathStep, ...]]:
    """Return the way to each memory that the graph led to, from one that another channel found."""
    return {key: tuple(_path_step(walked) for walked in path) for key, path in spread.paths.items()}


def _path_step(walked: WalkedEdge) -> PathStep:
    return PathStep(id=walked.origin, confidence=walked.confidence, kind=walked.kind, weight=walked.weight)


def _near_misses(ranking: Selection, policy: Policy) -> list[Ranked]:
    answered = {item.id for item in ranking.ranked}
    others = [item for item in ranking.candidates if item.id not in answered]
    return take_best(ranked=others, limit=policy.recall.near_misses)


def _all_parts(question: RecallQuery) -> tuple[str, ...]:
    without = {RecallPart.RERANKER} if question.follows_links else {RecallPart.RERANKER, RecallPart.GRAPH}
    return tuple(channel for channel in RecallPart if channel not in without)


def count_shown(*, results: Sequence[RecalledMemory], answer: FoundAnswer, now: datetime) -> None:
    """Count the memories that were shown of an answer as accessed, both kinds in one statement (B5)."""
    shown = {result.id for result in results}
    count_access(
        episodes=[one for one in answer.found.episodes if one.id in shown and one.id not in answer.found.waiting],
        beliefs=[belief for belief in answer.found.beliefs if belief.id in shown],
        now=now,
        policy=settings.POLICY.strength,
        timed=answer.timed,
    )
