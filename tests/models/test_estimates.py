"""B20: few rows are counted, many estimated, and what waits to be linked is counted up to a bound."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.graph import edges
from memory.models import Entity, Workspace, fields
from memory.models.fields import count_about, estimate_rows
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    """A workspace with 300 entities beside one with 100, as the planner knows."""
    workspace, other = factories.workspace(), factories.workspace()
    for place, count in ((workspace, 300), (other, 100)):
        Entity.objects.bulk_create(
            Entity(workspace=place, name=f"somebody {number}", created_at=NOW) for number in range(count)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_entity")
    return workspace


def test_few_are_counted(workspace: Workspace) -> None:
    Entity.objects.filter(name="somebody 7").delete()  # the planner has not seen it
    assert count_about(Entity.objects.for_workspace(workspace)) == 299


def test_many_are_estimated_by_workspace(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "EXACT_UP_TO", 50)
    found = {count_about(Entity.objects.for_workspace(workspace)), estimate_rows(Entity.objects.all())}
    assert found == {300, 400}


def test_a_planner_that_knows_too_little_does_not_make_it_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """More are there than it has seen: never less is said than was counted."""
    workspace = factories.workspace()
    factories.episode(workspace=workspace)
    monkeypatch.setattr(fields, "EXACT_UP_TO", 0)
    monkeypatch.setattr(fields, "estimate_rows", lambda rows: 0)
    assert count_about(workspace.episodes.all()) == 1


def test_many_are_never_read_to_the_end(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "EXACT_UP_TO", 50)
    with CaptureQueriesContext(connection) as queries:
        count_about(Entity.objects.for_workspace(workspace))
    counting, estimating = (query["sql"] for query in queries)
    assert "LIMIT 51" in counting
    assert estimating.startswith("EXPLAIN")


def test_what_waits_to_be_linked_is_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than the bound says that there are more."""
    workspace = factories.workspace()
    for number in range(5):
        factories.episode(workspace=workspace, text=f"Ana met neighbour {number}.")
    assert edges.count_unlinked(workspace_id=workspace.pk) == 5
    monkeypatch.setattr(edges, "EXACT_UP_TO", 2)
    assert edges.count_unlinked(workspace_id=workspace.pk) == 3
