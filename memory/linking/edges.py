"""Edges between memories: found among few, however many there are, and written at once (L19)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from memory.domain.edges import EdgeKind, Standing, begin_edge, reinforce_edge, weigh_shared_names
from memory.domain.policy_graph import GraphPolicy
from memory.linking.unlinked import Unlinked
from memory.models import Edge
from memory.models.fields import insert_new

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEdge:
    """An edge as it was found; a kind without a direction is stored in one order whichever way it is given."""

    source: str
    target: str
    kind: EdgeKind
    weight: float
    seen_at: datetime


def link_by_names(*, workspace_id: int, memories: Sequence[Unlinked], policy: GraphPolicy) -> None:
    """Link memories with earlier ones that name the same, the latest of the same project and user first.

    Where an earlier one says it in the same words, that one's edges are seen again.
    """
    shared: defaultdict[Pair, list[int]] = defaultdict(list)
    again: dict[str, datetime] = {}
    seen_at = {memory.id: memory.created_at for memory in memories}
    for one, other, said, is_same in _named_alike([memory.id for memory in memories], policy):
        shared[one, other].append(said)
        if is_same:
            again[other] = max(again.get(other, seen_at[one]), seen_at[one])
    see_again(seen=again, policy=policy)
    edges = (
        NewEdge(
            source=one,
            target=other,
            kind=EdgeKind.ENTITY,
            weight=weigh_shared_names(said=said),
            seen_at=seen_at[one],
        )
        for (one, other), said in shared.items()
    )
    store_edges(workspace_id=workspace_id, edges=edges, policy=policy)


def link_in_time(*, workspace_id: int, memories: Sequence[Unlinked], policy: GraphPolicy) -> None:
    """Link memories with those that stand next to them in their user's session; the second next weighs half."""
    with connection.cursor() as cursor:
        cursor.execute(_BESIDE, {"ids": [memory.id for memory in memories], "most": policy.time_neighbours})
        rows = cursor.fetchall()
    edges = (
        NewEdge(source=one, target=other, kind=EdgeKind.TIME, weight=1 / place, seen_at=seen_at)
        for one, other, place, seen_at in rows
    )
    store_edges(workspace_id=workspace_id, edges=edges, policy=policy)


def _named_alike(ids: Sequence[str], policy: GraphPolicy) -> list[tuple[str, str, int, bool]]:
    """Pair memories with earlier ones that name the same; say how many name it, and whether the words are the same."""
    parameters: dict[str, Any] = {
        "ids": list(ids),
        "most": policy.entity_neighbours,
        "reach": policy.entity_reach,
        "counted": policy.entity_counted,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NAMED_ALIKE, parameters)
        return [(one, other, said, is_same) for one, other, said, is_same in cursor.fetchall()]


def store_edges(*, workspace_id: int, edges: Iterable[NewEdge], policy: GraphPolicy) -> None:
    """Store edges that are not there yet; of those of a kind between the same two, the heaviest."""
    best: dict[tuple[str, str, EdgeKind], NewEdge] = {}
    for edge in edges:
        ends = (edge.source, edge.target) if edge.kind == EdgeKind.CAUSAL else sorted((edge.source, edge.target))
        key = (ends[0], ends[1], edge.kind)
        if key not in best or best[key].weight < edge.weight:
            best[key] = edge
    rows = [
        {"workspace_id": workspace_id, "source_id": source, "target_id": target, "kind": kind.value}
        | _columns(edge, begin_edge(kind=kind, seen_at=edge.seen_at, policy=policy))
        for (source, target, kind), edge in best.items()
    ]
    insert_new(model=Edge, rows=rows)


def see_again(*, seen: Mapping[str, datetime], policy: GraphPolicy) -> None:
    """Reinforce the edges of memories that were confirmed, unless they were seen since; again, it changes nothing."""
    changed: dict[int, tuple[Standing, datetime]] = {}
    for edge in Edge.objects.touching(list(seen)).order_by("pk"):
        at = max(seen[end] for end in (edge.source_id, edge.target_id) if end in seen)
        if at > edge.last_seen_at:
            changed[edge.pk] = (reinforce_edge(confidence=edge.confidence, seen_at=at, policy=policy), at)
    write_standings(changed=changed)


