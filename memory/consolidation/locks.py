"""Locks, always taken in one order: workspace, cycle, job, beliefs by id."""

from collections.abc import Collection

from django.db import connection

from memory.models import Belief

_WORKSPACE_LOCKS = 1  # the first of the two numbers that name an advisory lock


def lock_workspace(workspace_id: int) -> None:
    """Hold the workspace's beliefs against every other gate until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_WORKSPACE_LOCKS, workspace_id % 2**31])


def lock_beliefs(ids: Collection[str]) -> list[Belief]:
    """Lock beliefs in id order and return them."""
    locked = Belief.objects.select_for_update(of=("self",)).select_related("workspace").filter(pk__in=ids)
    return list(locked.order_by("pk"))
