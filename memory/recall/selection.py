"""Choose the results among scored candidates.

`rerank` reorders the best by a model that reads query and text together. `select_results` leaves out beliefs that are
hardly about the query, ranks a successor above what it superseded, adds neighbours and shares out the places.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from typing import NamedTuple

import numpy as np
import structlog

from memory.domain.policy import Policy
from memory.domain.policy_recall import RecallPolicy
from memory.llm.onnx_models import ModelUnavailable, PairsTimedOut, Reranker, reranker
from memory.recall.candidates import Candidates
from memory.recall.query import (
    FITS_NO_BETTER,
    TOO_UNLIKE,
    MemoryType,
    PathStep,
    RecallProfile,
    RecallQuery,
    RecallRun,
    search_scope_of,
)
from memory.recall.ranking import Ranked, of_kind, take_best
from memory.recall.retrievers import RecallPart
from memory.search.hybrid import BeliefCandidate
from memory.search.related import EvidenceLookup, LinkedBelief, find_linked_beliefs, look_up_evidence
from memory.search.scope import SearchScope

log = structlog.get_logger(__name__)
Supersessions = Mapping[str, str]  # the belief in the place of what an episode says, by that episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """All candidates with their scores, those that answer, best first, and why others may not."""

    candidates: Sequence[Ranked]
    ranked: Sequence[Ranked]
    barred: Mapping[str, str]
    successions: Supersessions
    paths: Mapping[str, tuple[PathStep, ...]] = field(default_factory=dict)  # by which some came along


def select_results(*, run: RecallRun, candidates: Sequence[Ranked], found: Candidates) -> Selection:
    """Bar what does not belong, and share out the places."""
    question, policy = run.question, run.policy
    if question.profile == RecallProfile.ASSOCIATIVE:
        return _select_associatively(run, candidates, found)
    doubted = _find_doubtful(candidates, found, question, policy)
    bearing = _look_up_evidence(run, candidates, doubted)
    unfit = find_irrelevant(doubted=doubted, resting=bearing.resting, policy=policy.recall)
    if unfit and bearing.successions:  # what would be shown of the past brings along what holds now
        shown = [item for item in candidates if item.id not in unfit][: question.limit]
        unfit -= set(successors_of(ranked=shown, successions=bearing.successions))
    return _share_places(candidates, dict.fromkeys(unfit, FITS_NO_BETTER), bearing.successions, question)


def _share_places(
    candidates: Sequence[Ranked], barred: Mapping[str, str], successions: Supersessions, question: RecallQuery
) -> Selection:
    """Let what was superseded give way among what is not barred, and share out the places."""
    others = [item for item in candidates if item.id not in barred]
    moved = rank_successors_first(ranked=others, successions=successions)
    return Selection(
        candidates=[*moved, *(item for item in candidates if item.id in barred)],
        ranked=_apply_limits(take_best(ranked=moved), question),
        barred=barred,
        successions=successions,
    )


class DoubtfulBeliefs(NamedTuple):
    """Beliefs that have to be about the query, and the best episodes, which may bear them out."""

    beliefs: Sequence[Ranked] = ()
    rivals: Sequence[Ranked] = ()


def _find_doubtful(
    candidates: Sequence[Ranked], found: Candidates, question: RecallQuery, policy: Policy
) -> DoubtfulBeliefs:
    """Doubt beliefs, but not by half of what could have been found, nor with quotas: no kind takes another's places."""
    if question.quotas or found.degraded:
        return DoubtfulBeliefs()
    return find_doubtful_beliefs(candidates=candidates, limit=question.limit, policy=policy.recall)


def _look_up_evidence(run: RecallRun, candidates: Sequence[Ranked], doubted: DoubtfulBeliefs) -> EvidenceLookup:
    """Ask which of the best episodes were superseded, and which of them bear out what is doubted.

    Nothing is asked where nothing is believed (B22).
    """
    episodes = of_kind(ranked=candidates, kind=MemoryType.EPISODE)
    if not episodes or not run.scope.viewer.workspace.keeps_beliefs:
        return EvidenceLookup(successions={}, resting={})
    looked_at = max(2 * run.question.limit, run.policy.recall.successions)
    return look_up_evidence(
        episodes=[item.id for item in episodes[:looked_at]],
        rivals=[item.id for item in doubted.rivals],
        beliefs=[item.id for item in doubted.beliefs],
        reach=search_scope_of(scope=run.scope, now=run.at),
        at=run.question.as_of,
    )


def _apply_limits(ordered: Sequence[Ranked], question: RecallQuery) -> list[Ranked]:
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


