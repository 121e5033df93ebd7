"""GET /beliefs/{id}/lineage."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import visible_beliefs
from memory.api.requests import Nothing, read_query, viewer_from
from memory.api.schema import documented
from memory.models import Belief, Lineage, Permission
from memory.recall.cards import read_lineage


class AncestorSerializer(serializers.ModelSerializer[Belief]):
    """A belief of the line, in short."""

    class Meta:
        model = Belief
        fields = ("id", "statement", "context", "confidence", "status", "status_reason", "evidence_count", "created_at")


class LineageChangeSerializer(serializers.ModelSerializer[Lineage]):
    """How one belief became another."""

    class Meta:
        model = Lineage
        fields = ("parent", "child", "kind", "reason", "cycle", "created_at")


class FamilySerializer(serializers.Serializer[Any]):
    """All that a belief came from, and all that came of it, oldest first."""

    beliefs = AncestorSerializer(many=True)
    changes = LineageChangeSerializer(many=True)


class LineageView(APIView):
    """The line of one belief."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_lineage",
        summary="Read what a belief came from, and what came of it",
        **documented({200: FamilySerializer}, 404, 422),
    )
    def get(self, request: Request, belief_id: str) -> Response:
        read_query(Nothing, request)
        viewer = viewer_from(request)
        belief = get_object_or_404(visible_beliefs(viewer=viewer), pk=belief_id)
        return Response(FamilySerializer(read_lineage(belief=belief, viewer=viewer)).data)
