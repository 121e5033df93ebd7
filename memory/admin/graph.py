"""What links memories, to be looked at: entities with their mentions, edges, and boxes with what is in them."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.membership import OwnWorkspaces, PagesWithoutCount, ReadOnlyAdmin, ReadOnlyInline, workspaces_of
from memory.admin.presentation import badge, link_to
from memory.domain.lifecycle import EpisodeStatus
from memory.models import Box, BoxMember, Edge, Entity, Episode, Mention, Role


def _episode_link(key: str, text: str) -> SafeString | str:
    return link_to(Episode, key, text=text[:120])


def _without_forgotten(
    rows: models.QuerySet[Any], members: models.QuerySet[Any], request: HttpRequest
) -> models.QuerySet[Any]:
    """Leave out what only forgotten episodes name or hold, but for curators."""
    told = Exists(members.exclude(episode__status=EpisodeStatus.FORGOTTEN))
    return rows.filter(Q(workspace__in=workspaces_of(request, at_least=Role.CURATOR)) | told)


class MentionsOfEntity(ReadOnlyInline[Mention, Entity]):
    model = Mention
    fields = ("name", "told")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Mention]:
        return super().get_queryset(request).select_related("episode").defer("episode__search").order_by("-id")

    @admin.display(description="episode")
    def told(self, row: Mention) -> SafeString | str:
        return _episode_link(row.episode_id, row.episode.text)


@admin.register(Entity)
class EntityAdmin(ReadOnlyAdmin[Entity]):
    """Someone or something that memories name."""

    list_display = ("name", "mentioned", "workspace", "created_at")
    list_filter = (("workspace", OwnWorkspaces),)
    search_fields = ("name__istartswith",)
    search_help_text = "How a name begins"
    paginator = PagesWithoutCount
    ordering = ("name", "id")
    inlines = (MentionsOfEntity,)
    fieldsets = ((None, {"fields": (("name", "workspace"), "created_at")}),)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Entity]:
        rows = _without_forgotten(super().get_queryset(request), Mention.objects.filter(entity=OuterRef("pk")), request)
        entities: models.QuerySet[Entity] = rows.annotate(said=Count("mentions"))
        return entities

    @admin.display(description="mentions")
    def mentioned(self, entity: Entity) -> int:
        said: int = getattr(entity, "said", 0)
        return said


@admin.register(Edge)
class EdgeAdmin(ReadOnlyAdmin[Edge]):
    """A link between two episodes."""

    list_display = ("from_episode", "kind_badge", "to_episode", "weight", "confidence", "last_seen_at")
    list_filter = (("workspace", OwnWorkspaces), "kind", "last_seen_at")
    search_fields = ("source__id", "target__id")
    search_help_text = "The id of an episode (ep_…)"
    paginator = PagesWithoutCount
    ordering = ("-id",)
    fieldsets = (
        (None, {"fields": (("from_episode", "kind_badge", "to_episode"), ("weight", "confidence"), "workspace")}),
        ("Times", {"fields": (("created_at", "last_seen_at", "decays_at"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Edge]:
        ends = super().get_queryset(request).select_related("source", "target")
        return ends.defer("source__search", "target__search")

    @admin.display(description="from")
    def from_episode(self, edge: Edge) -> SafeString | str:
        return _episode_link(edge.source_id, edge.source.text)

    @admin.display(description="to")
    def to_episode(self, edge: Edge) -> SafeString | str:
        return _episode_link(edge.target_id, edge.target.text)

    @admin.display(description="kind", ordering="kind")
    def kind_badge(self, edge: Edge) -> SafeString:
        return badge(edge.kind)


class MembersOfBox(ReadOnlyInline[BoxMember, Box]):
    model = BoxMember
    fields = ("told",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[BoxMember]:
        members = super().get_queryset(request).select_related("episode").defer("episode__search")
        return members.order_by("episode__occurred_at", "episode__number")

    @admin.display(description="episode")
    def told(self, row: BoxMember) -> SafeString | str:
        return _episode_link(row.episode_id, row.episode.text)


@admin.register(Box)
class BoxAdmin(ReadOnlyAdmin[Box]):
    """Memories of one topic, near in time."""

    list_display = ("about", "project", "user", "session", "seal", "opened_at", "last_at")
    list_filter = (("workspace", OwnWorkspaces), ("project", OwnWorkspaces), "seal", "last_at")
    search_fields = ("session__istartswith",)
    search_help_text = "How a session's name begins"
    paginator = PagesWithoutCount
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
