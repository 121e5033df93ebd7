"""Rows that one worker at a time works on: who holds one and until when, how often it was taken, why it waits.

A lease is taken, renewed and given back by one conditional update each. It runs out by itself where its worker dies,
and a worker that writes late finds that the row has another owner. All moments are by the database's clock.
"""

from __future__ import annotations

from typing import Any, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from memory.models.tenancy import WorkspaceQuerySet

REASON_LENGTH = 200


class LeasedQuerySet(WorkspaceQuerySet):
    def free(self) -> Self:
        """Keep the rows that nobody holds."""
        return self.filter(Q(leased_until__isnull=True) | Q(leased_until__lt=Now()))

    def held_by(self, owner: str) -> Self:
        """Keep the rows that this lease holds: every late write of another finds none."""
        return self.filter(lease_owner=owner)

    def lease(self, *, owner: str, until: Combinable, **columns: Any) -> bool:
        """Take the one row among these if it is free, and count a claim; false where somebody was faster."""
        taken: dict[str, Any] = {"claims": F("claims") + 1} | columns
        return self.free().update(lease_owner=owner, leased_until=until, **taken) == 1

    def renew(self, *, until: Combinable) -> bool:
        """Show a sign of life; false where the row has gone to another."""
        return self.update(leased_until=until) == 1

    def let_go(self, **columns: Any) -> int:
        """End leases with what came of the work; the claims stay counted."""
        return self.update(lease_owner="", leased_until=None, **columns)

    def give_back(self, **columns: Any) -> int:
        """End leases whose rows were nobody's end: the claims count no more."""
        return self.let_go(claims=F("claims") - 1, **columns)

    def fail(self, *, reason: str, **columns: Any) -> int:
        """End leases and say why."""
        return self.let_go(state_reason=reason[:REASON_LENGTH], **columns)


class Leased(models.Model):
    """What one worker at a time works on."""

    lease_owner = models.CharField(max_length=64, blank=True, default="", db_default="")
    leased_until = models.DateTimeField(null=True, blank=True)
    claims = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Workers that took it up and never gave it back."
    )
    state_reason = models.CharField(
        max_length=REASON_LENGTH, blank=True, default="", db_default="", help_text="Why it waits, or failed."
    )

    class Meta:
        abstract = True


class PostponableQuerySet(LeasedQuerySet):
    def free(self) -> Self:
        """Keep the rows that nobody holds and that need not wait."""
        return super().free().filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()))

    def lease(self, *, owner: str, until: Combinable, **columns: Any) -> bool:
        """Take the one row among these as ever; its wait is over."""
        return super().lease(owner=owner, until=until, not_before=None, **columns)

    def revoke(self, **columns: Any) -> int:
        """End leases and waits, whoever holds the rows."""
        return self.let_go(not_before=None, **columns)


class Postponable(Leased):
    """What is leased, and may have to wait for a model server."""

    not_before = models.DateTimeField(null=True, blank=True, help_text="A model server asked us to wait until then.")

    class Meta:
        abstract = True
