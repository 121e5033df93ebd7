"""What the signed-in person is in each workspace."""

from collections.abc import Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.db import models
from django.http import HttpRequest

from memory.models import Membership, Role, Workspace

Row = TypeVar("Row", bound=models.Model)

_RANKS = {Role.READER: 1, Role.CURATOR: 2, Role.OWNER: 3}

# One page asks for permissions dozens of times; a request sees the memberships that it began with.
_roles_by_request: WeakKeyDictionary[HttpRequest, Mapping[int, Role]] = WeakKeyDictionary()


def roles_of(request: HttpRequest) -> Mapping[int, Role]:
    """Return the person's role by workspace id."""
    if request not in _roles_by_request:
        held = Membership.objects.filter(user=request.user.pk).values_list("workspace", "role")
        _roles_by_request[request] = {workspace: Role(role) for workspace, role in held}
    return _roles_by_request[request]


def workspaces_of(request: HttpRequest, *, at_least: Role = Role.READER) -> list[int]:
    """List the ids of the workspaces in which the person holds a role or a higher one."""
    return [workspace for workspace, role in roles_of(request).items() if _RANKS[role] >= _RANKS[at_least]]


def rows_of_member(
    rows: models.QuerySet[Row], *, request: HttpRequest, at_least: Role = Role.READER
) -> models.QuerySet[Row]:
    """Keep the rows of the workspaces in which the person holds a role; rows of no workspace are nobody's."""
    column = "pk" if rows.model is Workspace else "workspace"
    return rows.filter(**{f"{column}__in": workspaces_of(request, at_least=at_least)})


def workspace_of(row: models.Model) -> int:
    """Return the id of the workspace that a row belongs to."""
    workspace: int = row.pk if isinstance(row, Workspace) else row.workspace_id  # type: ignore[attr-defined]
    return workspace
