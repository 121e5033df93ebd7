"""API keys in the admin: shown once, kept as a hash, revoked at once."""

from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from memory.access import find_key
from memory.models import ApiKey, Role, Workspace
from tests.admin.scene import Scene, person
from tests.admin.test_isolation import list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def create(client: Client, workspace: Workspace, **given: object) -> str:
    """Create a key by the form and return the text that the answer shows."""
    posted = {"workspace": workspace.pk, "name": "laptop", "permissions": ["read", "write"]} | given
    answer = client.post(reverse("admin:memory_apikey_add"), posted)
    text: str = answer.context.get("key_text", "")
    assert not text or text in answer.content.decode()
    return text


def test_a_new_key_is_shown_once_and_works(ours: Scene, sign_in: SignIn) -> None:
    text = create(sign_in(ours.workspace, Role.OWNER), ours.workspace, projects=[ours.project.pk])
    key = find_key(text=text)
    assert key is not None
    assert (key.workspace, key.permissions, key.is_limited) == (ours.workspace, ["read", "write"], True)
    assert list(key.projects.all()) == [ours.project]


def test_a_key_is_shown_nowhere_again(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    text = create(client, ours.workspace)
    key = find_key(text=text)
    assert key is not None
    for address in (list_of(ApiKey), page_of(key), page_of(key, "history"), reverse("admin:index")):
        page = client.get(address).content.decode()
        assert text not in page
        assert key.hash not in page
    assert not any(text in str(session.get_decoded()) for session in Session.objects.all())
    assert not any(text in morsel.value for morsel in client.cookies.values())


def test_no_cache_keeps_the_answer_with_the_key(ours: Scene, sign_in: SignIn) -> None:
    posted = {"workspace": ours.workspace.pk, "permissions": ["read"]}
    answer = sign_in(ours.workspace, Role.OWNER).post(reverse("admin:memory_apikey_add"), posted)
    assert "no-store" in answer["Cache-Control"]


def test_a_curator_makes_no_key(ours: Scene, sign_in: SignIn) -> None:
    number = ApiKey.objects.count()
    posted = {"workspace": ours.workspace.pk, "permissions": ["read"]}
    answer = sign_in(ours.workspace, Role.CURATOR).post(reverse("admin:memory_apikey_add"), posted)
    assert answer.status_code == 403
    assert ApiKey.objects.count() == number


def test_a_key_is_not_limited_to_a_project_of_another_workspace(ours: Scene, theirs: Scene, client: Client) -> None:
    user = person("both", workspace=ours.workspace, role=Role.OWNER)
    user.memberships.create(workspace=theirs.workspace, role=Role.OWNER)
    client.force_login(user)
    number = ApiKey.objects.count()
    assert create(client, ours.workspace, projects=[theirs.project.pk]) == ""
    assert ApiKey.objects.count() == number


def test_a_key_needs_a_permission(ours: Scene, sign_in: SignIn) -> None:
    assert create(sign_in(ours.workspace, Role.OWNER), ours.workspace, permissions=[]) == ""


def test_what_a_key_may_do_never_changes(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    client.post(page_of(ours.key), {"name": "renamed", "permissions": ["read"], "workspace": "0"})
    before = ours.key.permissions
    ours.key.refresh_from_db()
    assert (ours.key.name, ours.key.permissions) == ("renamed", before)


def revoke(client: Client, *keys: ApiKey) -> None:
    client.post(list_of(ApiKey), {"action": "revoke", "_selected_action": [key.pk for key in keys]})


def test_a_revoked_key_opens_nothing(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    text = create(client, ours.workspace)
    key = find_key(text=text)
    assert key is not None
    revoke(client, key)
    assert find_key(text=text) is None


def test_a_foreign_key_cannot_be_revoked(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    revoke(sign_in(ours.workspace, Role.OWNER), theirs.key)
    theirs.key.refresh_from_db()
    assert theirs.key.revoked_at is None


def test_an_owner_elsewhere_revokes_no_key_here(ours: Scene, theirs: Scene, client: Client) -> None:
    """The action is offered to an owner of any workspace, and acts on those they own."""
    user = person("both", workspace=ours.workspace, role=Role.OWNER)
    user.memberships.create(workspace=theirs.workspace, role=Role.READER)
    client.force_login(user)
    revoke(client, ours.key, theirs.key)
    ours.key.refresh_from_db()
    theirs.key.refresh_from_db()
    assert ours.key.revoked_at is not None
    assert theirs.key.revoked_at is None
