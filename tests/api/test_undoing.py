"""POST /consolidations/{id}/undo and /release."""

import pytest
from django.db.models.functions import Now

from memory.models import Belief, Cycle, Episode, GateDecision, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(workspace: Workspace) -> Caller:
    return caller("curate", workspace=workspace)


@pytest.fixture
def cycle(workspace: Workspace) -> Cycle:
    """Return an ended cycle that founded a belief."""
    ended = Cycle.objects.create(
        workspace=workspace, trigger="person", now=factories.NOW, state="finished", finished_at=Now()
    )
    factories.belief(workspace=workspace, created_in=ended)
    return ended


def test_a_cycle_is_undone(cycle: Cycle, curator: Caller, reader: Caller) -> None:
    """B22: the answer says how much went back; the cycle says since when, and by whom."""
    response = curator.post(f"/consolidations/{cycle.pk}/undo", {"reason": "the wrong project"})
    told, shown = response.json(), reader.get(f"/consolidations/{cycle.pk}").json()
    assert (response.status_code, told["id"], told["state"]) == (200, cycle.pk, "finished")
    assert told["undone"] == {"restored": 0, "invalidated": 1, "evidence": 0, "lineage": 0, "held": 0}
    assert shown["undone_by"] == told["undone_by"]
    assert shown["undone_by"].startswith("key engram_")
    assert shown["undone_at"] == told["undone_at"] is not None
    assert Belief.objects.get().status_reason == f"cycle {cycle.pk} undone: the wrong project"


def test_a_decision_of_an_undone_cycle_is_told_as_one(cycle: Cycle, curator: Caller) -> None:
    """B22: what it led to is no more, though its facts stay to be read."""
    belief = factories.belief(workspace=cycle.workspace)
    GateDecision.objects.create(
        workspace=cycle.workspace, cycle=cycle, belief=belief, gate="split", passed=False, reason="too_few_partials"
    )
    assert [row["is_undone"] for row in curator.get(f"/beliefs/{belief.pk}").json()["decisions"]] == [False]
    curator.post(f"/consolidations/{cycle.pk}/undo")
    assert [row["is_undone"] for row in curator.get(f"/beliefs/{belief.pk}").json()["decisions"]] == [True]


def test_no_reason_need_be_given(cycle: Cycle, curator: Caller) -> None:
    assert curator.post(f"/consolidations/{cycle.pk}/undo").status_code == 200
    assert Belief.objects.get().status_reason == f"cycle {cycle.pk} undone"


def test_a_cycle_that_is_open_cannot_be_undone(cycle: Cycle, curator: Caller) -> None:
    """B22: nor can any other of the workspace while it is."""
    open_one = curator.post("/consolidations").json()["id"]
    for path in (open_one, cycle.pk):
        response = curator.post(f"/consolidations/{path}/undo")
        assert is_problem(response, 409)
        assert open_one in response.json()["detail"]
    assert Belief.objects.get().status == "active"


def test_a_cycle_is_undone_once(cycle: Cycle, curator: Caller) -> None:
    curator.post(f"/consolidations/{cycle.pk}/undo")
    response = curator.post(f"/consolidations/{cycle.pk}/undo")
    assert is_problem(response, 409)
    assert "undone already" in response.json()["detail"]


def test_what_was_held_is_released(cycle: Cycle, curator: Caller) -> None:
    """B22: as new, and once."""
    curator.post(f"/consolidations/{cycle.pk}/undo")
    reason = f"cycle {cycle.pk} undone"
    episode = factories.episode(workspace=cycle.workspace, state="held", state_reason=reason)
    answers = [curator.post(f"/consolidations/{cycle.pk}/release").json() for _ in range(2)]
    assert answers == [{"id": cycle.pk, "released": 1}, {"id": cycle.pk, "released": 0}]
    assert Episode.objects.get(pk=episode.pk).state == "new"


def test_a_cycle_that_was_not_undone_holds_nothing(cycle: Cycle, curator: Caller) -> None:
    assert is_problem(curator.post(f"/consolidations/{cycle.pk}/release"), 409)


def test_what_was_born_in_it_cannot_be_restored(cycle: Cycle, curator: Caller) -> None:
    """B22: the detail names the cycle whose episodes are to be released instead."""
    curator.post(f"/consolidations/{cycle.pk}/undo")
    response = curator.post(f"/beliefs/{Belief.objects.get().pk}/restore", {"reason": "I liked it"})
    assert is_problem(response, 409)
    assert cycle.pk in response.json()["detail"]


@pytest.mark.parametrize("act", ["undo", "release"])
@pytest.mark.parametrize("cycle_id", ["cy_000000000000", "cy_1"])
def test_a_missing_cycle_is_a_404(curator: Caller, act: str, cycle_id: str) -> None:
    assert is_problem(curator.post(f"/consolidations/{cycle_id}/{act}"), 404)
