"""Links between beliefs: what lies near what, and what a belief about beliefs was made of (R4, R7)."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from memory.models.beliefs import Belief
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class LinkKind(models.TextChoices):
    NEIGHBOUR = "neighbour", "near each other"
    SOURCE = "source", "made of it"
    DUPLICATE = "duplicate", "may say the same"


class LinkQuerySet(WorkspaceQuerySet):
    def touching(self, ids: list[str]) -> Self:
        """Keep the links from or to some beliefs: they are walked in either direction."""
        return self.filter(Q(belief__in=ids) | Q(other__in=ids))


class Link(models.Model):
    """R4: one belief is linked to another; of a belief about beliefs, `other` is what it was made of."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="links")
    other = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="links_here")
    kind = models.CharField(max_length=9, choices=LinkKind.choices, default=LinkKind.NEIGHBOUR)
    similarity = models.FloatField(help_text="On the reference scale, when it was made.")
    created_at = models.DateTimeField()

    objects = LinkQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["belief", "other", "kind"], name="beliefs_are_linked_once"),
            models.CheckConstraint(condition=~Q(belief=F("other")), name="no_belief_is_linked_to_itself"),
            models.CheckConstraint(condition=Q(kind__in=LinkKind.values), name="link_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.belief_id} – {self.other_id}"
