"""Removing a workspace with all that is in it."""

from django.db import transaction

from memory.models import Workspace


@transaction.atomic
def remove_workspace(*, name: str) -> bool:
    """Delete a workspace and every row of it; false where there is none of this name."""
    deleted, _ = Workspace.objects.filter(name=name).delete()
    return bool(deleted)
