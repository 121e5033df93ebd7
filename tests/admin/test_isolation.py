"""A person sees the rows of workspaces they are a member of, and no others by any way."""

from collections.abc import Callable

import pytest
from django.contrib import admin
from django.contrib.admin import RelatedFieldListFilter
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.admin.membership import MembershipRights, OwnWorkspaces
from memory.models import Membership, Role, Workspace
from tests.admin.scene import Scene, add_evidence, person

pytestmark = pytest.mark.django_db

MODELS = [model for model in admin.site._registry if model._meta.app_label == "memory"]
PAGES = ("change", "history", "delete")

SignIn = Callable[[Workspace, Role], Client]


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:memory_{model._meta.model_name}_changelist")


def page_of(row: Model, page: str = "change") -> str:
    return reverse(f"admin:memory_{row._meta.model_name}_{page}", args=[quote(row.pk)])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_lists_show_rows_of_own_workspaces_only(
    model: type[Model], ours: Scene, theirs: Scene, sign_in: SignIn
) -> None:
    page = sign_in(ours.workspace, Role.OWNER).get(list_of(model))
    shown = {row.pk for row in page.context["cl"].result_list}
    assert shown & {row.pk for row in ours.rows() if isinstance(row, model)}
    assert not shown & {row.pk for row in theirs.rows() if isinstance(row, model)}
    assert b"of theirs" not in page.content


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_lists_name_the_workspace_to_a_member_of_several(
    model: type[Model], ours: Scene, theirs: Scene, sign_in: SignIn
) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    assert model is Workspace or client.get(list_of(model)).context["cl"].list_display.count("workspace") <= 1
    Membership.objects.create(workspace=theirs.workspace, user=User.objects.get(username="owner"), role=Role.OWNER)
    with CaptureQueriesContext(connection) as asked:
        page = client.get(list_of(model))
    by_itself = [query["sql"] for query in asked if 'WHERE "memory_workspace"."id" = ' in query["sql"]]
    assert by_itself == []
    if model is not Workspace:
        assert page.context["cl"].list_display.count("workspace") == 1
    for scene in (ours, theirs):
        assert scene.workspace.name in page.content.decode()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("page", PAGES)
def test_no_page_of_a_foreign_row_opens_by_its_id(
    model: type[Model], page: str, ours: Scene, theirs: Scene, sign_in: SignIn
) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    [row] = [row for row in theirs.rows() if isinstance(row, model)]
    answer = client.get(page_of(row, page), follow=True)
    assert answer.status_code in (200, 403)
    assert answer.request["PATH_INFO"] != page_of(row, page) or answer.status_code == 403
    assert b"of theirs" not in answer.content


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_own_row_opens(model: type[Model], ours: Scene, sign_in: SignIn) -> None:
    [row] = [row for row in ours.rows() if isinstance(row, model)]
    answer = sign_in(ours.workspace, Role.READER).get(page_of(row))
    assert answer.status_code == 200


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_superuser_without_membership_sees_no_row(
    model: type[Model], ours: Scene, client: Client, superuser: User
) -> None:
    """Section 1, Membership: running the site is no membership."""
    client.force_login(superuser)
    answer = client.get(list_of(model))
    assert answer.status_code == 403 or not answer.context["cl"].result_list
    [row] = [row for row in ours.rows() if isinstance(row, model)]
    answer = client.get(page_of(row), follow=True)
    assert b"of ours" not in answer.content


