"""What a transaction of the ledger needs: its author, its locks, and changes of status and lineage.

Locks are taken in one order: workspace, cycle, job, beliefs by id. A status changes here and nowhere else, by the
table of legal transitions (D3, R10).
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Self

from django.db import connection, transaction
from django.db.models import QuerySet

from memory.domain.errors import EngramError
from memory.domain.identity import Actor, cycle_actor
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus, check_transition
from memory.history import attribute_changes
from memory.models import Belief, BeliefEmbedding, Cycle, Episode, EpisodeEmbedding, Lineage, LineageKind, Transition

# The first of the two numbers that name an advisory lock.
_WORKSPACE_LOCKS = 1
_EARLY_GATE_LOCKS = 2
_SCAN_LOCKS = 5
_REASON_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes into the ledger, why and when (domain time), and the cycle that it belongs to, if to one."""

    actor: Actor
    reason: str
    now: datetime
    cycle: Cycle | None = None

    @classmethod
    def of_cycle(cls, cycle: Cycle, *, reason: str) -> Self:
        """Return a cycle as author."""
        return cls(actor=cycle_actor(cycle.pk), reason=reason, now=cycle.now, cycle=cycle)

    def sign(self) -> None:
        """Attribute the changes from here on."""
        attribute_changes(actor=self.actor, reason=self.reason)


class NotFound(EngramError, LookupError):
    """A memory that was erased between being looked up and being changed."""

    status = HTTPStatus.NOT_FOUND


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


class WorkspaceBusy(EngramError, RuntimeError):
    """Somebody else is at what one does alone; the message says what."""


def try_early_gate_lock(workspace_id: int) -> AbstractContextManager[bool]:
    """Tell whether nobody else applies this workspace's jobs early, and keep it so; never waits."""
    return _try_session_lock(_EARLY_GATE_LOCKS, workspace_id)


@contextmanager
def scan_lock(workspace_id: int) -> Iterator[None]:
    """Look at all beliefs of a workspace alone, since that takes a processor for seconds; raise WorkspaceBusy."""
    with _try_session_lock(_SCAN_LOCKS, workspace_id) as is_alone:
        if not is_alone:
            raise WorkspaceBusy("Somebody is looking at all beliefs of this workspace: try again when that is done.")
        yield


@contextmanager
def _try_session_lock(kind: int, workspace_id: int) -> Iterator[bool]:
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


def lock_existing_beliefs(ids: Collection[str]) -> list[Belief]:
    """Lock beliefs likewise that somebody named; raise NotFound if one was erased since it was looked up."""
    beliefs = lock_beliefs(ids)
    if missing := sorted(set(ids) - {belief.pk for belief in beliefs}):
        raise NotFound(f"There is no {', '.join(missing)} any more.")
    return beliefs


_STAYS_MERGED = (EpisodeStatus.MERGED, EpisodeStatus.FORGOTTEN)


def change_status(
    *,
    belief: Belief,
    new: BeliefStatus,
    reason: str,
    actor: Actor,
    now: datetime,
    status_reason: str | None = None,
) -> None:
    """Set a belief's status, record the transition, and let searches see it; the caller holds the belief's lock.

    `status_reason` is kept with the belief where that is not why its status changes: a status that is set back has the
    reason of before.
    """
    check_transition(old=BeliefStatus(belief.status), new=new)
    _set_status(
        belief, new, reason=reason, kept=reason if status_reason is None else status_reason, actor=actor, now=now
    )


def repair_status(
    *, belief: Belief, new: BeliefStatus, status_reason: str, reason: str, actor: Actor, now: datetime
) -> None:
    """Do the same for a belief whose status is not what is recorded, wherever it strayed to.

    The table knows no way back from where no belief should have come.
    """
    _set_status(belief, new, reason=reason, kept=status_reason, actor=actor, now=now)


def _set_status(belief: Belief, new: BeliefStatus, *, reason: str, kept: str, actor: Actor, now: datetime) -> None:
    old = BeliefStatus(belief.status)
    attribute_changes(actor=actor, reason=reason)
    belief.status, belief.status_reason, belief.updated_at = new, kept[:_REASON_LENGTH], now
    belief.save(update_fields=["status", "status_reason", "updated_at"])
    BeliefEmbedding.objects.filter(belief=belief.pk).update(is_active=new == BeliefStatus.ACTIVE)
    Transition.objects.create(
        workspace_id=belief.workspace_id,
        belief=belief,
        old=old,
        new=new,
        reason=reason[:_REASON_LENGTH],
        actor=str(actor),
        at=now,
    )


@transaction.atomic
def change_episode_status(
    *, ids: Collection[str], new: EpisodeStatus, reason: str, actor: Actor, now: datetime
) -> list[str]:
    """Set the status of episodes, all or none, and record the transitions; return those that had another.

    Beliefs that lean on an episode that is forgotten or invalidated are the caller's to recompute.
    """
    locked = Episode.objects.select_for_update().filter(pk__in=ids).exclude(status=new).order_by("pk")
    found = [(key, workspace, EpisodeStatus(old)) for key, workspace, old in locked.values_list(
        "pk", "workspace_id", "status"
    )]  # fmt: skip
    for _, _, old in found:
        check_transition(old=old, new=new)
    changed = [key for key, _, _ in found]
    rows = Episode.objects.filter(pk__in=changed)
    rows.update(status=new, **({} if new in _STAYS_MERGED else {"merged_into": None}))
    EpisodeEmbedding.objects.filter(episode__in=changed).update(is_active=new == EpisodeStatus.ACTIVE)
    Transition.objects.bulk_create(
        Transition(
            workspace_id=workspace, episode_id=key, old=old, new=new, reason=reason[:_REASON_LENGTH],
            actor=str(actor), at=now,
        )
        for key, workspace, old in found
    )  # fmt: skip
    return changed


def set_status_unrecorded(*, ids: Collection[str], status: str) -> None:
    """Set the status of episodes within a replay, which the caller rolls back: nothing is recorded of it."""
    Episode.objects.filter(pk__in=ids).update(status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageInput:
    """Of which beliefs another comes, in what way and why."""

    parents: Sequence[Belief]
    kind: LineageKind
    reason: str


def record_lineage(*, child: Belief, descent: LineageInput, author: Author) -> None:
    """State of which beliefs another came, once."""
    Lineage.objects.bulk_create(
        [
            Lineage(
                workspace_id=child.workspace_id,
                parent=parent,
                child=child,
                kind=descent.kind,
                reason=descent.reason,
                cycle=author.cycle,
                created_at=author.now,
            )
            for parent in descent.parents
        ],
        ignore_conflicts=True,
    )
