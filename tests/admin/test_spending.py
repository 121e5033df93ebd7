"""What a person sees and does in the admin about rests, and about what was given up."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.llm.registry import fingerprint_models
from memory.models import Conversation, Cycle, Episode, Redaction, RememberJob, Role, Turn, Workspace, WorkspacePause
from tests import factories
from tests.admin.scene import Scene

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def act(client: Client, model: str, action: str, *rows: Workspace | Episode | Conversation | RememberJob) -> None:
    address = reverse(f"admin:memory_{model}_changelist")
    client.post(address, {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True)


@pytest.fixture
def stopped(ours: Scene) -> Workspace:
    """A workspace whose key was refused."""
    WorkspacePause.objects.create(
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
    assert WorkspacePause.objects.exists() == (not resumes)
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


@pytest.mark.parametrize(("role", "state"), [(Role.CURATOR, "queued"), (Role.READER, "failed")])
def test_a_curator_has_texts_remembered_again(ours: Scene, sign_in: SignIn, role: Role, state: str) -> None:
    """R1: those that were chosen, and only of the person's own workspaces."""
    failed, other = (given_up(workspace) for workspace in (ours.workspace, factories.workspace()))
    act(sign_in(ours.workspace, role), "rememberjob", "retry", failed, other)
    states = dict(RememberJob.objects.filter(pk__in=[failed.pk, other.pk]).values_list("pk", "state"))
    assert states == {failed.pk: state, other.pk: "failed"}


def given_up(workspace: Workspace) -> RememberJob:
    """Store a text that cost too many workers."""
    return RememberJob.objects.create(
        workspace=workspace, episode=factories.episode(workspace=workspace), actor="someone", state="failed",
        state_reason="it cost 5 workers", created_at=factories.NOW,
    )  # fmt: skip


def test_the_first_page_leads_to_what_waits_for_a_person(ours: Scene, sign_in: SignIn) -> None:
    """B20, B11, R1, L2: each kind with its number, and a list of just these."""
    factories.episode(workspace=ours.workspace, state="failed", dead_at=factories.NOW)
    factories.turn(workspace=ours.workspace, state="failed")
    given_up(ours.workspace)
    given_up(factories.workspace())
    client = sign_in(ours.workspace, Role.READER)
    [row] = client.get(reverse("admin:index")).context["overview"]
    assert [(kind.what, kind.count) for kind in row.stuck] == [("episodes", 1), ("turns", 1), ("texts", 1)]
    assert [len(client.get(kind.link).context["cl"].result_list) for kind in row.stuck] == [1, 1, 1]


def test_a_workspace_s_page_counts_links_and_secrets(ours: Scene, sign_in: SignIn) -> None:
    """L2, L19: how many there are, and how many episodes wait to be linked."""
    Redaction.objects.add(workspace_id=ours.workspace.pk, counts={"email": 3})
    client = sign_in(ours.workspace, Role.READER)
    page = client.get(reverse("admin:memory_workspace_change", args=[ours.workspace.pk])).content.decode()
    assert "email: <strong>3</strong>" in page
    assert "edges: <strong>1</strong>" in page
