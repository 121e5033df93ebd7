"""GET /episodes."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import Viewer, visible_episodes
from memory.api.pagination import PageQuery, page_of
from memory.api.requests import as_of_field, name_field, project_named, query_field, read_query, viewer_from
from memory.api.schema import CATEGORIES, EPISODE_STATES, EPISODE_STATUSES, KINDS, documented, page_schema
from memory.domain.lifecycle import EpisodeStatus
from memory.history.as_of import episodes_as_of
from memory.models import Episode, Permission, Project
from memory.models.episodes import EpisodeQuerySet


class EpisodeQuery(PageQuery):
    """Which episodes a list shows."""

    status = serializers.ChoiceField(EPISODE_STATUSES, default=EpisodeStatus.ACTIVE.value)
    state = serializers.ChoiceField(EPISODE_STATES, required=False)
    project = name_field(help_text="Slug: that project's episodes.")
    user = name_field()
    agent = name_field()
    session = name_field()
    category = serializers.ChoiceField(CATEGORIES, required=False)
    q = query_field(required=False, help_text="Words that the text contains.")
    as_of = as_of_field()


class EpisodeSerializer(serializers.ModelSerializer[Episode]):
    """An episode."""

    project: serializers.SlugRelatedField[Project] = serializers.SlugRelatedField(
        "slug", read_only=True, allow_null=True
    )
    kind = serializers.ChoiceField(KINDS, read_only=True, help_text="What happened, or a note of what holds.")
    tier = serializers.CharField(read_only=True, help_text="Of the extraction's confidence; empty: none made it.")

    class Meta:
        model = Episode
        fields = (
            "id", "text", "summary", "project", "user", "agent", "session", "document", "speaker", "source", "language",
            "entities", "tags", "category", "kind", "confidence", "tier", "importance", "is_derived", "status", "state",
            "state_reason", "created_at", "occurred_at", "valid_until",
        )  # fmt: skip


class EpisodeAsOfSerializer(EpisodeSerializer):
    """An episode with the status that it had; nothing else of it has a history."""

    status = serializers.CharField(source="status_then")


class EpisodeListView(APIView):
    """The episodes of a workspace."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="list_episodes",
        summary="List episodes, newest first",
        parameters=[EpisodeQuery],
        **documented({200: page_schema("EpisodePage", EpisodeSerializer)}, 404, 422),
    )
    def get(self, request: Request) -> Response:
        asked = read_query(EpisodeQuery, request)
        rows = _filtered(viewer_from(request), asked).select_related("project").defer("search")
        shown_as = EpisodeAsOfSerializer if "as_of" in asked else EpisodeSerializer
        return page_of(request=request, rows=rows, asked=asked, shown_as=shown_as)


def _filtered(viewer: Viewer, asked: dict[str, Any]) -> EpisodeQuerySet:
    project = project_named(viewer=viewer, slug=asked.get("project"))
    episodes = visible_episodes(viewer=viewer)
    if project:
        episodes = episodes.filter(project=project)
    wanted = {name: name for name in ("status", "state", "user", "agent", "session", "category")}
    wanted["q"] = "text__icontains"
    if "as_of" in asked:
        episodes, wanted["status"] = episodes_as_of(episodes=episodes, at=asked["as_of"]), "status_then"
    return episodes.filter(**{column: asked[name] for name, column in wanted.items() if name in asked})
