"""What a person does in the admin about rests and dead letters."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.llm.fingerprint import fingerprint_models
from memory.models import Conversation, Cycle, Episode, Pause, Role, Turn, Workspace
from tests import factories
from tests.admin.scene import Scene

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def act(client: Client, model: str, action: str, *rows: Workspace | Episode | Conversation) -> None:
    address = reverse(f"admin:memory_{model}_changelist")
    client.post(address, {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True)


@pytest.fixture
def stopped(ours: Scene) -> Workspace:
    """A workspace whose key was refused."""
    Pause.objects.create(
        workspace=ours.workspace, reason="auth", detail="no such key", failures=1,
        until=timezone.now() + timedelta(hours=6), fingerprint=fingerprint_models(),
    )  # fmt: skip
    return ours.workspace


def test_a_stop_is_shown_with_its_reason(stopped: Workspace, sign_in: SignIn) -> None:
    """B9: a person sees why nothing happens."""
    page = sign_in(stopped, Role.READER).get(reverse("admin:memory_workspace_changelist")).content.decode()
    assert "a model server refuses the key (no such key)" in page


@pytest.mark.parametrize(("role", "resumes"), [(Role.OWNER, True), (Role.CURATOR, False)])
def test_an_owner_resumes(stopped: Workspace, sign_in: SignIn, role: Role, resumes: bool) -> None:
    """B9: the rest is over and a cycle started."""
    before = Cycle.objects.open().filter(workspace=stopped).count()
    act(sign_in(stopped, role), "workspace", "resume", stopped)
    assert Pause.objects.exists() == (not resumes)
    assert Cycle.objects.open().filter(workspace=stopped).count() == max(before, int(resumes))


@pytest.mark.parametrize(("role", "state"), [(Role.CURATOR, "new"), (Role.READER, "failed")])
def test_a_curator_has_dead_letters_tried_again(ours: Scene, sign_in: SignIn, role: Role, state: str) -> None:
    """B11: those that were chosen, and only of the person's own workspaces."""
    dead = {"state": "failed", "failures": 3, "dead_at": factories.NOW}
    letter = factories.episode(workspace=ours.workspace, **dead)
    other = factories.episode(workspace=factories.workspace(), **dead)
    act(sign_in(ours.workspace, role), "episode", "retry", letter, other)
    states = dict(Episode.objects.filter(pk__in=[letter.pk, other.pk]).values_list("pk", "state"))
    assert states == {letter.pk: state, other.pk: "failed"}


@pytest.mark.parametrize(("role", "state"), [(Role.CURATOR, "buffered"), (Role.READER, "failed")])
def test_a_curator_has_turns_read_again(ours: Scene, sign_in: SignIn, role: Role, state: str) -> None:
    """B11, L2: of the conversations that were chosen, and only of the person's own workspaces."""
    letter = factories.turn(workspace=ours.workspace, state="failed", state_reason="malformed")
    other = factories.turn(workspace=factories.workspace(), state="failed")
    act(sign_in(ours.workspace, role), "conversation", "retry", letter.conversation, other.conversation)
    assert dict(Turn.objects.filter(pk__in=[letter.pk, other.pk]).values_list("pk", "state")) == {
        letter.pk: state, other.pk: "failed",
    }  # fmt: skip
    letter.conversation.refresh_from_db()
    assert letter.conversation.buffered == (state == "buffered")
