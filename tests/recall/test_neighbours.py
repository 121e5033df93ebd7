"""What is linked with the best comes along with it."""

from typing import Any

import pytest

from memory.models import Belief, BeliefAccess, Link, Workspace
from memory.recall.query import PathStep, Recalled, RecallProfile
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def link(one: Belief, other: Belief, similarity: float = 0.6) -> None:
    Link.objects.create(workspace=one.workspace, belief=one, other=other, similarity=similarity, created_at=NOW)


def associate(workspace: Workspace, **asked: Any) -> Recalled:
    return ask("Mara prefers tea.", workspace=workspace, **{"profile": RecallProfile.ASSOCIATIVE} | asked)


@pytest.fixture
def tea(workspace: Workspace) -> Belief:
    return believed("Mara prefers tea.", workspace=workspace)


@pytest.fixture
def server(workspace: Workspace) -> Belief:
    """Return a belief that has nothing to do with tea."""
    return believed("The compiler runs on seven servers.", workspace=workspace, importance=1)


def test_a_neighbour_comes_along_at_a_share_of_the_score(workspace: Workspace, tea: Belief, server: Belief) -> None:
    """R5: 0.8 of it, however unlike the query; the X-ray shows the way."""
    link(tea, server)
    found = associate(workspace, is_explained=True).results
    assert [result.id for result in found] == [tea.pk, server.pk]
    assert found[1].score == pytest.approx(0.8 * found[0].score)
    assert found[1].explain is not None
    assert found[1].explain.path == (PathStep(id=tea.pk, confidence=0.6),)
    assert found[0].explain is not None
    assert found[0].explain.path == ()


def test_links_are_walked_in_either_direction(workspace: Workspace, tea: Belief, server: Belief) -> None:
    """R4, R5."""
    link(server, tea)
    assert [result.id for result in associate(workspace).results] == [tea.pk, server.pk]


def test_what_came_along_counts_as_accessed(workspace: Workspace, tea: Belief, server: Belief) -> None:
    """R5, B5."""
    link(tea, server)
    associate(workspace)
    assert BeliefAccess.objects.get(belief=server).access_count == 1


def test_a_better_score_of_its_own_stays(workspace: Workspace, tea: Belief) -> None:
    """R5."""
    other = believed("Mara prefers tea!", workspace=workspace)
    before = {result.id: result.score for result in associate(workspace).results}
    link(tea, other)
    assert {result.id: result.score for result in associate(workspace).results} == pytest.approx(before, abs=1e-2)


@pytest.mark.parametrize("given", [{"status": "archived"}, {"alpha": 1.0, "beta": 3.0}, {"user": "otis"}])
def test_a_neighbour_must_be_in_sight(workspace: Workspace, tea: Belief, given: dict[str, Any]) -> None:
    """R5, B17, B21."""
    hidden = believed("The compiler runs on seven servers.", workspace=workspace, **given)
    link(tea, hidden)
    assert hidden.pk not in {result.id for result in associate(workspace, user="mara").results}


def test_a_limited_viewer_is_led_nowhere_else(workspace: Workspace) -> None:
    """R5, B21."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    mine = believed("Mara prefers tea.", workspace=workspace, project=ours)
    link(mine, believed("The compiler runs on seven servers.", workspace=workspace, project=theirs))
    assert [result.id for result in associate(workspace, limited_to=(ours,)).results] == [mine.pk]


def test_the_default_profile_brings_none(workspace: Workspace, tea: Belief, server: Belief) -> None:
    """R5."""
    link(tea, server)
    found = associate(workspace, profile=RecallProfile.DEFAULT, is_explained=True).results
    assert not any(result.explain and result.explain.path for result in found)
