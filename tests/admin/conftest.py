"""Two workspaces of the same make, and people who belong to one of them."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.models import Role, Workspace
from tests.admin.scene import Scene, person, set_scene


@pytest.fixture
def ours() -> Scene:
    """A workspace with one row of every kind, whose texts say `ours`."""
    return set_scene("ours")


@pytest.fixture
def theirs() -> Scene:
    """A workspace like it, whose texts say `theirs`."""
    return set_scene("theirs")


@pytest.fixture
def sign_in(client: Client) -> Callable[[Workspace, Role], Client]:
    """Sign a new staff member in who holds a role in one workspace."""

    def signed_in(workspace: Workspace, role: Role) -> Client:
        client.force_login(person(role.value, workspace=workspace, role=role))
        return client

    return signed_in


@pytest.fixture
def superuser() -> User:
    """Somebody who runs the site and belongs to no workspace."""
    return User.objects.create_superuser("root")
