"""What a person may do follows their role in the row's workspace."""

from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.models import Conversation, Episode, Evidence, Membership, Project, Role, Workspace
from tests.admin.scene import Scene, person
from tests.admin.test_isolation import MODELS, list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]
AUDIT = ("evidence", "lineage", "cycle", "step", "job", "verdict", "decision", "call", "transition", "rival")


@pytest.mark.parametrize("kind", AUDIT)
def test_nobody_changes_an_audit_row(kind: str, ours: Scene, sign_in: SignIn) -> None:
    row = getattr(ours, kind)
    answer = sign_in(ours.workspace, Role.OWNER).post(page_of(row), {"reason": "Tampered."})
    before = type(row).objects.filter(pk=row.pk).values().get()
    assert answer.status_code == 403
    assert "Tampered." not in before.values()


@pytest.mark.parametrize("kind", AUDIT)
def test_nobody_deletes_an_audit_row(kind: str, ours: Scene, sign_in: SignIn) -> None:
    row = getattr(ours, kind)
    answer = sign_in(ours.workspace, Role.OWNER).post(page_of(row, "delete"), {"post": "yes"})
    assert answer.status_code == 403
    assert type(row).objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("kind", [*AUDIT, "episode", "belief"])
def test_nobody_adds_what_consolidation_makes(kind: str, ours: Scene, sign_in: SignIn) -> None:
    name = getattr(ours, kind)._meta.model_name
    answer = sign_in(ours.workspace, Role.OWNER).post(reverse(f"admin:memory_{name}_add"), {})
    assert answer.status_code == 403