def test_a_foreign_row_cannot_be_changed_by_its_id(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    client.post(page_of(theirs.belief), {"is_pinned": "on"})
    theirs.belief.refresh_from_db()
    assert not theirs.belief.is_pinned


def test_inlines_leave_out_rows_of_other_workspaces(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    """Even a row that a fault had hung on a belief of another workspace stays unseen."""
    row = add_evidence(ours.belief, theirs.episode, reason="A stray reason.")
    type(row).objects.filter(pk=row.pk)._raw_delete("default")
    stray = type(row)(
        workspace=theirs.workspace, belief=ours.belief, episode=theirs.episode, verdict="SUPPORTS",
        basis="model", reason="A stray reason.", created_at=row.created_at,
    )  # fmt: skip
    stray.save()
    page = sign_in(ours.workspace, Role.OWNER).get(page_of(ours.belief))
    assert b"A reason of ours." in page.content
    assert b"A stray reason." not in page.content
    assert b"of theirs" not in page.content


def test_search_finds_own_rows_only(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    page = sign_in(ours.workspace, Role.READER).get(list_of(type(ours.belief)), {"q": "statement holds"})
    assert ours.belief in page.context["cl"].result_list
    assert {row.workspace for row in page.context["cl"].result_list} == {ours.workspace}


def test_search_finds_a_row_by_its_id(ours: Scene, sign_in: SignIn) -> None:
    page = sign_in(ours.workspace, Role.READER).get(list_of(type(ours.episode)), {"q": ours.episode.pk})
    assert list(page.context["cl"].result_list) == [ours.episode]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_filter_offers_values_of_other_workspaces(
    model: type[Model], ours: Scene, theirs: Scene, sign_in: SignIn
) -> None:
    page = sign_in(ours.workspace, Role.OWNER).get(list_of(model))
    related = [spec for spec in page.context["cl"].filter_specs if isinstance(spec, RelatedFieldListFilter)]
    assert all(isinstance(spec, OwnWorkspaces) for spec in related)
    foreign = {theirs.workspace.pk, theirs.project.pk} - {ours.workspace.pk, ours.project.pk}
    assert not {key for spec in related for key, _ in spec.lookup_choices} & foreign


def test_a_filter_by_a_foreign_workspace_shows_none_of_its_rows(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    page = client.get(list_of(type(ours.belief)), {"workspace__id__exact": theirs.workspace.pk})
    assert theirs.belief not in page.context["cl"].result_list


def test_autocomplete_offers_own_rows_only(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    query = {"app_label": "memory", "model_name": "apikey", "field_name": "projects"}
    answer = client.get(reverse("admin:autocomplete"), query)
    assert [row["text"] for row in answer.json()["results"]] == [ours.project.slug]


def test_choices_of_a_form_are_own_rows_only(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    form = sign_in(ours.workspace, Role.OWNER).get(reverse("admin:memory_apikey_add")).context["adminform"].form
    assert list(form.fields["workspace"].queryset) == [ours.workspace]
    assert list(form.fields["projects"].queryset) == [ours.project]
    assert [label for _, label in form.fields["projects"].choices] == [f"{ours.project.slug} ({ours.workspace.name})"]


def test_choices_to_add_to_are_workspaces_of_the_needed_role(ours: Scene, theirs: Scene, client: Client) -> None:
    user = person("both", workspace=ours.workspace, role=Role.OWNER)
    user.memberships.create(workspace=theirs.workspace, role=Role.READER)
    client.force_login(user)
    form = client.get(reverse("admin:memory_project_add")).context["adminform"].form
    assert list(form.fields["workspace"].queryset) == [ours.workspace]


def test_the_first_page_counts_own_workspaces_only(ours: Scene, theirs: Scene, sign_in: SignIn) -> None:
    page = sign_in(ours.workspace, Role.READER).get(reverse("admin:index"))
    assert [row.workspace for row in page.context["overview"]] == [ours.workspace]
    assert page.context["overview"][0].beliefs == 3
    assert b"of theirs" not in page.content


def test_every_model_of_the_project_is_shown_by_membership() -> None:
    assert {
        type(page)
        for page in (admin.site._registry[model] for model in MODELS)
        if not isinstance(page, MembershipRights)
    } == set()
    assert len(MODELS) == 26


def test_somebody_outside_the_staff_is_sent_to_the_login(ours: Scene, client: Client) -> None:
    user = person("visitor", workspace=ours.workspace, role=Role.OWNER)
    User.objects.filter(pk=user.pk).update(is_staff=False)
    client.force_login(user)
    assert client.get(list_of(type(ours.belief))).status_code == 302
