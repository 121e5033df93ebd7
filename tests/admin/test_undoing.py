"""Undoing cycles and releasing what they held, in the admin."""

from collections.abc import Callable

import pytest
from django.test import Client

from memory.models import Cycle, Episode, Evidence, Lineage, Role, Workspace
from tests import factories
from tests.admin.scene import Scene
from tests.admin.test_isolation import list_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def run_on_cycle(client: Client, action: str, cycle: Cycle, **given: str) -> str:
    posted = {"action": action, "_selected_action": [cycle.pk]} | given
    return client.post(list_of(Cycle), posted, follow=True).content.decode()


def test_a_curator_undoes_a_cycle_and_says_why(ours: Scene, sign_in: SignIn) -> None:
    """B22: the reason stands in the history; what the cycle made evidence of is held."""
    born = factories.belief(workspace=ours.workspace, created_in=ours.cycle)
    Evidence.objects.filter(cycle=ours.cycle).delete()
    Lineage.objects.filter(cycle=ours.cycle).delete()
    page = run_on_cycle(sign_in(ours.workspace, Role.CURATOR), "undo", ours.cycle, reason="the wrong project")
    ours.cycle.refresh_from_db()
    born.refresh_from_db()
    assert "1 of 1 undone." in page
    assert ours.cycle.undone_by == "person curator"
    assert (born.status, born.status_reason) == ("invalidated", f"cycle {ours.cycle.pk} undone: the wrong project")


def test_what_stands_in_the_way_of_undoing_is_named(ours: Scene, sign_in: SignIn) -> None:
    """B22: nothing has changed then."""
    Cycle.objects.filter(pk=ours.cycle.pk).update(state="running", finished_at=None)
    page = run_on_cycle(sign_in(ours.workspace, Role.CURATOR), "undo", ours.cycle, reason="the wrong project")
    ours.cycle.refresh_from_db()
    assert f"{ours.cycle.pk} is still running" in page
    assert ours.cycle.undone_at is None


def test_nothing_is_undone_without_a_reason(ours: Scene, sign_in: SignIn) -> None:
    """B22: there is no way back from it, so that a slip of the hand must not do it."""
    page = run_on_cycle(sign_in(ours.workspace, Role.CURATOR), "undo", ours.cycle, reason=" ")
    ours.cycle.refresh_from_db()
    assert "Say why beside the action" in page
    assert ours.cycle.undone_at is None


@pytest.mark.parametrize("whose", ["reader here", "curator elsewhere"])
def test_nobody_else_undoes_or_releases(ours: Scene, theirs: Scene, sign_in: SignIn, whose: str) -> None:
    scene, role = (ours, Role.READER) if whose == "reader here" else (theirs, Role.CURATOR)
    Episode.objects.filter(pk=ours.episode.pk).update(state="held")
    client = sign_in(scene.workspace, role)
    run_on_cycle(client, "undo", ours.cycle)
    client.post(list_of(Episode), {"action": "release", "_selected_action": [ours.episode.pk]})
    ours.cycle.refresh_from_db()
    assert ours.cycle.undone_at is None
    assert Episode.objects.get(pk=ours.episode.pk).state == "held"


def test_a_curator_releases_held_episodes(ours: Scene, sign_in: SignIn) -> None:
    """B22: of those chosen, the held ones."""
    Episode.objects.filter(pk=ours.episode.pk).update(state="held", pooled_at=factories.NOW)
    settled = factories.episode(workspace=ours.workspace, state="settled")
    posted = {"action": "release", "_selected_action": [ours.episode.pk, settled.pk]}
    page = sign_in(ours.workspace, Role.CURATOR).post(list_of(Episode), posted, follow=True).content.decode()
    ours.episode.refresh_from_db()
    assert "1 released." in page
    assert (ours.episode.state, ours.episode.pooled_at) == ("new", None)
    assert Episode.objects.get(pk=settled.pk).state == "settled"
