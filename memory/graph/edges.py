"""Edges between memories: by shared names, by neighbourhood in time, by cause.

`link_by_names`, `link_by_time` and `link_by_cause` write them, `read_links` shows those of an episode;
`read_unlinked` finds the memories that have not been linked yet.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import structlog
from django.db import connection

from memory.access import Viewer, visible_episodes
from memory.domain.graph import EdgeKind, EdgeState, begin_edge, known_confidence, reinforce_edge, weigh_shared_names
from memory.domain.lifecycle import OWN_ERRORS
from memory.domain.policy_memories import GraphPolicy
from memory.language.sentences import find_cause, strip_echo
from memory.language.subjects import MOST, find_entities, normalise_entity
from memory.models import Edge, Episode, Mention
from memory.models.fields import EXACT_UP_TO, insert_new
from memory.text.sentences import split_sentences

log = structlog.get_logger(__name__)
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
_UPDATE_EDGES = """
UPDATE memory_edge e SET confidence = w.confidence, decays_at = w.decays_at, last_seen_at = w.last_seen_at
FROM unnest(%s::bigint[], %s::float8[], %s::timestamptz[], %s::timestamptz[])
    AS w(id, confidence, decays_at, last_seen_at)
WHERE e.id = w.id
"""
# A cause is looked for where its effect was told: in the user's session, or else among all of the user's.
_CAUSE_CANDIDATES = """
SELECT c.id, c.text FROM memory_episode e CROSS JOIN LATERAL (
    (SELECT b.id, b.text, b.number FROM memory_episode b
     WHERE e.session <> '' AND b.workspace_id = e.workspace_id AND b.session = e.session AND NOT b.session = ''
       AND b."user" = e."user" AND b.project_id IS NOT DISTINCT FROM e.project_id AND b.status = 'active'
       AND b.id <> e.id
     ORDER BY b.occurred_at DESC, b.number DESC LIMIT %(most)s)
    UNION ALL
    (SELECT b.id, b.text, b.number FROM memory_episode b
     WHERE e.session = '' AND b.workspace_id = e.workspace_id AND b.number < e.number
       AND b."user" = e."user" AND b.project_id IS NOT DISTINCT FROM e.project_id AND b.status = 'active'
     ORDER BY b.number DESC LIMIT %(most)s)
) c
WHERE e.id = %(id)s ORDER BY c.number DESC
"""
_MOST_LINKS = 20  # of the edges shown, the strongest first
_LINK_LOCKS = 4  # the first of the two numbers that name an advisory lock
_NAME_LENGTH = 200
_GERMAN = "de"
_IS_UNLINKED = """e.status = 'active' AND NOT EXISTS (SELECT FROM memory_boxmember m WHERE m.episode_id = e.id)"""
_READ = """
SELECT e.id, e.number, e.project_id, e."user", e.session, e.speaker, e.language, e.text, e.entities, e.content_hash,
    e.created_at, e.occurred_at, e.causes
FROM memory_episode e
"""
_ADVANCE_MARK = """
INSERT INTO memory_maintenancestate AS u (workspace_id, linked_number, next_number, next_at, extractions)
SELECT %(workspace)s, 0, coalesce(max(number), 0), now(), 0 FROM memory_episode WHERE workspace_id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE
SET linked_number = u.next_number, next_number = greatest(EXCLUDED.next_number, u.next_number), next_at = now()
WHERE u.next_at IS NULL OR u.next_at < now() - make_interval(secs => %(minutes)s * 60)
"""


class LinkableMemory(NamedTuple):
    """An episode that was not linked yet, as far as linking looks at it."""

    id: str
    number: int
    project_id: int | None
    user: str
    session: str
    speaker: str
    language: str
    text: str
    entities: list[str]
    content_hash: str
    created_at: datetime
    occurred_at: datetime
    causes: list[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Return whom and what it names: what it came with, or else what its text tells."""
        if self.entities:
            return tuple(dict.fromkeys(_as_stored(name) for name in self.entities if name.strip()))
        try:
            return self._told_names()
        except OWN_ERRORS:
            log.exception("names_not_read", episode=self.id)
            return ()

    def _told_names(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for sentence in split_sentences(strip_echo(self.text, self.speaker)):
            names = find_entities(text=sentence, german=self.language == _GERMAN)
            found |= dict.fromkeys(_as_stored(name) for name in names if name)
            if len(found) >= MOST:
                break
        return tuple(found)[:MOST]


def link_by_names(*, workspace_id: int, memories: Sequence[LinkableMemory], policy: GraphPolicy) -> None:
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
    reinforce_edges_of(seen=again, policy=policy)
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


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEdge:
    """An edge as it was found; a kind without a direction is stored in one order whichever way it is given."""

    source: str
    target: str
    kind: EdgeKind
    weight: float
    seen_at: datetime


def link_by_time(*, workspace_id: int, memories: Sequence[LinkableMemory], policy: GraphPolicy) -> None:
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
        | _edge_columns(edge, begin_edge(kind=kind, seen_at=edge.seen_at, policy=policy))
        for (source, target, kind), edge in best.items()
    ]
    insert_new(model=Edge, rows=rows)


