"""What the signed-in person is in each workspace, and what of it they see."""

from collections.abc import Iterator, Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest

from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.models import Belief, Episode, Membership, Role, Turn, TurnEpisode, Workspace

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


def rows_in_sight(rows: models.QuerySet[Row], *, request: HttpRequest) -> models.QuerySet[Row]:
    """Keep the rows of a member, without those of what was forgotten where the person is no curator (B19)."""
    mine = rows_of_member(rows, request=request)
    curated = workspaces_of(request, at_least=Role.CURATOR)
    if set(curated) == set(roles_of(request)):
        return mine
    for forgotten in _forgotten(rows.model):
        mine = mine.filter(~forgotten | Q(workspace__in=curated))
    return mine


def _forgotten(model: type[models.Model]) -> Iterator[Q | Exists]:
    """Say which rows are of a forgotten episode or belief: it itself, and what leads to it."""
    if model in _STATUS_OF:
        yield Q(status=_STATUS_OF[model])
    elif model is Turn:
        yield Exists(TurnEpisode.objects.filter(turn=OuterRef("pk"), episode__status=EpisodeStatus.FORGOTTEN))
    else:
        for field in model._meta.concrete_fields:
            if field.related_model in _STATUS_OF:
                yield Q(**{f"{field.name}__status": _STATUS_OF[field.related_model]})


_STATUS_OF: Mapping[object, str] = {Episode: EpisodeStatus.FORGOTTEN, Belief: BeliefStatus.FORGOTTEN}


def workspace_of(row: models.Model) -> int:
    """Return the id of the workspace that a row belongs to."""
    workspace: int = row.pk if isinstance(row, Workspace) else row.workspace_id  # type: ignore[attr-defined]
    return workspace
