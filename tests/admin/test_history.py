"""A belief's history on its page, and a curator's acts on the list."""

from collections.abc import Callable

import pytest
from django.test import Client

from memory.models import Belief, BeliefEvent, Cycle, CycleStep, Role, Transition, Workspace
from tests.admin.scene import Scene
from tests.admin.test_isolation import list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def act(client: Client, name: str, *beliefs: Belief, reason: str = "a new mill", **more: str) -> str:
    posted = {"action": name, "_selected_action": [each.pk for each in beliefs], "reason": reason} | more
    return client.post(list_of(Belief), posted, follow=True).content.decode()


def test_a_page_tells_who_changed_a_belief_and_why(ours: Scene, sign_in: SignIn) -> None:
    """R10."""
    client = sign_in(ours.workspace, Role.CURATOR)
    client.post(page_of(ours.belief), {"is_pinned": "on", "reason": "the mill is ours"})
    page = client.get(page_of(ours.belief)).content.decode()
    history = page[page.lower().index("history: what changed") :]
    name = BeliefEvent.objects.filter(pgh_obj=ours.belief).latest("pgh_id").pgh_context["actor"]
    assert name.startswith("person ")
    assert history.index("the mill is ours") < history.index("created")
    assert name in history


@pytest.mark.parametrize(
    ("name", "status", "more"),
    [("archive", "archived", {}), ("challenge", "challenged", {}), ("forget", "forgotten", {"is_confirmed": "yes"})],
)
def test_a_curator_acts_on_the_list(ours: Scene, sign_in: SignIn, name: str, status: str, more: dict[str, str]) -> None:
    """R10: through the same service as the API, with the reason that was given."""
    page = act(sign_in(ours.workspace, Role.CURATOR), name, ours.belief, **more)
    ours.belief.refresh_from_db()
    assert "1 done." in page
    assert (ours.belief.status, ours.belief.status_reason) == (status, "a new mill")
    assert Transition.objects.latest("pk").new == status


def test_forgetting_asks_first(ours: Scene, sign_in: SignIn) -> None:
    """B19: it names what would be gone; what was chosen and why comes along."""
    page = act(sign_in(ours.workspace, Role.CURATOR), "forget", ours.belief, reason="a dead mill")
    ours.belief.refresh_from_db()
    assert ours.belief.status == "active"
    for part in ("Forget for good?", ours.belief.statement, f'name="_selected_action" value="{ours.belief.pk}"'):
        assert part in page
    assert 'value="a dead mill"' in page


def test_forgetting_takes_a_reason(ours: Scene, sign_in: SignIn) -> None:
    """B19."""
    page = act(sign_in(ours.workspace, Role.CURATOR), "forget", ours.belief, reason=" ", is_confirmed="yes")
    ours.belief.refresh_from_db()
    assert ours.belief.status == "active"
    assert "Say why: nothing was forgotten yet." in page


def test_beliefs_of_others_are_not_named_before_forgetting(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    page = act(sign_in(ours.workspace, Role.CURATOR), "forget", theirs.belief, ours.belief)
    assert "1 belief will be gone" in page
    assert "of theirs" not in page


def test_what_a_status_does_not_allow_is_said(ours: Scene, sign_in: SignIn) -> None:
    """D3."""
    page = act(sign_in(ours.workspace, Role.CURATOR), "restore", ours.belief)
    assert "0 done." in page
    assert "active cannot be restored to active" in page


def test_a_reader_acts_on_nothing(ours: Scene, sign_in: SignIn) -> None:
    act(sign_in(ours.workspace, Role.READER), "archive", ours.belief)
    ours.belief.refresh_from_db()
    assert ours.belief.status == "active"


def test_a_curator_elsewhere_acts_on_nothing_here(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    client = sign_in(theirs.workspace, Role.CURATOR)
    act(client, "archive", ours.belief)
    ours.belief.refresh_from_db()
    assert ours.belief.status == "active"


def cancel(client: Client, cycle: Cycle) -> str:
    posted = {"action": "cancel", "_selected_action": [cycle.pk]}
    return client.post(list_of(Cycle), posted, follow=True).content.decode()


def test_a_curator_cancels_a_cycle(ours: Scene, sign_in: SignIn) -> None:
    """B22."""
    Cycle.objects.filter(pk=ours.cycle.pk).update(state="queued", finished_at=None)
    CycleStep.objects.all().delete()
    page = cancel(sign_in(ours.workspace, Role.CURATOR), ours.cycle)
    ours.cycle.refresh_from_db()
    assert "1 of 1 cancelled." in page
    assert ours.cycle.state == "cancelled"
    assert ours.cycle.cancelled_by.startswith("person ")


def test_a_cycle_that_has_ended_is_left_alone(ours: Scene, sign_in: SignIn) -> None:
    page = cancel(sign_in(ours.workspace, Role.CURATOR), ours.cycle)
    assert "has ended as finished" in page


@pytest.mark.parametrize("whose", ["reader here", "curator elsewhere"])
def test_nobody_else_cancels(ours: Scene, theirs: Scene, sign_in: SignIn, whose: str) -> None:
    Cycle.objects.filter(pk=ours.cycle.pk).update(state="queued", finished_at=None)
    scene, role = (ours, Role.READER) if whose == "reader here" else (theirs, Role.CURATOR)
    cancel(sign_in(scene.workspace, role), ours.cycle)
    ours.cycle.refresh_from_db()
    assert ours.cycle.state == "queued"
