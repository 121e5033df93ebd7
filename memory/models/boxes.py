"""Memories put together by topic: what was said on one matter in one go, and what continues it later (L7)."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from memory.domain.boxes import Seal
from memory.models.choices import choices_of
from memory.models.episodes import Episode
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet


class BoxQuerySet(WorkspaceQuerySet):
    def open(self) -> Self:
        """Keep those that take further memories."""
        return self.filter(sealed_at=None)


class Box(models.Model):
    """Memories of one project and user about one topic, near in time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    user = models.CharField(max_length=200, blank=True, default="")
    session = models.CharField(max_length=200, blank=True, default="", help_text="That put the last memory in.")
    topics = ArrayField(models.CharField(max_length=200), default=list, blank=True, help_text="The latest first.")
    opened_at = models.DateTimeField(help_text="When the earliest of its memories occurred.")
    last_at = models.DateTimeField(help_text="When the latest of its memories occurred.")
    sealed_at = models.DateTimeField(null=True, blank=True, help_text="Domain time; empty while it is open.")
    seal = models.CharField(max_length=7, choices=choices_of(Seal), blank=True, default="")

    objects = BoxQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "boxes"
        constraints = [
            models.CheckConstraint(condition=Q(seal__in=["", *Seal]), name="box_seal_known"),
            models.CheckConstraint(
                condition=Q(seal="", sealed_at__isnull=True) | (~Q(seal="") & Q(sealed_at__isnull=False)),
                name="sealed_box_says_why",
            ),
            models.CheckConstraint(condition=Q(opened_at__lte=F("last_at")), name="box_times_in_order"),
        ]
        indexes = [
            models.Index(fields=["workspace", "last_at"], condition=Q(sealed_at=None), name="box_open"),
            models.Index(fields=["workspace", "project", "user", "last_at"], name="box_of_scope"),
        ]

    def __str__(self) -> str:
        return ", ".join(self.topics[:3]) or f"box {self.pk}"


class BoxMember(models.Model):
    """The box of an episode: every episode that was linked has one."""

    episode = models.OneToOneField(Episode, on_delete=models.CASCADE, primary_key=True, related_name="boxed")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    box = models.ForeignKey(Box, on_delete=models.CASCADE, related_name="members")

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.episode_id} in box {self.box_id}"


class Trace(models.Model):
    """A later box goes on with the matter of an earlier one."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    earlier = models.ForeignKey(Box, on_delete=models.CASCADE, db_index=False, related_name="continued_by")
    later = models.ForeignKey(Box, on_delete=models.CASCADE, related_name="continues")
    overlap = models.FloatField(help_text="Of their topics, 0 to 1.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["earlier", "later"], name="one_trace_per_pair"),
            models.CheckConstraint(condition=~Q(earlier=F("later")), name="trace_between_two"),
            models.CheckConstraint(condition=Q(overlap__range=(0, 1)), name="trace_overlap_in_0_1"),
        ]

    def __str__(self) -> str:
        return f"box {self.earlier_id} to box {self.later_id}"