def reinforce_edges_of(*, seen: Mapping[str, datetime], policy: GraphPolicy) -> None:
    """Reinforce the edges of memories that were confirmed, unless they were seen since; again, it changes nothing."""
    changed: dict[int, tuple[EdgeState, datetime]] = {}
    for edge in Edge.objects.touching(list(seen)).order_by("pk"):
        at = max(seen[end] for end in (edge.source_id, edge.target_id) if end in seen)
        if at > edge.last_seen_at:
            changed[edge.pk] = (reinforce_edge(confidence=edge.confidence, seen_at=at, policy=policy), at)
    update_edges(changed=changed)


def update_edges(*, changed: Mapping[int, tuple[EdgeState, datetime]]) -> None:
    """Write how edges stand, and when they were seen last."""
    if not changed:
        return
    standings = [standing for standing, _ in changed.values()]
    with connection.cursor() as cursor:
        cursor.execute(
            _UPDATE_EDGES,
            [
                list(changed),
                [standing.confidence for standing in standings],
                [standing.decays_at for standing in standings],
                [seen_at for _, seen_at in changed.values()],
            ],
        )


def _edge_columns(edge: NewEdge, standing: EdgeState) -> dict[str, object]:
    return {
        "weight": edge.weight,
        "confidence": standing.confidence,
        "created_at": edge.seen_at,
        "last_seen_at": edge.seen_at,
        "decays_at": standing.decays_at,
    }


def link_by_cause(
    *, workspace_id: int, memories: Sequence[LinkableMemory], causes: Mapping[str, Sequence[str]], policy: GraphPolicy
) -> None:
    """Link memories with those that say why they are so; what no memory of theirs says is passed over."""
    edges = [
        edge
        for memory in memories
        if causes.get(memory.id)
        for edge in _causal_edges(memory, causes[memory.id], policy)
    ]
    store_edges(workspace_id=workspace_id, edges=edges, policy=policy)


def _causal_edges(memory: LinkableMemory, causes: Sequence[str], policy: GraphPolicy) -> Iterator[NewEdge]:
    with connection.cursor() as cursor:
        cursor.execute(_CAUSE_CANDIDATES, {"id": memory.id, "most": policy.cause_candidates})
        candidates = cursor.fetchall()
    texts = [text for _, text in candidates]
    for cause in causes:
        if found := find_cause(cause=cause, texts=texts, least=policy.cause_overlap):
            place, share = found
            yield NewEdge(
                source=candidates[place][0], target=memory.id, kind=EdgeKind.CAUSAL, weight=share,
                seen_at=memory.created_at,
            )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLink:
    """An edge as the card of one of its ends shows it: `is_cause` if the other end is this one's cause."""

    episode: str
    text: str
    kind: str
    is_cause: bool
    weight: float
    confidence: float
    last_seen_at: datetime


def read_entity_names(*, episode: Episode) -> list[str]:
    """Name whom and what an episode names."""
    return list(Mention.objects.filter(episode=episode).order_by("pk").values_list("name", flat=True))


def read_links(*, episode: Episode, viewer: Viewer) -> Sequence[EpisodeLink]:
    """List the strongest edges of an episode whose other end is in sight."""
    edges = list(Edge.objects.for_workspace(episode.workspace_id).touching([episode.pk]).order_by("pk"))
    ends = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    texts = dict(visible_episodes(viewer=viewer).filter(pk__in=ends).values_list("pk", "text"))
    links = [_episode_link(edge, episode, texts) for edge in edges if _other_end(edge, episode) in texts]
    return sorted(links, key=lambda link: (-link.weight * link.confidence, link.episode, link.kind))[:_MOST_LINKS]