def _select_associatively(run: RecallRun, candidates: Sequence[Ranked], found: Candidates) -> Selection:
    """Bar what is unlike the query, and let what lies beside the best come along (R5); the past has no links."""
    question, policy = run.question, run.policy
    barred = {item.id: TOO_UNLIKE for item in candidates if _is_too_unlike(item, policy)}
    like = [item for item in candidates if item.id not in barred]
    successions = _look_up_evidence(run, like, DoubtfulBeliefs()).successions
    if question.as_of is not None:
        return _share_places(candidates, barred, successions, question)
    brought = add_neighbours(ranked=like, reach=run.reach, policy=policy)
    known = {one.id for one in found.beliefs}  # what is new to them counts as accessed likewise, if it is shown
    found.beliefs.extend(one for one in brought.candidates if one.id not in known)
    here = {item.id for item in brought.ranked}
    together = [*brought.ranked, *(item for item in candidates if item.id not in here)]
    still_barred = {key: reason for key, reason in barred.items() if key not in here}
    return replace(_share_places(together, still_barred, successions, question), paths=brought.paths)


def _is_too_unlike(item: Ranked, policy: Policy) -> bool:
    """R5: tell whether a memory is less like the query than asked for; without a vector that is not known."""
    return item.part("similarity") < policy.associative.min_similarity  # never true of NaN


def rerank(
    *, run: RecallRun, candidates: Sequence[Ranked], read: Callable[[Sequence[Ranked]], Mapping[str, str]]
) -> tuple[Sequence[Ranked], tuple[str, ...]]:
    """Return candidates, best first, in the order that the model gives the first of them, and what could not be used.

    `read` gives texts by their ids. No transaction is open while the model reads them. Where it takes longer than it
    may, or cannot be loaded, the order stays, and what it would have looked at says so: its component is not a number.
    """
    query, policy = run.question.query, run.policy.recall
    try:
        model = reranker()
    except ModelUnavailable as error:
        log.warning("recall.reranker_failed", error=str(error))
        return _mark_unread(candidates, policy.rerank_candidates), (RecallPart.RERANKER,)
    if model is None or len(candidates) < 2:
        return candidates, ()
    first, others = candidates[: policy.rerank_candidates], candidates[policy.rerank_candidates :]
    texts = read(first)
    try:
        scores = run.timed.step_out(partial(_score_pairs, model, query, first, texts, policy.rerank_seconds))
    except PairsTimedOut:
        log.warning("recall.reranker_failed", error=f"slower than {policy.rerank_seconds:g} s", texts=len(texts))
        return _mark_unread(candidates, policy.rerank_candidates), (RecallPart.RERANKER,)
    return [*_in_model_order(first, scores), *others], ()


def _score_pairs(
    model: Reranker, query: str, first: Sequence[Ranked], texts: Mapping[str, str], seconds: float
) -> dict[str, float]:
    read = [item.id for item in first if item.id in texts]
    scores = model.score(query=query, texts=[texts[key] for key in read], seconds=seconds)
    return dict(zip(read, scores.tolist(), strict=True))


def _in_model_order(first: Sequence[Ranked], scores: Mapping[str, float]) -> list[Ranked]:
    """Put the best first, equal ones as they were; what has no text, and is not shown, comes last."""
    places = _distinct_scores([item.score for item in first])
    ordered = sorted(first, key=lambda item: scores.get(item.id, -1.0), reverse=True)
    return [
        _rescored(item, score=place, reranker=scores.get(item.id, math.nan), before_reranking=item.score)
        for item, place in zip(ordered, places, strict=True)
    ]


def _distinct_scores(scores: Sequence[float]) -> list[float]:
    """Raise equal scores of an order by as little as there is: what is equal is sorted by id further on."""
    raised: list[float] = []
    for score in reversed(scores):
        raised.append(max(score, np.nextafter(raised[-1], np.inf)) if raised else score)
    return [float(score) for score in reversed(raised)]


def _mark_unread(candidates: Sequence[Ranked], count: int) -> list[Ranked]:
    return [
        _rescored(item, score=item.score, reranker=math.nan) if place < count else item
        for place, item in enumerate(candidates)
    ]


def _rescored(item: Ranked, *, score: float, **numbers: float) -> Ranked:
    """Return an item with another score, and numbers that say why."""
    columns = {name: [value] for name, value in (item.components | numbers).items()}
    return item._replace(score=score, columns=columns, place=0)


def find_doubtful_beliefs(*, candidates: Sequence[Ranked], limit: int, policy: RecallPolicy) -> DoubtfulBeliefs:
    """Doubt all beliefs among candidates, best first, but the best of them if it fits nearly as well as the rivals.

    Where all have room, or there is one kind only, none is doubted.
    """
    beliefs = of_kind(ranked=candidates, kind=MemoryType.BELIEF)
    rivals = of_kind(ranked=candidates, kind=MemoryType.EPISODE)[: policy.belief_rivals]
    if not beliefs or not rivals or len(candidates) <= limit:
        return DoubtfulBeliefs()
    near = max(policy.belief_floor, rivals[-1].part("standard_sum") - policy.belief_gap)
    return DoubtfulBeliefs(beliefs=beliefs[1:] if beliefs[0].part("fit") >= near else beliefs, rivals=rivals)


