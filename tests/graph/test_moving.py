"""R14, L19: links come along with the memories that they link, and nothing is linked anew."""

from datetime import timedelta

import pytest

from memory.graph.linking import link_memories
from memory.models import Edge, Mention
from tests import factories
from tests.export.files import exported, moved


@pytest.mark.django_db
def test_links_move_with_their_memories() -> None:
    workspace = factories.workspace()
    for minutes in range(0, 90, 10):
        at = factories.NOW + timedelta(minutes=minutes)
        factories.episode(
            workspace=workspace, entities=["mara", f"name {minutes % 20}"], session="s", occurred_at=at, created_at=at
        )
    link_memories(workspace_id=workspace.pk)
    edges, mentions = Edge.objects.count(), Mention.objects.count()
    file, fresh = moved(workspace)
    assert exported(fresh) == file
    assert (Edge.objects.for_workspace(fresh).count(), Mention.objects.for_workspace(fresh).count()) == (
        edges,
        mentions,
    )
    assert link_memories(workspace_id=fresh.pk) == 0