@pytest.mark.parametrize("kind", [*AUDIT, "episode", "belief", "key", "membership", "project"])
def test_no_list_offers_bulk_deletion(kind: str, ours: Scene, sign_in: SignIn) -> None:
    row = getattr(ours, kind)
    client = sign_in(ours.workspace, Role.OWNER)
    client.post(list_of(type(row)), {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"})
    assert type(row).objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_reader_is_offered_no_action(model: type[Model], ours: Scene, sign_in: SignIn) -> None:
    """Every action asks for a permission, so that nobody is offered what it would do to none of their rows."""
    page = sign_in(ours.workspace, Role.READER).get(list_of(model))
    assert page.context["action_form"] is None


def test_a_curator_is_offered_to_have_turns_read_again(ours: Scene, sign_in: SignIn) -> None:
    page = sign_in(ours.workspace, Role.CURATOR).get(list_of(Conversation))
    assert "retry" in dict(page.context["action_form"].fields["action"].choices)


@pytest.mark.parametrize("kind", ["belief", "episode", "project", "key", "membership", "workspace"])
def test_a_reader_changes_nothing(kind: str, ours: Scene, sign_in: SignIn) -> None:
    answer = sign_in(ours.workspace, Role.READER).post(page_of(getattr(ours, kind)), {"is_pinned": "on"})
    assert answer.status_code == 403


def test_a_curator_pins_a_belief(ours: Scene, sign_in: SignIn) -> None:
    """D9: the one thing about a belief that the admin lets a person set."""
    answer = sign_in(ours.workspace, Role.CURATOR).post(page_of(ours.belief), {"is_pinned": "on"})
    before = ours.belief.updated_at
    ours.belief.refresh_from_db()
    assert answer.status_code == 302
    assert ours.belief.is_pinned
    assert ours.belief.updated_at > before


def test_saving_writes_only_what_was_changed(ours: Scene, sign_in: SignIn) -> None:
    """Else a form that lay open would undo what a worker wrote meanwhile."""
    client = sign_in(ours.workspace, Role.CURATOR)
    with CaptureQueriesContext(connection) as queries:
        client.post(page_of(ours.episode), {"importance": "0.9", "tags": "editor, style"})
    [update] = [query["sql"] for query in queries if query["sql"].startswith('UPDATE "memory_episode"')]
    assert '"importance" = 0.9' in update
    assert '"state"' not in update.split("WHERE")[0]
    ours.episode.refresh_from_db()
    assert ours.episode.tags == ["editor", "style"]


def test_the_log_keeps_no_text(ours: Scene, sign_in: SignIn) -> None:
    """B19: erasing a belief leaves no copy of its statement in the admin's log."""
    sign_in(ours.workspace, Role.CURATOR).post(page_of(ours.belief), {"is_pinned": "on"})
    entry = LogEntry.objects.get()
    assert entry.object_repr == ours.belief.pk
    assert "statement" not in entry.change_message


@pytest.mark.parametrize(("field", "value"), [("importance", "1.5"), ("tags", ",".join(map(str, range(33))))])
def test_what_no_episode_may_have_is_refused(field: str, value: str, ours: Scene, sign_in: SignIn) -> None:
    """B1: importance in 0..1, at most 32 tags."""
    posted = {"importance": "0.5", "tags": "", field: value}
    answer = sign_in(ours.workspace, Role.CURATOR).post(page_of(ours.episode), posted)
    before = ours.episode.importance, ours.episode.tags
    ours.episode.refresh_from_db()
    assert answer.status_code == 200
    assert (ours.episode.importance, ours.episode.tags) == before


def test_a_curator_of_one_workspace_changes_nothing_in_another(ours: Scene, theirs: Scene, client: Client) -> None:
    user = person("both", workspace=ours.workspace, role=Role.OWNER)
    user.memberships.create(workspace=theirs.workspace, role=Role.READER)
    client.force_login(user)
    assert client.get(page_of(theirs.belief)).status_code == 200
    assert client.post(page_of(theirs.belief), {"is_pinned": "on"}).status_code == 403


def test_a_curator_adds_a_project(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.CURATOR)
    client.post(reverse("admin:memory_project_add"), {"workspace": ours.workspace.pk, "slug": "new"})
    assert Project.objects.for_workspace(ours.workspace).filter(slug="new").exists()


def test_a_project_cannot_be_added_to_a_foreign_workspace(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    client.post(reverse("admin:memory_project_add"), {"workspace": theirs.workspace.pk, "slug": "new"})
    assert not Project.objects.filter(slug="new").exists()


def test_a_curator_keeps_out_of_members_and_caps(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.CURATOR)
    assert client.post(page_of(ours.workspace), {"name": "mine"}).status_code == 403
    assert client.post(page_of(ours.membership), {"role": "reader"}).status_code == 403
    assert client.get(reverse("admin:memory_membership_add")).status_code == 403


def test_an_owner_sets_the_caps(ours: Scene, sign_in: SignIn) -> None:
    posted = {
        "name": ours.workspace.name,
        "confidence_model": "beta",
        "daily_token_cap": "1000",
        "beliefs_enabled": "on",
    }
    sign_in(ours.workspace, Role.OWNER).post(page_of(ours.workspace), posted)
    ours.workspace.refresh_from_db()
    assert ours.workspace.daily_token_cap == 1000


def test_an_owner_invites_by_user_name(ours: Scene, sign_in: SignIn) -> None:
    guest = person("guest")
    posted = {"workspace": ours.workspace.pk, "username": "guest", "role": "curator"}
    sign_in(ours.workspace, Role.OWNER).post(reverse("admin:memory_membership_add"), posted)
    assert Membership.objects.get(user=guest).workspace == ours.workspace


@pytest.mark.parametrize("name", ["nobody", "owner-of-ours"])
def test_an_invitation_names_what_is_wrong(name: str, ours: Scene, sign_in: SignIn) -> None:
    posted = {"workspace": ours.workspace.pk, "username": name, "role": "curator"}
    answer = sign_in(ours.workspace, Role.OWNER).post(reverse("admin:memory_membership_add"), posted)
    assert "username" in answer.context["adminform"].form.errors


def test_the_last_owner_stays(ours: Scene, client: Client) -> None:
    client.force_login(ours.membership.user)
    answer = client.post(page_of(ours.membership), {"role": "reader"})
    assert "role" in answer.context["adminform"].form.errors
    assert client.post(page_of(ours.membership, "delete"), {"post": "yes"}).status_code == 403
    ours.membership.refresh_from_db()
    assert ours.membership.role == Role.OWNER


def test_one_of_two_owners_may_leave(ours: Scene, sign_in: SignIn) -> None:
    sign_in(ours.workspace, Role.OWNER).post(page_of(ours.membership, "delete"), {"post": "yes"})
    assert not Membership.objects.filter(pk=ours.membership.pk).exists()


def test_a_superuser_founds_a_workspace_and_owns_it(client: Client, superuser: User) -> None:
    client.force_login(superuser)
    client.post(reverse("admin:memory_workspace_add"), {"name": "new", "confidence_model": "beta"})
    assert Membership.objects.get(user=superuser, role=Role.OWNER).workspace.name == "new"
    assert [row.workspace.name for row in client.get(reverse("admin:index")).context["overview"]] == ["new"]


def test_an_owner_founds_no_workspace(ours: Scene, sign_in: SignIn) -> None:
    answer = sign_in(ours.workspace, Role.OWNER).post(reverse("admin:memory_workspace_add"), {"name": "new"})
    assert answer.status_code == 403
    assert not Workspace.objects.filter(name="new").exists()


def test_nobody_deletes_a_workspace(ours: Scene, client: Client) -> None:
    client.force_login(ours.membership.user)
    assert client.post(page_of(ours.workspace, "delete"), {"post": "yes"}).status_code == 403


def test_accounts_are_for_superusers(ours: Scene, sign_in: SignIn) -> None:
    assert sign_in(ours.workspace, Role.OWNER).get(reverse("admin:auth_user_changelist")).status_code == 403


def test_a_form_without_its_token_changes_nothing(ours: Scene) -> None:
    """A page of another site cannot act for whoever is signed in."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ours.membership.user)
    answer = client.post(page_of(ours.belief), {"is_pinned": "on"})
    ours.belief.refresh_from_db()
    assert answer.status_code == 403
    assert not ours.belief.is_pinned


def test_an_account_is_not_deleted(ours: Scene, client: Client, superuser: User) -> None:
    """The page that asks would name the workspaces of others."""
    client.force_login(superuser)
    answer = client.get(reverse("admin:auth_user_delete", args=[ours.membership.user_id]))
    assert answer.status_code == 403
    assert b"workspace of ours" not in answer.content


def test_a_superuser_keeps_accounts(ours: Scene, client: Client, superuser: User) -> None:
    client.force_login(superuser)
    page = client.get(reverse("admin:auth_user_change", args=[ours.membership.user_id]))
    assert page.status_code == 200
    assert b"of ours" not in page.content
    assert "groups" not in page.context["adminform"].form.fields


def test_a_project_with_episodes_stays(ours: Scene, sign_in: SignIn) -> None:
    Episode.objects.filter(pk=ours.episode.pk).update(project=ours.project)
    sign_in(ours.workspace, Role.OWNER).post(page_of(ours.project, "delete"), {"post": "yes"})
    assert Project.objects.filter(pk=ours.project.pk).exists()


def test_posting_evidence_rows_along_with_a_belief_changes_none(ours: Scene, sign_in: SignIn) -> None:
    posted = {
        "is_pinned": "on", "evidence-TOTAL_FORMS": "1", "evidence-INITIAL_FORMS": "1",
        "evidence-0-id": ours.evidence.pk, "evidence-0-verdict": "CONTRADICTS", "evidence-0-DELETE": "on",
    }  # fmt: skip
    sign_in(ours.workspace, Role.OWNER).post(page_of(ours.belief), posted)
    assert Evidence.objects.get(pk=ours.evidence.pk).verdict == "SUPPORTS"