def write_standings(*, changed: Mapping[int, tuple[Standing, datetime]]) -> None:
    """Write how edges stand, and when they were seen last."""
    if not changed:
        return
    standings = [standing for standing, _ in changed.values()]
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE,
            [
                list(changed),
                [standing.confidence for standing in standings],
                [standing.decays_at for standing in standings],
                [seen_at for _, seen_at in changed.values()],
            ],
        )


def _columns(edge: NewEdge, standing: Standing) -> dict[str, object]:
    return {
        "weight": edge.weight,
        "confidence": standing.confidence,
        "created_at": edge.seen_at,
        "last_seen_at": edge.seen_at,
        "decays_at": standing.decays_at,
    }


# Of the latest memories with a name only so many are looked at: everybody may have said it.
_NAMED_ALIKE = """
WITH fresh AS MATERIALIZED (
    SELECT m.id, m.entity_id, m.episode_id, e."user", e.project_id, e.content_hash
    FROM memory_mention m JOIN memory_episode e ON e.id = m.episode_id WHERE m.episode_id = ANY(%(ids)s)
), counted AS MATERIALIZED (
    SELECT d.entity_id, (
        SELECT count(*) FROM (SELECT FROM memory_mention n WHERE n.entity_id = d.entity_id LIMIT %(counted)s) n
    ) AS said
    FROM (SELECT DISTINCT entity_id FROM fresh) d
)
SELECT f.episode_id, n.episode_id, c.said, n.content_hash = f.content_hash
FROM fresh f JOIN counted c USING (entity_id) CROSS JOIN LATERAL (
    SELECT l.episode_id, e.content_hash FROM (
        SELECT m.id, m.episode_id FROM memory_mention m
        WHERE m.entity_id = f.entity_id AND m.id < f.id
        ORDER BY m.entity_id, m.id DESC LIMIT %(reach)s  -- as the index has them, not the key
    ) l JOIN memory_episode e ON e.id = l.episode_id
    WHERE e.status = 'active' AND e.id <> f.episode_id
    ORDER BY (e."user" = f."user" AND e.project_id IS NOT DISTINCT FROM f.project_id) DESC, l.id DESC
    LIMIT %(most)s
) n
ORDER BY f.id
"""
_BESIDE = """
SELECT f.id, n.id, n.place, f.created_at FROM memory_episode f CROSS JOIN LATERAL (
    (SELECT b.id, row_number() OVER (ORDER BY b.occurred_at DESC, b.number DESC) AS place FROM memory_episode b
     WHERE b.workspace_id = f.workspace_id AND b.session = f.session AND NOT b.session = '' AND b.status = 'active'
       AND b."user" = f."user" AND b.project_id IS NOT DISTINCT FROM f.project_id
       AND (b.occurred_at, b.number) < (f.occurred_at, f.number)
     ORDER BY b.occurred_at DESC, b.number DESC LIMIT %(most)s)
    UNION ALL
    (SELECT b.id, row_number() OVER (ORDER BY b.occurred_at, b.number) AS place FROM memory_episode b
     WHERE b.workspace_id = f.workspace_id AND b.session = f.session AND NOT b.session = '' AND b.status = 'active'
       AND b."user" = f."user" AND b.project_id IS NOT DISTINCT FROM f.project_id
       AND (b.occurred_at, b.number) > (f.occurred_at, f.number)
     ORDER BY b.occurred_at, b.number LIMIT %(most)s)
) n
WHERE f.id = ANY(%(ids)s) AND f.session <> ''
"""
_WRITE = """
UPDATE memory_edge e SET confidence = w.confidence, decays_at = w.decays_at, last_seen_at = w.last_seen_at
FROM unnest(%s::bigint[], %s::float8[], %s::timestamptz[], %s::timestamptz[])
    AS w(id, confidence, decays_at, last_seen_at)
WHERE e.id = w.id
"""