def find_irrelevant(
    *, doubted: DoubtfulBeliefs, resting: Mapping[str, Collection[str]], policy: RecallPolicy
) -> set[str]:
    """Name the doubted beliefs that the rivals do not bear out, by the rivals that each rests on.

    All of the rivals bear out any, the best of them one that fits. Where all that was found says the same, nothing
    stands out, least of all the belief made of it.
    """
    fit = {item.id for item in doubted.beliefs if item.part("fit") >= policy.belief_floor}
    borne_out = {
        key
        for key, on in resting.items()
        if len(on) == len(doubted.rivals) or (key in fit and doubted.rivals[0].id in on)
    }
    return {item.id for item in doubted.beliefs} - borne_out


def rank_successors_first(*, ranked: Sequence[Ranked], successions: Supersessions) -> list[Ranked]:
    """Let what was superseded change places with its successor where that stands lower: the best score is the latter's.

    Scores are only shared out anew.
    """
    if not successions:
        return list(ranked)
    here = {item.id: item for item in ranked}
    changed: dict[str, Ranked] = {}
    for leader, followers in _followers_by_successor(here, successions).items():
        ordered = [here[leader], *take_best(ranked=followers)]
        scores = sorted((item.score for item in ordered), reverse=True)
        for item, score in zip(ordered, scores, strict=True):
            changed[item.id] = _with_score(item, score)
    return [changed.get(item.id, item) for item in ranked]


def _followers_by_successor(here: Mapping[str, Ranked], successions: Supersessions) -> dict[str, list[Ranked]]:
    lines: dict[str, list[Ranked]] = {}
    for episode, belief in successions.items():
        if episode in here and belief in here:
            lines.setdefault(belief, []).append(here[episode])
    return lines


def _with_score(item: Ranked, score: float) -> Ranked:
    return item if score == item.score else item.gain(score - item.score, succession=score - item.score)


def successors_of(*, ranked: Sequence[Ranked], successions: Supersessions) -> Iterator[str]:
    """Name the beliefs that stand in the place of what some of these episodes say."""
    return (successions[item.id] for item in ranked if item.id in successions)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithNeighbours:
    """Memories with those that came along, the candidates that nothing else had found, and the way to each."""

    ranked: Sequence[Ranked]
    candidates: Sequence[BeliefCandidate]
    paths: Mapping[str, tuple[PathStep, ...]]


def add_neighbours(*, ranked: Sequence[Ranked], reach: SearchScope, policy: Policy) -> WithNeighbours:
    """Let neighbours of the best few results follow at a share of their scores; no memory loses by it."""
    top = {item.id: item for item in take_best(ranked=ranked, limit=policy.associative.neighbours_of)}
    parents = [key for key, item in top.items() if item.type == MemoryType.BELIEF]
    if not parents:
        return WithNeighbours(ranked=ranked, candidates=(), paths={})
    linked = find_linked_beliefs(reach=reach, beliefs=parents, min_confidence=policy.recall.min_confidence)
    known = {item.id: item for item in ranked}
    found: dict[str, LinkedBelief] = {}
    for one in linked:
        if _neighbour_score(one, top, policy) > max(
            _neighbour_score(found.get(one.belief.id), top, policy), _own_score(known, one.belief.id)
        ):
            found[one.belief.id] = one
    raised = [_ranked_neighbour(one, top, known.get(key), policy) for key, one in found.items()]
    return WithNeighbours(
        ranked=[*(item for item in ranked if item.id not in found), *raised],
        candidates=[one.belief for key, one in found.items() if key not in known],
        paths={key: (PathStep(id=one.via, confidence=one.similarity),) for key, one in found.items()},
    )


def _neighbour_score(one: LinkedBelief | None, top: Mapping[str, Ranked], policy: Policy) -> float:
    return top[one.via].score * policy.associative.neighbour_factor if one else -1.0


def _own_score(known: Mapping[str, Ranked], key: str) -> float:
    return known[key].score if key in known else -1.0


def _ranked_neighbour(one: LinkedBelief, top: Mapping[str, Ranked], own: Ranked | None, policy: Policy) -> Ranked:
    """Score a neighbour by the result that it came along with; its own numbers stay to be seen."""
    score = _neighbour_score(one, top, policy)
    numbers = {**(own.components if own else {"similarity": nan}), "by_neighbour": score}
    return Ranked(MemoryType.BELIEF, one.belief.id, score, {name: [value] for name, value in numbers.items()}, 0)
