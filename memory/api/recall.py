"""POST /recall."""

from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.requests import StrictSerializer, name_field, project_named, query_field, read_body, viewer_from
from memory.api.schema import MEMORY_TYPES, documented
from memory.models import Permission
from memory.recall.ranking import MemoryType
from memory.recall.recall import recall
from memory.recall.search import RecallScope

_DIGITS = 4


class RecallRequest(StrictSerializer):
    """A question to the memory."""

    query = query_field()
    project = name_field(allow_null=True, help_text="Slug: that project's memories and those of none.")
    user = name_field(allow_null=True, allow_blank=True, help_text="That user's memories and those of nobody.")
    limit = serializers.IntegerField(
        default=settings.POLICY.recall.limit, min_value=1, max_value=settings.POLICY.recall.max_limit
    )
    types = serializers.ListField(
        child=serializers.ChoiceField(MEMORY_TYPES),
        allow_empty=False,
        default=list(MemoryType),
        error_messages={"not_a_list": "A list is expected."},
    )


class RoundedField(serializers.FloatField):
    """A number as people read it: further digits say nothing."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), _DIGITS)


class MemorySerializer(serializers.Serializer[Any]):
    """A recalled memory."""

    type = serializers.ChoiceField(MEMORY_TYPES)
    id = serializers.CharField()
    text = serializers.CharField()
    score = RoundedField(help_text="0 to 1, comparable between the kinds.")
    confidence = RoundedField(required=False, help_text="Of a belief.")
    occurred_at = serializers.DateTimeField(required=False, help_text="Of an episode.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {name: value for name, value in shown.items() if value is not None}


class RecalledSerializer(serializers.Serializer[Any]):
    """Results, best first."""

    results = MemorySerializer(many=True)
    degraded = serializers.ListField(child=serializers.CharField(), help_text="Channels that could not be used.")


class RecallView(APIView):
    """What comes to mind for a query."""

    permission_for = {"POST": Permission.READ}

    @extend_schema(
        operation_id="recall",
        summary="Recall episodes and beliefs",
        request=RecallRequest,
        **documented(
            {200: RecalledSerializer}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample("question", value={"query": "tabs or spaces?", "limit": 3}, request_only=True),
                OpenApiExample(
                    "memories",
                    value={
                        "results": [
                            {
                                "type": "belief",
                                "id": "bl_0c4e1f6a92d3",
                                "text": "Mara prefers tabs over spaces.",
                                "score": 0.71,
                                "confidence": 0.86,
                            }
                        ],
                        "degraded": [],
                    },
                    response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(RecallRequest, request)
        viewer = viewer_from(request)
        project = project_named(viewer=viewer, slug=asked.get("project"))
        recalled = recall(
            scope=RecallScope(viewer=viewer, project_id=project.pk if project else None, user=asked.get("user") or ""),
            query=asked["query"],
            limit=asked["limit"],
            types=[MemoryType(kind) for kind in asked["types"]],
            now=timezone.now(),
        )
        return Response(RecalledSerializer(recalled).data)
