"""The service behind every recall."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memory.access.visibility import Viewer, visible_beliefs, visible_episodes
from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.llm.embeddings import embedder
from memory.models import Belief, Episode, Evidence
from memory.recall.access import count_access
from memory.recall.ranking import MemoryType, Ranked, best, rank_beliefs, rank_episodes, standing_out
from memory.recall.search import Found, RecallScope, find_candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One result; a belief has a confidence, an episode a time at which it occurred."""

    type: MemoryType
    id: str
    text: str
    score: float
    confidence: float | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Results, best first, and the channels that could not be used."""

    results: tuple[RecalledMemory, ...]
    degraded: tuple[str, ...]


def recall(
    *,
    scope: RecallScope,
    query: str,
    limit: int,
    types: Collection[MemoryType] = tuple(MemoryType),
    now: datetime,
) -> Recalled:
    """Return the memories that answer a query best, and count them as accessed (B17, B21).

    Where the workspace keeps no beliefs, episodes alone answer.
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
    ranked = _rank(found=found, limit=limit, profile=model.profile, now=now, policy=policy)
    results = _read(ranked=ranked, viewer=scope.viewer)
    _count(results=results, found=found, now=now, policy=policy)
    return Recalled(results=results, degraded=found.degraded)


def _rank(*, found: Found, limit: int, profile: Profile, now: datetime, policy: Policy) -> list[Ranked]:
    """Rank both kinds together; where there is no room for all, beliefs must be about the query to take a place."""
    episodes = rank_episodes(candidates=found.episodes, profile=profile, policy=policy)
    beliefs = rank_beliefs(candidates=found.beliefs, episodes=found.episodes, profile=profile, now=now, policy=policy)
    if episodes and beliefs and len(episodes) + len(beliefs) > limit and not found.degraded:
        fit = standing_out(candidates=found.beliefs, episodes=found.episodes, profile=profile, policy=policy)
        fit |= _resting_on(best(ranked=episodes, limit=1)[0].id, found)
        beliefs = [belief for belief in beliefs if belief.id in fit]
    return best(ranked=[*episodes, *beliefs], limit=limit)


def _resting_on(episode_id: str, found: Found) -> set[str]:
    """Name the beliefs found for which an episode is evidence.

    Where all that was found says the same, nothing stands out, least of all the belief made of it.
    """
    rows = Evidence.objects.filter(episode=episode_id, belief__in=[belief.id for belief in found.beliefs])
    return set(rows.values_list("belief_id", flat=True))


def _read(*, ranked: Sequence[Ranked], viewer: Viewer) -> tuple[RecalledMemory, ...]:
    """Read the texts through the viewer's own eyes: what a search found by mistake is not shown."""
    ids = [item.id for item in ranked]
    episodes = visible_episodes(viewer=viewer).active().only("text", "occurred_at").in_bulk(ids)
    beliefs = visible_beliefs(viewer=viewer).active().only("statement", "confidence").in_bulk(ids)
    memories = episodes | beliefs
    return tuple(_result(item, memories[item.id]) for item in ranked if item.id in memories)


def _result(item: Ranked, memory: Episode | Belief) -> RecalledMemory:
    if isinstance(memory, Episode):
        return RecalledMemory(
            type=item.type, id=item.id, text=memory.text, score=item.score, occurred_at=memory.occurred_at
        )
    return RecalledMemory(
        type=item.type, id=item.id, text=memory.statement, score=item.score, confidence=memory.confidence
    )


def _count(*, results: Sequence[RecalledMemory], found: Found, now: datetime, policy: Policy) -> None:
    shown = {result.id for result in results}
    count_access(
        episodes=[episode for episode in found.episodes if episode.id in shown],
        beliefs=[belief for belief in found.beliefs if belief.id in shown],
        now=now,
        policy=policy.retrieval,
    )
