"""Locks, always taken in one order: workspace, cycle, job, beliefs by id."""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from memory.models import Belief

# The first of the two numbers that name an advisory lock.
_WORKSPACE_LOCKS = 1
_EARLY_LOCKS = 2
_LOOK_LOCKS = 5


class Gone(LookupError):
    """A memory that was erased between being looked up and being changed."""


def lock_workspace(workspace_id: int) -> None:
    """Hold the workspace's beliefs against every other gate until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_WORKSPACE_LOCKS, workspace_id % 2**31])


def try_lock_workspace(workspace_id: int) -> bool:
    """Hold the workspace's beliefs likewise if nobody does; false otherwise, at once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_WORKSPACE_LOCKS, workspace_id % 2**31])
        is_held: bool = cursor.fetchone()[0]
    return is_held


class Occupied(RuntimeError):
    """Somebody else is at what one does alone; the message says what."""


def alone_at_gate(workspace_id: int) -> AbstractContextManager[bool]:
    """Tell whether nobody else applies this workspace's jobs early, and keep it so; never waits."""
    return _alone(_EARLY_LOCKS, workspace_id)


@contextmanager
def alone_looking(workspace_id: int) -> Iterator[None]:
    """Look at all beliefs of a workspace alone, since that takes a processor for seconds; raise Occupied."""
    with _alone(_LOOK_LOCKS, workspace_id) as is_alone:
        if not is_alone:
            raise Occupied("Somebody is looking at all beliefs of this workspace: try again when that is done.")
        yield


@contextmanager
def _alone(kind: int, workspace_id: int) -> Iterator[bool]:
    key = [kind, workspace_id % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        is_alone: bool = cursor.fetchone()[0]
    try:
        yield is_alone
    finally:
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def lock_beliefs(ids: Collection[str] | QuerySet[Any, Any]) -> list[Belief]:
    """Lock the beliefs that a list or a query names, in id order, and return them; rows that refer to them may come."""
    locked = Belief.objects.select_for_update(of=("self",), no_key=True).select_related("workspace").filter(pk__in=ids)
    return list(locked.order_by("pk"))


def lock_named(ids: Collection[str]) -> list[Belief]:
    """Lock beliefs likewise that somebody named; raise Gone if one was erased since it was looked up."""
    beliefs = lock_beliefs(ids)
    if missing := sorted(set(ids) - {belief.pk for belief in beliefs}):
        raise Gone(f"There is no {', '.join(missing)} any more.")
    return beliefs
