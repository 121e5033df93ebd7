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
    explain = serializers.BooleanField(
        default=False, help_text="With every number that led to the answer, and what fell short; counts as no access."
    )


class RoundedField(serializers.FloatField):
    """A number as people read it: further digits say nothing."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), _DIGITS)


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel's word on a memory."""

    rank = serializers.IntegerField(help_text="Among the candidates of that kind; 1 is best.")
    score = RoundedField()


class ExplanationSerializer(serializers.Serializer[Any]):
    """How a memory came to its score."""

    channels = serializers.DictField(child=ChannelSerializer(), help_text="vector, text: those that found it.")
    components = serializers.DictField(
        child=RoundedField(allow_null=True), help_text="Every number that the score is made of."
    )


class MemorySerializer(serializers.Serializer[Any]):
    """A recalled memory."""

    type = serializers.ChoiceField(MEMORY_TYPES)
    id = serializers.CharField()
    text = serializers.CharField()
    score = RoundedField(help_text="0 to 1, comparable between the kinds.")
    confidence = RoundedField(required=False, help_text="Of a belief.")
    occurred_at = serializers.DateTimeField(required=False, help_text="Of an episode.")
    explain = ExplanationSerializer(required=False, help_text="If asked for.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {name: value for name, value in shown.items() if value is not None}


class MissedSerializer(serializers.Serializer[Any]):
    """A memory that fell short."""

    memory = MemorySerializer()
    reason = serializers.CharField(help_text="below_the_last or fits_no_better.")


class RecalledSerializer(serializers.Serializer[Any]):
    """Results, best first."""

    results = MemorySerializer(many=True)
    degraded = serializers.ListField(child=serializers.CharField(), help_text="Channels that could not be used.")
    near_misses = MissedSerializer(many=True, required=False, help_text="If an explanation was asked for.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {name: value for name, value in shown.items() if name != "near_misses" or value}


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
            is_explained=asked["explain"],
            now=timezone.now(),
        )
        return Response(RecalledSerializer(recalled).data)
