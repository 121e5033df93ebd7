"""Workspaces that rest: why no cycle starts by itself, and until when."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.tenancy import Workspace, WorkspaceQuerySet


class PauseReason(models.TextChoices):
    FAILURES = "failures", "cycles in a row that got nothing done"
    AUTH = "auth", "a model server refuses the key"
    BILLING = "billing", "a model server wants to be paid"
    CAP = "cap", "a cap of the day is reached"


class PauseQuerySet(WorkspaceQuerySet):
    def in_force(self) -> Self:
        """Keep the pauses that are not over, by the database's clock."""
        return self.filter(until__gt=Now())


class Pause(models.Model):
    """B9: one row for a workspace that rests, or that has begun again and not got anything done yet."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="pause")
    reason = models.CharField(max_length=8, choices=PauseReason.choices)
    detail = models.CharField(max_length=200, blank=True, default="")
    failures = models.PositiveIntegerField(default=0, help_text="Cycles in a row that got nothing done.")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(help_text="By the database's clock; the next cycle starts then.")
    fingerprint = models.CharField(max_length=64, help_text="Of the settings or caps whose change ends the pause.")

    objects = PauseQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(reason__in=PauseReason.values), name="pause_reason_known"),
        ]

    def __str__(self) -> str:
        return f"{self.workspace_id} {self.reason}"
