"""From a cause in words, as an extraction gives it, to an edge from the memory that says it (L19)."""

from collections.abc import Iterator, Mapping, Sequence

from django.db import connection

from memory.domain.causes import find_cause
from memory.domain.edges import EdgeKind
from memory.domain.policy_graph import GraphPolicy
from memory.linking.edges import NewEdge, store_edges
from memory.linking.unlinked import Unlinked


def link_causes(
    *, workspace_id: int, memories: Sequence[Unlinked], causes: Mapping[str, Sequence[str]], policy: GraphPolicy
) -> None:
    """Link memories with those that say why they are so; what no memory of theirs says is passed over."""
    edges = [edge for memory in memories if causes.get(memory.id) for edge in _edges(memory, causes[memory.id], policy)]
    store_edges(workspace_id=workspace_id, edges=edges, policy=policy)


def _edges(memory: Unlinked, causes: Sequence[str], policy: GraphPolicy) -> Iterator[NewEdge]:
    with connection.cursor() as cursor:
        cursor.execute(_CANDIDATES, {"id": memory.id, "most": policy.cause_candidates})
        candidates = cursor.fetchall()
    texts = [text for _, text in candidates]
    for cause in causes:
        if found := find_cause(cause=cause, texts=texts, least=policy.cause_overlap):
            place, share = found
            yield NewEdge(
                source=candidates[place][0], target=memory.id, kind=EdgeKind.CAUSAL, weight=share,
                seen_at=memory.created_at,
            )  # fmt: skip


# A cause is looked for where its effect was told: in the user's session, or else among all of the user's.
_CANDIDATES = """
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
