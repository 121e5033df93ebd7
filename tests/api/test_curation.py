"""POST /beliefs/{id}/pin, /unpin, /archive, /challenge and /restore."""

import pytest

from memory.models import ApiKey, BeliefEvent, Transition, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(workspace: Workspace) -> Caller:
    return caller("curate", workspace=workspace)


@pytest.mark.parametrize(
    ("before", "act", "after"),
    [
        ({}, "archive", {"status": "archived"}),
        ({}, "challenge", {"status": "challenged"}),
        ({"status": "archived"}, "restore", {"status": "active"}),
        ({}, "pin", {"is_pinned": True}),
        ({"is_pinned": True}, "unpin", {"is_pinned": False}),
    ],
)
def test_a_curator_does_what_the_address_says(
    workspace: Workspace, curator: Caller, before: dict[str, object], act: str, after: dict[str, object]
) -> None:
    """R10: the history names the key and the reason."""
    belief = factories.belief(workspace=workspace, **before)
    answer = curator.post(f"/beliefs/{belief.pk}/{act}", {"reason": "a new mill"})
    belief.refresh_from_db()
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in after} == after
    assert {name: getattr(belief, name) for name in after} == after
    event = BeliefEvent.objects.filter(pgh_obj=belief).latest("pgh_id")
    assert event.pgh_context == {"actor": f"key {ApiKey.objects.get().prefix}", "reason": "a new mill"}


def test_what_a_status_does_not_allow_is_a_conflict(workspace: Workspace, curator: Caller) -> None:
    """D3: the problem names both statuses."""
    belief = factories.belief(workspace=workspace, status="pruned")
    response = curator.post(f"/beliefs/{belief.pk}/archive", {"reason": "a new mill"})
    assert is_problem(response, 409)
    assert "pruned cannot become archived" in response.json()["detail"]
    assert not Transition.objects.exists()


def test_a_reason_is_needed(workspace: Workspace, curator: Caller) -> None:
    belief = factories.belief(workspace=workspace)
    assert is_problem(curator.post(f"/beliefs/{belief.pk}/archive", {"reason": ""}), 422)
    belief.refresh_from_db()
    assert belief.status == "active"


def test_there_are_no_other_acts(workspace: Workspace, curator: Caller) -> None:
    belief = factories.belief(workspace=workspace)
    assert is_problem(curator.post(f"/beliefs/{belief.pk}/forget", {"reason": "x"}), 404)
