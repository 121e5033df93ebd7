"""Link what was stored since: names, edges, boxes. Each batch is one transaction, and done again it adds nothing."""

import time

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from memory.domain.breaking import OF_ONE_WORKSPACE
from memory.domain.policy import Policy
from memory.linking.boxing import put_into_boxes
from memory.linking.causes import link_causes
from memory.linking.edges import link_by_names, link_in_time
from memory.linking.mentions import note_mentions
from memory.linking.unlinked import Unlinked, find_workspaces_to_link, lock_linking, move_mark, read_unlinked

log = structlog.get_logger(__name__)


def link_due_memories(*, policy: Policy) -> int:
    """Link the new memories of every workspace, for as long as one worker should; return how many."""
    ends_at = time.monotonic() + policy.graph.seconds
    return sum(_try_to_link(workspace_id, ends_at, policy) for workspace_id in find_workspaces_to_link())


def link_memories(*, workspace_id: int, policy: Policy | None = None, ends_at: float = float("inf")) -> int:
    """Link the new memories of a workspace until a moment of the monotonic clock; return how many.

    Where somebody else is linking there, leave that to them.
    """
    policy = policy or settings.POLICY
    linked, above = 0, 0
    while time.monotonic() < ends_at:
        batch = _link_batch(workspace_id, above, policy)
        if batch is None:
            return linked
        linked += len(batch)
        if not batch and not above:
            move_mark(workspace_id=workspace_id, policy=policy.graph)
            break
        above = batch[-1].number if batch else 0  # from the start again, for whoever took longer to store
    if linked:
        log.info("memories_linked", workspace=workspace_id, memories=linked)
    return linked


def _try_to_link(workspace_id: int, ends_at: float, policy: Policy) -> int:
    """Link, or log why not: those that come after it are linked all the same, and it is tried again."""
    try:
        return link_memories(workspace_id=workspace_id, policy=policy, ends_at=ends_at)
    except (DatabaseError, *OF_ONE_WORKSPACE) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "memories_not_linked",
            workspace=workspace_id,
            error=str(error),
            exc_info=not isinstance(error, DatabaseError),
        )
        return 0


@transaction.atomic
def _link_batch(workspace_id: int, above: int, policy: Policy) -> list[Unlinked] | None:
    """Link what comes next and return it; None if somebody else is at it."""
    if not lock_linking(workspace_id, waits=False):
        return None
    memories = read_unlinked(workspace_id=workspace_id, above=above, policy=policy.graph)
    if memories:
        names = {memory.id: memory.names for memory in memories}
        note_mentions(workspace_id=workspace_id, memories=memories, names=names)
        link_by_names(workspace_id=workspace_id, memories=memories, policy=policy.graph)
        link_in_time(workspace_id=workspace_id, memories=memories, policy=policy.graph)
        causes = {memory.id: memory.causes for memory in memories}
        link_causes(workspace_id=workspace_id, memories=memories, causes=causes, policy=policy.graph)
        put_into_boxes(workspace_id=workspace_id, memories=memories, names=names, policy=policy.box)
    return memories
