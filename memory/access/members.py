"""Who belongs to a workspace."""

from memory.models import Membership, Role, Workspace


def is_last_owner(*, membership: Membership) -> bool:
    """Tell whether the workspace would have no owner without this member."""
    owners = Membership.objects.for_workspace(membership.workspace_id).filter(role=Role.OWNER)
    return list(owners.values_list("pk", flat=True)[:2]) == [membership.pk]


def lock_members(*, workspace_id: int) -> None:
    """Hold the workspace's row to the end of the transaction, so that two owners cannot leave at once."""
    Workspace.objects.select_for_update().get(pk=workspace_id)
