"""How far what is done beside storing has come in a workspace."""

from django.db import models
from django.db.models import Q

from memory.models.tenancy import Workspace, WorkspaceQuerySet


class Upkeep(models.Model):
    """Up to where memories are linked, and how many extractions wait for maintenance.

    Numbers are drawn before rows are there for all to see: so the mark follows to a number only some time after it was
    the latest (`next_number`, `next_at` by the database's clock).
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="+")
    linked_number = models.BigIntegerField(default=0, help_text="Every episode up to here is linked, if it ever is.")
    next_number = models.BigIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True)
    extractions = models.PositiveIntegerField(default=0, help_text="Since memory was maintained last.")
    maintained_at = models.DateTimeField(null=True, blank=True, help_text="Domain time.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(linked_number__lte=models.F("next_number")), name="upkeep_mark_follows")
        ]

    def __str__(self) -> str:
        return f"up to {self.linked_number}"
