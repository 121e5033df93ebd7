"""The steps of maintenance: each says how much it changed, and done again it changes nothing (L8)."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Count

from memory.domain.graph import EdgeState, decay_edge
from memory.domain.policy import Policy
from memory.graph.edges import link_by_names, lock_linking, read_linkable, reinforce_edges_of, update_edges
from memory.graph.linking import link_memories, seal_idle_boxes
from memory.language.subjects import same_name
from memory.maintenance.notes import merge_alike
from memory.models import Edge, Entity, Mention


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The maintenance of a workspace: `ends_at` is a moment of the monotonic clock."""

    workspace_id: int
    now: datetime
    ends_at: float
    policy: Policy


def link_new(visit: Visit) -> int:
    """Link what was stored since, so that the other steps see it (L19)."""
    return link_memories(workspace_id=visit.workspace_id, policy=visit.policy, ends_at=visit.ends_at)


def merge_notes(visit: Visit) -> int:
    """Let notes that say what an older one says, and that consolidation is done with, be one with it (L15, D3)."""
    return merge_alike(workspace_id=visit.workspace_id, now=visit.now, ends_at=visit.ends_at, policy=visit.policy)


@transaction.atomic
def merge_entities(visit: Visit) -> int:
    """Let entities whose names differ in accents or a possessive alone be one, and link what names it then (L19)."""
    lock_linking(visit.workspace_id, waits=True)
    entities = Entity.objects.for_workspace(visit.workspace_id)
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for key, name in entities.order_by("pk").values_list("pk", "name"):
        alike[same_name(name)].append(key)
    merged = 0
    for keys in alike.values():
        if len(keys) > 1 and time.monotonic() < visit.ends_at:
            _unite(visit, _most_named_first(keys))
            merged += len(keys) - 1
    return merged


def _most_named_first(keys: list[int]) -> list[int]:
    named = dict(Entity.objects.filter(pk__in=keys).annotate(said=Count("mentions")).values_list("pk", "said"))
    return sorted(keys, key=lambda key: (-named[key], key))


def _unite(visit: Visit, keys: list[int]) -> None:
    kept, *others = keys
    with connection.cursor() as cursor:
        cursor.execute(_MOVE_MENTIONS, {"kept": kept, "others": others})
        moved = [key for (key,) in cursor.fetchall()]
    Entity.objects.filter(pk__in=others).delete()
    latest = Mention.objects.filter(entity=kept, episode__in=moved).order_by("-pk")
    ids = list(latest.values_list("episode_id", flat=True)[: visit.policy.graph.entity_reach])
    memories = read_linkable(ids=ids)
    link_by_names(workspace_id=visit.workspace_id, memories=memories, policy=visit.policy.graph)


def fade_edges(visit: Visit) -> int:
    """See the edges again of what was confirmed since, and let those fade that nobody saw (L19)."""
    _see_confirmed(visit)
    changed = 0
    while time.monotonic() < visit.ends_at and (faded := _fade_some(visit)):
        changed += faded
    return changed


@transaction.atomic
def _see_confirmed(visit: Visit) -> None:
    lock_linking(visit.workspace_id, waits=True)
    with connection.cursor() as cursor:
        cursor.execute(_CONFIRMED, {"workspace": visit.workspace_id})
        seen: Mapping[str, datetime] = dict(cursor.fetchall())
    reinforce_edges_of(seen=seen, policy=visit.policy.graph)


@transaction.atomic
def _fade_some(visit: Visit) -> int:
    lock_linking(visit.workspace_id, waits=True)
    due = Edge.objects.for_workspace(visit.workspace_id).filter(decays_at__lte=visit.now).order_by("decays_at", "pk")
    changed = {}
    for edge in due[: visit.policy.maintenance.batch]:
        standing = EdgeState(confidence=edge.confidence, decays_at=edge.decays_at)
        faded = decay_edge(standing=standing, now=visit.now, policy=visit.policy.graph)
        changed[edge.pk] = (faded, edge.last_seen_at)
    update_edges(changed=changed)
    return len(changed)


@transaction.atomic
def seal_boxes(visit: Visit) -> int:
    """Seal the boxes that nothing was put into for long (L7)."""
    lock_linking(visit.workspace_id, waits=True)
    return seal_idle_boxes(workspace_id=visit.workspace_id, now=visit.now, policy=visit.policy.box)


STEPS = {
    "links": link_new,
    "entities": merge_entities,
    "notes": merge_notes,
    "edges": fade_edges,
    "boxes": seal_boxes,
}

# Where an episode names several of them, one mention is left.
_MOVE_MENTIONS = """
WITH doomed AS (
    DELETE FROM memory_mention m WHERE m.entity_id = ANY(%(others)s) AND EXISTS (
        SELECT FROM memory_mention k WHERE k.episode_id = m.episode_id AND k.id <> m.id
            AND (k.entity_id = %(kept)s OR (k.entity_id = ANY(%(others)s) AND k.id < m.id)))
    RETURNING m.id
)
UPDATE memory_mention m SET entity_id = %(kept)s
WHERE m.entity_id = ANY(%(others)s) AND m.id NOT IN (SELECT id FROM doomed)
RETURNING m.episode_id
"""
_CONFIRMED = """
SELECT e.id, e.confirmed_at FROM memory_episode e
WHERE e.workspace_id = %(workspace)s AND e.confirmed_at IS NOT NULL AND e.status = 'active' AND (
    EXISTS (SELECT FROM memory_edge g WHERE g.source_id = e.id AND g.last_seen_at < e.confirmed_at)
    OR EXISTS (SELECT FROM memory_edge g WHERE g.target_id = e.id AND g.last_seen_at < e.confirmed_at))
"""
