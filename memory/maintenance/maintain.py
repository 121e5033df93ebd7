"""Maintain a workspace's memory, step by step, within a time; done again, a step changes nothing (L8).

`maintain_workspace` does every step of `STEPS` in order: link, merge entities, merge notes, decay edges, seal boxes.
`maintain_due` does so for every workspace that is due: after so many extractions, and once a day.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count

from memory.domain.graph import EdgeState, decay_edge
from memory.domain.lifecycle import WORKSPACE_ERRORS
from memory.domain.policy import Policy
from memory.graph.edges import link_by_names, lock_linking, read_linkable, reinforce_edges_of, update_edges
from memory.graph.linking import link_memories, seal_idle_boxes
from memory.language.subjects import same_name
from memory.llm.types import CallFailed
from memory.maintenance.notes import tidy_notes
from memory.models import Edge, Entity, Mention

log = structlog.get_logger(__name__)
# Where an episode names several of them, one mention is left.
_MOVE_MENTIONS_SQL = """
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
_CONFIRMED_SQL = """
SELECT e.id, e.confirmed_at FROM memory_episode e
WHERE e.workspace_id = %(workspace)s AND e.confirmed_at IS NOT NULL AND e.status = 'active' AND (
    EXISTS (SELECT FROM memory_edge g WHERE g.source_id = e.id AND g.last_seen_at < e.confirmed_at)
    OR EXISTS (SELECT FROM memory_edge g WHERE g.target_id = e.id AND g.last_seen_at < e.confirmed_at))
"""
_COUNT_EXTRACTION = """
INSERT INTO memory_maintenancestate AS u (workspace_id, linked_number, next_number, extractions) VALUES (%s, 0, 0, 1)
ON CONFLICT (workspace_id) DO UPDATE SET extractions = u.extractions + 1
"""
_FIND_DUE = """
SELECT w.id FROM memory_workspace w LEFT JOIN memory_maintenancestate u ON u.workspace_id = w.id
WHERE u.extractions >= %(extractions)s OR (
    (u.maintained_at IS NULL OR u.maintained_at < %(before)s) AND (
        u.extractions > 0
        OR EXISTS (SELECT FROM memory_edge e WHERE e.workspace_id = w.id AND e.decays_at <= %(now)s)
        OR EXISTS (
            SELECT FROM memory_box b WHERE b.workspace_id = w.id AND b.sealed_at IS NULL AND b.last_at < %(idle)s)
    )
)
ORDER BY w.id
"""
_RECORD_MAINTENANCE = """
INSERT INTO memory_maintenancestate AS u (workspace_id, linked_number, next_number, extractions, maintained_at)
VALUES (%(workspace)s, 0, 0, 0, %(now)s)
ON CONFLICT (workspace_id) DO UPDATE
SET extractions = greatest(u.extractions - %(waiting)s, 0), maintained_at = %(now)s
"""


def maintain_workspace(*, workspace_id: int, now: datetime, policy: Policy | None = None) -> list[StepResult]:
    """Do every step for a workspace, as far as time allows; what is left is done next time."""
    policy = policy or settings.POLICY
    waiting, ends_at = read_extraction_count(workspace_id=workspace_id), time.monotonic() + policy.maintenance.seconds
    visit = MaintenanceRun(workspace_id=workspace_id, now=now, ends_at=ends_at, policy=policy)
    done = [_run_step(name, visit) for name in STEPS]
    record_maintenance(workspace_id=workspace_id, waiting=waiting, now=now)
    log.info("memory_maintained", workspace=workspace_id, **{one.step: one.changed for one in done})
    return done


