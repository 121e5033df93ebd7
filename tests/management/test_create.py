"""create_workspace and create_project: what is refused, and how."""

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from memory.models import Membership, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("create_workspace", ""), "^name: This field cannot be blank"),
        (("create_workspace", "acme"), "^name: .* already exists"),
        (("create_project", "acme", ""), "^slug: This field cannot be blank"),
    ],
)
def test_a_refusal_names_the_field(command: tuple[str, ...], reason: str) -> None:
    factories.workspace(name="acme")
    with pytest.raises(CommandError, match=reason):
        call_command(*command)
    assert Workspace.objects.count() == 1


def test_a_workspace_has_the_owner_who_is_named() -> None:
    get_user_model().objects.create_user(username="mia", is_staff=True)
    call_command("create_workspace", "acme", "--owner", "mia")
    assert list(Membership.objects.values_list("workspace__name", "user__username", "role")) == [
        ("acme", "mia", "owner")
    ]


def test_without_somebody_of_that_name_there_is_no_workspace() -> None:
    with pytest.raises(
        CommandError, match=r"nobody named 'mia' .* `manage\.py createsuperuser --username mia`"
    ) as refused:
        call_command("create_workspace", "acme", "--owner", "mia")
    assert (refused.value.returncode, Workspace.objects.count()) == (2, 0)
