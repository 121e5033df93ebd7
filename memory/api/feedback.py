"""POST /memories/{id}/feedback and /resolve."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import visible_beliefs, visible_episodes
from memory.api.requests import Nothing, StrictSerializer, read_body, viewer_from
from memory.api.rounding import RoundedField
from memory.api.schema import documented
from memory.domain.ids import is_episode_id
from memory.models import Belief, Episode, Permission
from memory.models.fields import choices_of
from memory.recall.usage import Feedback, give_feedback, resolve_commitment


class FeedbackRequest(StrictSerializer):
    """A word on the use of a memory."""

    value = serializers.ChoiceField(choices_of(Feedback))


class FeedbackSerializer(serializers.Serializer[Any]):
    """How a memory's feedback stands. Nothing else is told: whoever may write need not be allowed to read."""

    id = serializers.CharField()
    feedback = RoundedField(min_value=-1, max_value=1, help_text="From -1, wrong, to 1, useful.")


class ResolvedSerializer(serializers.Serializer[Any]):
    """A commitment that was done with."""

    id = serializers.CharField()
    resolved_at = serializers.DateTimeField(help_text="When it was resolved first.")


class FeedbackView(APIView):
    """A word on the use of a memory."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="give_feedback",
        summary="Say that a memory was useful, or wrong",
        description="It moves 0.3 of the way to 1 or to -1. No confidence moves by it: evidence alone does that.",
        request=FeedbackRequest,
        **documented(
            {200: FeedbackSerializer}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample("a useful memory", value={"value": "useful"}, request_only=True),
                OpenApiExample(
                    "how it stands", value={"id": "bl_0c4e1f6a92d3", "feedback": 0.51}, response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request, memory_id: str) -> Response:
        asked = read_body(FeedbackRequest, request)
        memory = _memory(request, memory_id)
        feedback = give_feedback(memory=memory, value=Feedback(asked["value"]))
        return Response(FeedbackSerializer({"id": memory.pk, "feedback": feedback}).data)


class ResolveView(APIView):
    """The end of a commitment."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="resolve_commitment",
        summary="Say that a commitment was done with",
        request=Nothing,
        **documented(
            {200: ResolvedSerializer}, 400, 404, 409, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "a kept promise",
                    value={"id": "ep_3f9a1c0b77de", "resolved_at": "2026-03-01T12:00:00Z"},
                    response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request, memory_id: str) -> Response:
        read_body(Nothing, request)
        memory = _memory(request, memory_id)
        resolved_at = resolve_commitment(memory=memory, now=timezone.now())
        return Response(ResolvedSerializer({"id": memory.pk, "resolved_at": resolved_at}).data)


def _memory(request: Request, memory_id: str) -> Episode | Belief:
    viewer = viewer_from(request)
    is_episode = is_episode_id(memory_id)
    visible = visible_episodes(viewer=viewer) if is_episode else visible_beliefs(viewer=viewer)
    memory: Episode | Belief = get_object_or_404(visible.defer("search"), pk=memory_id)
    return memory
