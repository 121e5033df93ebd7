"""The service behind every recall."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from memory.access.visibility import Viewer, visible_beliefs, visible_episodes
from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.llm.embeddings import embedder
from memory.models import Belief, Episode, Evidence
from memory.recall.access import count_access
from memory.recall.ranking import MemoryType, Ranked, best, rank_beliefs, rank_episodes
from memory.recall.search import Found, RecallScope, find_candidates
from memory.recall.xray import Explanation, NearMiss, explain

BELOW_THE_LAST = "below_the_last"  # a smaller score than that of the last result
FITS_NO_BETTER = "fits_no_better"  # a belief that is no nearer to the query than the episodes found


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One result; a belief has a confidence, an episode a time at which it occurred."""

    type: MemoryType
    id: str
    text: str
    score: float
    confidence: float | None = None
    occurred_at: datetime | None = None
    explain: Explanation | None = None


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


def recall(
    *,
    scope: RecallScope,
    query: str,
    limit: int,
    types: Collection[MemoryType] = tuple(MemoryType),
    is_explained: bool = False,
    now: datetime,
) -> Recalled:
    """Return the memories that answer a query best, and count them as accessed (B17, B21).

    Where the workspace keeps no beliefs, episodes alone answer. An X-ray counts as no access.
    """
    policy: Policy = settings.POLICY
    model = embedder()
    if not scope.viewer.workspace.is_believing:
        types = set(types) - {MemoryType.BELIEF}
    found = find_candidates(
        scope=scope,
        query=query,
        types=types,
        count=max(policy.recall.candidates, limit),
        embedder=model,
        now=now,
        policy=policy.recall,
    )
    answer = _rank(found=found, limit=limit, profile=model.profile, now=now, policy=policy)
    explained = explain(candidates=answer.candidates) if is_explained else {}
    results = _read(ranked=answer.ranked, viewer=scope.viewer, explained=explained)
    if is_explained:
        missed = answer.near_misses[: policy.recall.near_misses]
        return Recalled(results=results, degraded=found.degraded, near_misses=_tell(missed, scope.viewer, explained))
    _count(results=results, found=found, now=now, policy=policy)
    return Recalled(results=results, degraded=found.degraded)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """All candidates with their scores, those that answer, and the others, best first."""

    candidates: Sequence[Ranked]
    ranked: Sequence[Ranked]
    near_misses: Sequence[NearMiss]


def _rank(*, found: Found, limit: int, profile: Profile, now: datetime, policy: Policy) -> _Answer:
    """Rank both kinds together; where there is no room for all, beliefs must be about the query to take a place."""
    episodes = rank_episodes(candidates=found.episodes, profile=profile, policy=policy)
    beliefs = rank_beliefs(candidates=found.beliefs, episodes=found.episodes, profile=profile, now=now, policy=policy)
    barred: list[Ranked] = []
    if episodes and beliefs and len(episodes) + len(beliefs) > limit and not found.degraded:
        resting = _resting_on(best(ranked=episodes, limit=1)[0].id, found)
        barred = [
            belief
            for belief in beliefs
            if belief.components["fit"] < policy.recall.belief_floor and belief.id not in resting
        ]
    open_to = best(ranked=[item for item in (*episodes, *beliefs) if item not in barred])
    missed = [NearMiss(ranked=item, reason=BELOW_THE_LAST) for item in open_to[limit:]]
    missed += [NearMiss(ranked=item, reason=FITS_NO_BETTER) for item in barred]
    missed.sort(key=lambda miss: (-miss.ranked.score, miss.ranked.id))
    return _Answer(candidates=[*episodes, *beliefs], ranked=open_to[:limit], near_misses=missed)


def _tell(missed: Sequence[NearMiss], viewer: Viewer, explained: Mapping[str, Explanation]) -> tuple[Missed, ...]:
    reasons = {miss.ranked.id: miss.reason for miss in missed}
    memories = _read(ranked=[miss.ranked for miss in missed], viewer=viewer, explained=explained)
    return tuple(Missed(memory=memory, reason=reasons[memory.id]) for memory in memories)


def _resting_on(episode_id: str, found: Found) -> set[str]:
    """Name the beliefs found for which an episode is evidence.

    Where all that was found says the same, nothing stands out, least of all the belief made of it.
    """
    rows = Evidence.objects.filter(episode=episode_id, belief__in=[belief.id for belief in found.beliefs])
    return set(rows.values_list("belief_id", flat=True))


def _read(
    *, ranked: Sequence[Ranked], viewer: Viewer, explained: Mapping[str, Explanation]
) -> tuple[RecalledMemory, ...]:
    """Read the texts through the viewer's own eyes: what a search found by mistake is not shown."""
    ids = [item.id for item in ranked]
    episodes = visible_episodes(viewer=viewer).active().only("text", "occurred_at").in_bulk(ids)
    beliefs = visible_beliefs(viewer=viewer).active().only("statement", "confidence").in_bulk(ids)
    memories = episodes | beliefs
    shown = [item for item in ranked if item.id in memories]
    return tuple(_result(item, memories[item.id], explained.get(item.id)) for item in shown)


def _result(item: Ranked, memory: Episode | Belief, explanation: Explanation | None) -> RecalledMemory:
    own: dict[str, Any]
    if isinstance(memory, Episode):
        own = {"text": memory.text, "occurred_at": memory.occurred_at}
    else:
        own = {"text": memory.statement, "confidence": memory.confidence}
    return RecalledMemory(type=item.type, id=item.id, score=item.score, explain=explanation, **own)


def _count(*, results: Sequence[RecalledMemory], found: Found, now: datetime, policy: Policy) -> None:
    shown = {result.id for result in results}
    count_access(
        episodes=[episode for episode in found.episodes if episode.id in shown],
        beliefs=[belief for belief in found.beliefs if belief.id in shown],
        now=now,
        policy=policy.retrieval,
    )
