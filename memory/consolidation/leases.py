"""Hold a leased row while its work is done: renewed by a timer thread, given back at the end.

`take_lease` takes a row, `hold` keeps it for as long as a body works. What is particular to cycles' jobs, remembered
texts and conversations stands with these, in subclasses of `Lease`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog
from django.db import DatabaseError, connection
from django.db.models import ExpressionWrapper

from memory.consolidation.cycle import RENEWAL_SECONDS, budget_policy, database_now
from memory.models import ReadingStream
from memory.models.leases import Leased, LeasedQuerySet

log = structlog.get_logger(__name__)
AnyRow = TypeVar("AnyRow", bound=Leased)
AnyLease = TypeVar("AnyLease", bound="Lease[Any]")


def take_lease(rows: LeasedQuerySet, **columns: Any) -> str | None:
    """Lease the one row among these if it is free; return the new lease's owner, else None."""
    owner = uuid.uuid4().hex
    return owner if rows.lease(owner=owner, until=lease_end(), **columns) else None


def lease_end() -> ExpressionWrapper[Any]:
    """Name the moment at which a lease that is taken or renewed now runs out."""
    return database_now(plus=budget_policy().lease_seconds)


@contextmanager
def hold(lease: AnyLease | None) -> Iterator[AnyLease | None]:
    """Keep a lease while the body works, then give the row back; do nothing with None.

    A claim stays counted only where the work was its holder's end: a death, or an error.
    """
    if lease is None:
        yield None
        return
    try:
        with keep_renewed(lease.renew):
            yield lease
    except Exception:
        lease.let_go(**lease.after_error())
        raise
    if not lease.is_over:
        lease.give_back()


@contextmanager
def leased_stream(*, workspace_id: int, name: str, wait: float = 0.0) -> Iterator[bool]:
    """Hold a stream of messages against all others who read it (F2); false where somebody else does, and goes on.

    Wait so many seconds for it at most.
    """
    ReadingStream.objects.get_or_create(workspace_id=workspace_id, name=name)
    rows = ReadingStream.objects.filter(workspace=workspace_id, name=name)
    until = time.monotonic() + wait
    while (owner := take_lease(rows)) is None and time.monotonic() < until:
        time.sleep(_STREAM_POLL_SECONDS)
    if owner is None:
        yield False
        return
    with hold(Lease(row=rows.get(), owner=owner)):
        yield True


_STREAM_POLL_SECONDS = 0.1


@dataclass(slots=True, kw_only=True)
class Lease(Generic[AnyRow]):
    """The right to work on one row as it was when it was leased; every write of the holder asks `renew` or `held`."""

    row: AnyRow
    owner: str
    began: float = field(default_factory=time.monotonic)  # readings of the clock that only ever goes forward
    renewed: float = field(default_factory=time.monotonic)
    is_over: bool = False

    @property
    def held(self) -> LeasedQuerySet:
        """Select the row while it is this lease's."""
        return LeasedQuerySet(type(self.row)).filter(pk=self.row.pk).held_by(self.owner)

    @property
    def seconds(self) -> float:
        """Return for how long the row has been held."""
        return time.monotonic() - self.began

    def renew(self) -> bool:
        """Show a sign of life, unless that was just done; false once somebody else has the row, or it is gone."""
        now = time.monotonic()
        if now - self.renewed > RENEWAL_SECONDS:
            if not self.held.renew(until=lease_end()):
                return False
            self.renewed = now
        return True

    def let_go(self, **columns: Any) -> bool:
        """Write what came of the work and end the lease; false if it was lost before."""
        self.is_over = True
        return self.held.let_go(**columns) == 1

    def give_back(self, **columns: Any) -> bool:
        """End the lease without a claim counted; false if it was lost before."""
        self.is_over = True
        return self.held.give_back(**columns) == 1

    def after_error(self) -> dict[str, Any]:
        """Return what an error of ours leaves in the row."""
        return {}


@contextmanager
def keep_renewed(renew: Callable[[], bool]) -> Iterator[None]:
    """Renew a lease from a timer thread while the body works."""
    done = threading.Event()
    context = copy_context()  # so that the thread's log lines say what they are about, too
    timer = threading.Thread(target=context.run, args=(_renew_until, done, renew), daemon=True)
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.join()


def _renew_until(done: threading.Event, renew: Callable[[], bool]) -> None:
    try:
        while not done.wait(budget_policy().renew_seconds):
            if not _renew_once(renew):
                return
    finally:
        connection.close()  # this thread's own


def _renew_once(renew: Callable[[], bool]) -> bool:
    """Renew, and take an outage of the database for no answer rather than for a lost lease."""
    try:
        return renew()
    except DatabaseError:
        log.warning("lease_not_renewed")
        connection.close()
        return True