def _run_step(name: str, visit: MaintenanceRun) -> StepResult:
    began = time.monotonic()
    changed = STEPS[name](visit) if began < visit.ends_at else None
    return StepResult(step=name, changed=changed, seconds=round(time.monotonic() - began, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step did: how many rows it changed; None where there was no time left for it."""

    step: str
    changed: int | None
    seconds: float


def link_new_memories(visit: MaintenanceRun) -> int:
    """Link what was stored since, so that the other steps see it (L19)."""
    return link_memories(workspace_id=visit.workspace_id, policy=visit.policy, ends_at=visit.ends_at)


@transaction.atomic
def merge_entities(visit: MaintenanceRun) -> int:
    """Let entities whose names differ in accents or a possessive alone be one, and link what names it then (L19)."""
    lock_linking(visit.workspace_id, waits=True)
    entities = Entity.objects.for_workspace(visit.workspace_id)
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for key, name in entities.order_by("pk").values_list("pk", "name"):
        alike[same_name(name)].append(key)
    merged = 0
    for keys in alike.values():
        if len(keys) > 1 and time.monotonic() < visit.ends_at:
            _merge_into_first(visit, _most_named_first(keys))
            merged += len(keys) - 1
    return merged


def merge_notes(visit: MaintenanceRun) -> int:
    """Let one note stay for others that say no more, or that it ends, once consolidation is done with them (L18)."""
    now = time.monotonic()
    ends_at = now + (visit.ends_at - now) / 2  # the reader takes 20 ms for two notes: edges and boxes have their turn
    return tidy_notes(workspace_id=visit.workspace_id, now=visit.now, ends_at=ends_at, policy=visit.policy)


def decay_edges(visit: MaintenanceRun) -> int:
    """See the edges again of what was confirmed since, and let those fade that nobody saw (L19)."""
    _renew_confirmed_edges(visit)
    changed = 0
    while time.monotonic() < visit.ends_at and (faded := _decay_batch(visit)):
        changed += faded
    return changed


@transaction.atomic
def seal_boxes(visit: MaintenanceRun) -> int:
    """Seal the boxes that nothing was put into for long (L7)."""
    lock_linking(visit.workspace_id, waits=True)
    return seal_idle_boxes(workspace_id=visit.workspace_id, now=visit.now, policy=visit.policy.box)


STEPS = {
    "links": link_new_memories,
    "entities": merge_entities,
    "notes": merge_notes,
    "edges": decay_edges,
    "boxes": seal_boxes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun:
    """The maintenance of a workspace: `ends_at` is a moment of the monotonic clock."""

    workspace_id: int
    now: datetime
    ends_at: float
    policy: Policy


def _most_named_first(keys: list[int]) -> list[int]:
    named = dict(Entity.objects.filter(pk__in=keys).annotate(said=Count("mentions")).values_list("pk", "said"))
    return sorted(keys, key=lambda key: (-named[key], key))


def _merge_into_first(visit: MaintenanceRun, keys: list[int]) -> None:
    kept, *others = keys
    with connection.cursor() as cursor:
        cursor.execute(_MOVE_MENTIONS_SQL, {"kept": kept, "others": others})
        moved = [key for (key,) in cursor.fetchall()]
    Entity.objects.filter(pk__in=others).delete()
    latest = Mention.objects.filter(entity=kept, episode__in=moved).order_by("-pk")
    ids = list(latest.values_list("episode_id", flat=True)[: visit.policy.graph.entity_reach])
    memories = read_linkable(ids=ids)
    link_by_names(workspace_id=visit.workspace_id, memories=memories, policy=visit.policy.graph)


@transaction.atomic
def _renew_confirmed_edges(visit: MaintenanceRun) -> None:
    lock_linking(visit.workspace_id, waits=True)
    with connection.cursor() as cursor:
        cursor.execute(_CONFIRMED_SQL, {"workspace": visit.workspace_id})
        seen: Mapping[str, datetime] = dict(cursor.fetchall())
    reinforce_edges_of(seen=seen, policy=visit.policy.graph)


@transaction.atomic
def _decay_batch(visit: MaintenanceRun) -> int:
    lock_linking(visit.workspace_id, waits=True)
    due = Edge.objects.for_workspace(visit.workspace_id).filter(decays_at__lte=visit.now).order_by("decays_at", "pk")
    changed = {}
    for edge in due[: visit.policy.maintenance.batch]:
        standing = EdgeState(confidence=edge.confidence, decays_at=edge.decays_at)
        faded = decay_edge(standing=standing, now=visit.now, policy=visit.policy.graph)
        changed[edge.pk] = (faded, edge.last_seen_at)
    update_edges(changed=changed)
    return len(changed)


def maintain_due(*, now: datetime, policy: Policy) -> int:
    """Maintain every workspace that is due; return how many were."""
    return sum(_try_maintain(workspace_id, now, policy) for workspace_id in find_due_workspaces(now=now, policy=policy))


def _try_maintain(workspace_id: int, now: datetime, policy: Policy) -> bool:
    """Maintain, or log why not: those that come after it are maintained all the same."""
    try:
        maintain_workspace(workspace_id=workspace_id, now=now, policy=policy)
    except (DatabaseError, CallFailed, *WORKSPACE_ERRORS) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "memory_not_maintained",
            workspace=workspace_id,
            error=str(error),
            exc_info=not isinstance(error, DatabaseError),
        )
        return False
    return True


def count_extraction(*, workspace_id: int) -> None:
    """Count an extraction; whoever looks for workspaces that are due finds it in the row."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_EXTRACTION, [workspace_id])


def find_due_workspaces(*, now: datetime, policy: Policy) -> list[int]:
    """List the workspaces that are due."""
    parameters: dict[str, Any] = {
        "extractions": policy.maintenance.extractions,
        "now": now,
        "before": now - timedelta(hours=policy.maintenance.hours),
        "idle": now - timedelta(minutes=policy.box.idle_minutes),
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIND_DUE, parameters)
        return [workspace_id for (workspace_id,) in cursor.fetchall()]


def read_extraction_count(*, workspace_id: int) -> int:
    """Return how many extractions there were since a workspace was maintained last."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extractions FROM memory_maintenancestate WHERE workspace_id = %s", [workspace_id])
        row = cursor.fetchone()
    return row[0] if row else 0


def record_maintenance(*, workspace_id: int, waiting: int, now: datetime) -> None:
    """Note that a workspace was maintained; extractions that came meanwhile wait for the next time."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_MAINTENANCE, {"workspace": workspace_id, "waiting": waiting, "now": now})
