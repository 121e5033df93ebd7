"""What links memories, to be looked at: entities with their mentions, edges, and boxes with what is in them."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.http import HttpRequest

from memory.admin.columns import badge, column, link_column
from memory.admin.membership import MembersAdmin, OwnWorkspaces, ReadOnlyInline, workspaces_of
from memory.domain.lifecycle import EpisodeStatus
from memory.models import Box, BoxMember, Edge, Entity, Mention, Role


class MentionsOfEntity(ReadOnlyInline[Mention, Entity]):
    model = Mention
    fields = ("name", "episode_text")
    ordering = ("-id",)
    related = ("episode",)
    text_length = 120


@admin.register(Entity)
class EntityAdmin(MembersAdmin[Entity]):
    """Someone or something that memories name."""

    list_display = ("name", "mention_count", "workspace", "created_at")
    search_fields = ("name__istartswith",)
    search_help_text = "How a name begins"
    ordering = ("name", "id")
    inlines = (MentionsOfEntity,)
    fields = (("name", "workspace"), "created_at")
    mention_count = column("said", title="mentions")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Entity]:
        rows = _without_forgotten(super().get_queryset(request), Mention.objects.filter(entity=OuterRef("pk")), request)
        entities: models.QuerySet[Entity] = rows.annotate(said=Count("mentions"))
        return entities


def _without_forgotten(
    rows: models.QuerySet[Any], members: models.QuerySet[Any], request: HttpRequest
) -> models.QuerySet[Any]:
    """Leave out what only forgotten episodes name or hold, but for curators."""
    told = Exists(members.exclude(episode__status=EpisodeStatus.FORGOTTEN))
    return rows.filter(Q(workspace__in=workspaces_of(request, at_least=Role.CURATOR)) | told)


@admin.register(Edge)
class EdgeAdmin(MembersAdmin[Edge]):
    """A link between two episodes."""

    list_display = ("source_text", "kind_badge", "target_text", "weight", "confidence", "last_seen_at")
    list_filter = ("kind", "last_seen_at")
    search_fields = ("source__id", "target__id")
    search_help_text = "The id of an episode (ep_…)"
    related = ("source", "target")
    fieldsets = (
        (None, {"fields": (("source_text", "kind_badge", "target_text"), ("weight", "confidence"), "workspace")}),
        ("Times", {"fields": (("created_at", "last_seen_at", "decays_at"),)}),
    )
    text_length = 120
    source_text = link_column("source", text="text", title="from")
    target_text = link_column("target", text="text", title="to")
    kind_badge = column("kind", badge, ordering="kind")


class MembersOfBox(ReadOnlyInline[BoxMember, Box]):
    model = BoxMember
    fields = ("episode_text",)
    ordering = ("episode__occurred_at", "episode__number")
    related = ("episode",)
    text_length = 120


@admin.register(Box)
class BoxAdmin(MembersAdmin[Box]):
    """Memories of one topic, near in time."""

    list_display = ("about", "project", "user", "session", "seal", "opened_at", "last_at")
    list_filter = (("project", OwnWorkspaces), "seal", "last_at")
    search_fields = ("session__istartswith",)
    search_help_text = "How a session's name begins"
    ordering = ("-last_at", "-id")
    inlines = (MembersOfBox,)
    fieldsets = (
        (None, {"fields": ("about", ("project", "workspace"), ("user", "session"))}),
        ("Times", {"fields": (("opened_at", "last_at"), ("sealed_at", "seal"))}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Box]:
        return _without_forgotten(super().get_queryset(request), BoxMember.objects.filter(box=OuterRef("pk")), request)

    @admin.display(description="topics")
    def about(self, box: Box) -> str:
        return ", ".join(box.topics[:8]) or "nothing in particular"
