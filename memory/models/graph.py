"""The graph of episodes: entities and their mentions, edges between episodes, and boxes of one topic."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from memory.domain.graph import EdgeKind, Seal
from memory.models.episodes import Episode
from memory.models.fields import choices_of
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet


class Entity(models.Model):
    """Someone or something that memories name; what it is called stands with each mention."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=200, help_text="The name it was first known by, small.")
    created_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "entities"
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="entity_has_a_name"),
            models.UniqueConstraint(fields=["workspace", "name"], name="one_entity_per_name"),
        ]

    def __str__(self) -> str:
        return self.name


class Mention(models.Model):
    """An episode names an entity, by this name; later mentions have greater keys."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, db_index=False, related_name="mentions")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, db_index=False, related_name="mentions")
    name = models.CharField(max_length=200)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["episode", "entity"], name="one_mention_per_episode_and_entity"),
            models.CheckConstraint(condition=~Q(name=""), name="mention_has_a_name"),
        ]
        indexes = [
            models.Index(fields=["entity", "-id"], name="mention_latest"),
            models.Index(fields=["workspace", "name"], name="mention_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.episode_id}"


class EdgeQuerySet(WorkspaceQuerySet):
    def touching(self, episodes: models.QuerySet[Episode] | list[str]) -> Self:
        """Keep the edges with an end among some episodes."""
        return self.filter(Q(source__in=episodes) | Q(target__in=episodes))


class Edge(models.Model):
    """A link between two episodes, one of each kind; only a causal one has a direction, from cause to effect."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    source = models.ForeignKey(Episode, on_delete=models.CASCADE, db_index=False, related_name="+")
    target = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=6, choices=choices_of(EdgeKind))
    weight = models.FloatField(help_text="How strongly it links, 0 to 1; never changes.")
    confidence = models.FloatField(null=True, blank=True, help_text="0 to 1; empty counts as 1.")
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(help_text="Domain time at which it was seen last.")
    decays_at = models.DateTimeField(help_text="Domain time at which it loses confidence next.")

    objects = EdgeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "target", "kind"], name="one_edge_per_pair_and_kind"),
            models.CheckConstraint(condition=Q(kind__in=list(EdgeKind)), name="edge_kind_known"),
            models.CheckConstraint(condition=~Q(source=F("target")), name="edge_between_two"),
            models.CheckConstraint(
                condition=Q(kind=EdgeKind.CAUSAL) | Q(source__lt=F("target")),
                name="edge_without_direction_in_one_order",
            ),
            models.CheckConstraint(condition=Q(weight__gt=0, weight__lte=1), name="edge_weight_in_0_1"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="edge_confidence_in_0_1"),
        ]
        indexes = [models.Index(fields=["workspace", "decays_at"], name="edge_decays")]

    def __str__(self) -> str:
        return f"{self.source_id} {self.kind} {self.target_id}"

    @property
    def is_causal(self) -> bool:
        """Tell whether it leads from a cause to its effect."""
        return self.kind == EdgeKind.CAUSAL


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
