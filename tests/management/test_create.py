"""create_workspace and create_project: what is refused, and how."""

import pytest
from django.core.management import CommandError, call_command

from memory.models import Workspace
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
