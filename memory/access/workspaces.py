"""Workspaces: one for each tenant."""

from datetime import datetime

from memory.models import Workspace


class UnknownWorkspace(LookupError):
    """There is no workspace of this name."""


def create_workspace(*, name: str, now: datetime) -> Workspace:
    """Create a workspace; raise ValidationError for a name that is empty, too long or taken."""
    workspace = Workspace(name=name, created_at=now)
    workspace.full_clean()
    workspace.save()
    return workspace


def find_workspace(*, name: str) -> Workspace:
    """Find the workspace of this name, or raise UnknownWorkspace."""
    workspace = Workspace.objects.filter(name=name).first()
    if workspace is None:
        raise UnknownWorkspace(f"There is no workspace {name!r}; make one with create_workspace.")
    return workspace