def _other_end(edge: Edge, episode: Episode) -> str:
    return edge.target_id if edge.source_id == episode.pk else edge.source_id


def _episode_link(edge: Edge, episode: Episode, texts: dict[str, str]) -> EpisodeLink:
    other = _other_end(edge, episode)
    return EpisodeLink(
        episode=other,
        text=texts[other],
        kind=edge.kind,
        is_cause=edge.is_causal and other == edge.source_id,
        weight=edge.weight,
        confidence=known_confidence(edge.confidence),
        last_seen_at=edge.last_seen_at,
    )


def _as_stored(name: str) -> str:
    return normalise_entity(name)[:_NAME_LENGTH]


def lock_linking(workspace_id: int, *, waits: bool) -> bool:
    """Keep everybody else from linking a workspace's memories until the transaction ends; false if somebody is."""
    key = [_LINK_LOCKS, workspace_id % 2**31]
    with connection.cursor() as cursor:
        if waits:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", key)
            return True
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", key)
        is_held: bool = cursor.fetchone()[0]
    return is_held


def find_workspaces_to_link() -> list[int]:
    """List the workspaces with a memory that is not linked."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE)
        return [workspace_id for (workspace_id,) in cursor.fetchall()]


def read_unlinked(*, workspace_id: int, above: int, policy: GraphPolicy) -> list[LinkableMemory]:
    """Read the next memories to link, in the order of storing, of those numbered above the mark and above `above`."""
    with connection.cursor() as cursor:
        cursor.execute(_UNLINKED, {"workspace": workspace_id, "above": above, "most": policy.batch})
        return [LinkableMemory(*row) for row in cursor.fetchall()]


def read_linkable(*, ids: Sequence[str]) -> list[LinkableMemory]:
    """Read memories as linking looks at them, whether they are linked or not."""
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, {"ids": list(ids)})
        return [LinkableMemory(*row) for row in cursor.fetchall()]


def count_unlinked(*, workspace_id: int | None = None) -> int:
    """Count the memories that wait to be linked, in one workspace or in all; one more than the bound means more."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"workspace": workspace_id, "most": EXACT_UP_TO + 1})
        count: int = cursor.fetchone()[0]
    return count


def advance_linked_mark(*, workspace_id: int, policy: GraphPolicy) -> None:
    """Let the mark follow, once whoever drew a lower number must be done; call it when nothing is left to link."""
    with connection.cursor() as cursor:
        cursor.execute(_ADVANCE_MARK, {"workspace": workspace_id, "minutes": policy.settle_minutes})


_DUE = f"""
SELECT w.id FROM memory_workspace w LEFT JOIN memory_maintenancestate u ON u.workspace_id = w.id
WHERE EXISTS (
    SELECT FROM memory_episode e
    WHERE e.workspace_id = w.id AND e.number > coalesce(u.linked_number, 0) AND {_IS_UNLINKED}
)
ORDER BY w.id
"""  # noqa: S608  (statements of this module's own parts)

_COUNT = f"""
SELECT count(*) FROM (
    SELECT FROM memory_workspace w LEFT JOIN memory_maintenancestate u ON u.workspace_id = w.id
    JOIN memory_episode e ON e.workspace_id = w.id AND e.number > coalesce(u.linked_number, 0)
    WHERE {_IS_UNLINKED} AND (%(workspace)s::bigint IS NULL OR w.id = %(workspace)s) LIMIT %(most)s
) waiting
"""  # noqa: S608  (as above)

_NAMED = f"{_READ} WHERE e.id = ANY(%(ids)s) AND e.status = 'active' ORDER BY e.number"

_UNLINKED = f"""{_READ}
WHERE e.workspace_id = %(workspace)s AND {_IS_UNLINKED} AND e.number > greatest(
    %(above)s, (SELECT u.linked_number FROM memory_maintenancestate u WHERE u.workspace_id = %(workspace)s))
ORDER BY e.number LIMIT %(most)s
"""  # noqa: S608  (as above)
