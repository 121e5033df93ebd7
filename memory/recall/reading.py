"""What a viewer is shown of ranked memories: their texts, read through the viewer's own eyes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.access.visibility import Viewer, visible_beliefs, visible_episodes
from memory.domain.knowledge import Knowledge, knowledge_of_belief, knowledge_of_episode
from memory.history.as_of import beliefs_as_of
from memory.models import Belief, BeliefEvent, Episode
from memory.recall.ranking import MemoryType, Ranked
from memory.recall.xray import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One result; a belief has a confidence, an episode a time at which it occurred.

    `dated` is the day to name it by: when an episode occurred, when a belief was borne out last.
    """

    type: MemoryType
    id: str
    text: str
    knowledge: Knowledge
    score: float
    dated: datetime
    confidence: float | None = None
    occurred_at: datetime | None = None
    explain: Explanation | None = None


def read_memories(
    *, ranked: Sequence[Ranked], viewer: Viewer, as_of: datetime | None, explained: Mapping[str, Explanation]
) -> tuple[RecalledMemory, ...]:
    """Read the texts of ranked memories, in their order; what a search found by mistake is not shown."""
    ids = [item.id for item in ranked]
    memories = _as_they_are(ranked, viewer) if as_of is None else _as_they_stood(ids, viewer, as_of)
    shown = [item for item in ranked if item.id in memories]
    return tuple(_result(item, memories[item.id], explained.get(item.id)) for item in shown)


def _as_they_are(ranked: Sequence[Ranked], viewer: Viewer) -> dict[str, Any]:
    """Read what is there; a kind that nothing is of is not asked for."""
    of_kind = {kind: [item.id for item in ranked if item.type == kind] for kind in MemoryType}
    columns = ("text", "category", "occurred_at")
    episodes = visible_episodes(viewer=viewer).active().only(*columns).in_bulk(of_kind[MemoryType.EPISODE])
    shown = ("statement", "confidence", "fact_type", "created_at", "last_reinforced_at")
    return episodes | visible_beliefs(viewer=viewer).active().only(*shown).in_bulk(of_kind[MemoryType.BELIEF])


def _as_they_stood(ids: Sequence[str], viewer: Viewer, at: datetime) -> dict[str, Any]:
    """Read beliefs as history has them; an episode's text never changes."""
    stored = visible_episodes(viewer=viewer).filter(created_at__lte=at)
    episodes: dict[str, Any] = stored.only("text", "category", "occurred_at").in_bulk(ids)
    beliefs = beliefs_as_of(beliefs=visible_beliefs(viewer=viewer).filter(pk__in=ids), at=at)
    return episodes | {event.pgh_obj_id: event for event in beliefs}


def _result(item: Ranked, memory: Episode | Belief | BeliefEvent, explanation: Explanation | None) -> RecalledMemory:
    own = _of_episode(memory) if isinstance(memory, Episode) else _of_belief(memory)
    return RecalledMemory(type=item.type, id=item.id, score=item.score, explain=explanation, **own)


def _of_episode(episode: Episode) -> dict[str, Any]:
    return {
        "text": episode.text,
        "knowledge": knowledge_of_episode(category=episode.category),
        "occurred_at": episode.occurred_at,
        "dated": episode.occurred_at,
    }


def _of_belief(belief: Belief | BeliefEvent) -> dict[str, Any]:
    return {
        "text": belief.statement,
        "knowledge": knowledge_of_belief(fact_type=belief.fact_type),
        "confidence": belief.confidence,
        "dated": belief.last_reinforced_at or belief.created_at,
    }
