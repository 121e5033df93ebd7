"""B19, L19: what is erased leaves no name behind in entities and boxes; what is forgotten keeps its rows."""

from datetime import timedelta

import pytest

from memory.erasure.erase import erase_memories, erase_workspace
from memory.graph.linking import link_memories
from memory.models import Box, Edge, Entity, Episode, MaintenanceState, Mention, Workspace
from tests import factories
from tests.export.files import LENA

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def told(workspace: Workspace, *names: str, minutes: float = 0) -> Episode:
    at = factories.NOW + timedelta(minutes=minutes)
    return factories.episode(workspace=workspace, entities=list(names), session="s", occurred_at=at)


def erase(workspace: Workspace, *episodes: Episode) -> None:
    doomed = Episode.objects.filter(pk__in=[episode.pk for episode in episodes])
    erase_memories(workspace=workspace, episodes=doomed, actor=LENA, now=factories.NOW)


def test_an_entity_that_nobody_else_names_goes_with_the_memory(workspace: Workspace) -> None:
    kept = told(workspace, "mara")
    gone = told(workspace, "mara", "zyzzo", minutes=1)
    link_memories(workspace_id=workspace.pk)
    erase(workspace, gone)
    assert list(Entity.objects.values_list("name", flat=True)) == ["mara"]
    assert list(Mention.objects.values_list("episode_id", flat=True)) == [kept.pk]
    assert (Edge.objects.count(), Box.objects.get().topics) == (0, ["mara"])


def test_an_entity_keeps_no_name_that_only_the_erased_had_for_it(workspace: Workspace) -> None:
    told(workspace, "mara lind")
    gone = told(workspace, "mara", minutes=1)
    link_memories(workspace_id=workspace.pk)
    one, other = Entity.objects.order_by("pk")
    Mention.objects.filter(entity=one).update(entity=other)
    one.delete()
    erase(workspace, gone)
    assert list(Entity.objects.values_list("name", flat=True)) == ["mara lind"]


def test_a_box_without_a_memory_goes(workspace: Workspace) -> None:
    gone = told(workspace, "mara")
    link_memories(workspace_id=workspace.pk)
    erase(workspace, gone)
    assert Box.objects.count() == 0


def test_a_workspace_that_is_erased_has_no_links(workspace: Workspace) -> None:
    told(workspace, "mara")
    told(workspace, "mara", minutes=1)
    link_memories(workspace_id=workspace.pk)
    erase_workspace(workspace=workspace, actor=LENA)
    assert [model._default_manager.count() for model in (Entity, Mention, Edge, Box, MaintenanceState)] == [0] * 5
