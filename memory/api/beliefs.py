"""GET /beliefs and GET /beliefs/{id}."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access.visibility import Viewer, visible_beliefs
from memory.api.pagination import PageQuery, page_of
from memory.api.requests import ShareField, name_field, project_named, query_field, read_query, viewer_from
from memory.api.schema import BELIEF_STATUSES, documented, page_schema
from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, GateDecision, Permission, Project
from memory.models.beliefs import BeliefQuerySet
from memory.recall.cards import interval_of, read_card


class BeliefQuery(PageQuery):
    """Which beliefs a list shows."""

    status = serializers.ChoiceField(BELIEF_STATUSES, default=BeliefStatus.ACTIVE.value)
    project = name_field(help_text="Slug: that project's own beliefs.")
    user = name_field()
    min_confidence = ShareField(required=False)
    q = query_field(required=False, help_text="Words that the statement contains.")


class BeliefSerializer(serializers.ModelSerializer[Belief]):
    """A belief."""

    project: serializers.SlugRelatedField[Project] = serializers.SlugRelatedField(
        "slug", read_only=True, allow_null=True
    )
    interval = serializers.SerializerMethodField(help_text="The 90 % credible interval of the confidence.")

    class Meta:
        model = Belief
        fields = (
            "id", "statement", "subject", "predicate", "context", "timeframe", "fact_type", "language", "scope",
            "project", "user", "alpha", "beta", "confidence", "interval", "evidence_count", "status", "status_reason",
            "is_pinned", "importance", "peak_confidence", "prediction_error", "storage_strength", "created_at",
            "updated_at", "last_reinforced_at", "last_verified_at", "valid_until",
        )  # fmt: skip

    def get_interval(self, belief: Belief) -> list[float]:
        return list(interval_of(belief))


class EvidenceSerializer(serializers.Serializer[Any]):
    """One episode's word on a belief."""

    episode = serializers.CharField()
    text = serializers.CharField()
    speaker = serializers.CharField()
    origin = serializers.CharField(help_text="What counts as one independent source.")
    occurred_at = serializers.DateTimeField()
    verdict = serializers.CharField(help_text="SUPPORTS, CONTRADICTS or PARTIAL.")
    kind = serializers.CharField()
    basis = serializers.CharField(help_text="How the verdict was reached.")
    weight = serializers.FloatField(help_text="What it adds, after the other rows of its origin.")
    reason = serializers.CharField()
    cycle = serializers.CharField(allow_null=True)


class RelativeSerializer(serializers.Serializer[Any]):
    """A belief that another came from."""

    id = serializers.CharField()
    statement = serializers.CharField()
    kind = serializers.CharField()
    reason = serializers.CharField()


class LineageSerializer(serializers.Serializer[Any]):
    """Where a belief came from, and what came from it."""

    parents = RelativeSerializer(many=True)
    children = RelativeSerializer(many=True)


class DecisionSerializer(serializers.ModelSerializer[GateDecision]):
    """What a gate decided."""

    class Meta:
        model = GateDecision
        fields = ("gate", "passed", "reason", "facts", "cycle", "created_at")


class FoundingSerializer(serializers.Serializer[Any]):
    """What a belief was born of."""

    cycle = serializers.CharField()
    job = serializers.IntegerField(help_text="The number of the cluster's job within the cycle.")
    verdicts = serializers.DictField(
        child=serializers.IntegerField(), help_text="How the cluster's episodes judged the sentence made of them."
    )


class CardPartsSerializer(serializers.Serializer[Any]):
    """What a belief's card holds beside the belief."""

    evidence = EvidenceSerializer(many=True)
    hidden_evidence = serializers.IntegerField(help_text="Evidence that this key may not see.")
    origins = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many independent sources the evidence has, by verdict."
    )
    founding = FoundingSerializer(allow_null=True, help_text="Why it was born; null for one that no cluster founded.")
    decisions = DecisionSerializer(many=True)
    lineage = LineageSerializer(source="*")


class BeliefCardSerializer(CardPartsSerializer, BeliefSerializer):
    """A belief with its evidence, its gates' decisions and its lineage, for the schema."""

    class Meta(BeliefSerializer.Meta):
        fields = (  # type: ignore[assignment]  # longer than its parent's
            *BeliefSerializer.Meta.fields,
            "evidence",
            "hidden_evidence",
            "origins",
            "founding",
            "decisions",
            "lineage",
        )


class BeliefListView(APIView):
    """The beliefs of a workspace."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="list_beliefs",
        summary="List beliefs, newest first",
        parameters=[BeliefQuery],
        **documented({200: page_schema("BeliefPage", BeliefSerializer)}, 404, 422),
    )
    def get(self, request: Request) -> Response:
        asked = read_query(BeliefQuery, request)
        rows = _filtered(viewer_from(request), asked).select_related("project")
        return page_of(request=request, rows=rows, asked=asked, shown_as=BeliefSerializer)


class BeliefView(APIView):
    """One belief."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_belief",
        summary="Read a belief with its evidence",
        **documented({200: BeliefCardSerializer}, 404),
    )
    def get(self, request: Request, belief_id: str) -> Response:
        viewer = viewer_from(request)
        beliefs = visible_beliefs(viewer=viewer).select_related("project", "workspace")
        card = read_card(belief=get_object_or_404(beliefs, pk=belief_id), viewer=viewer)
        return Response({**BeliefSerializer(card.belief).data, **CardPartsSerializer(card).data})


def _filtered(viewer: Viewer, asked: dict[str, Any]) -> BeliefQuerySet:
    project = project_named(viewer=viewer, slug=asked.get("project"))
    beliefs = visible_beliefs(viewer=viewer).filter(status=asked["status"])
    if project:
        beliefs = beliefs.filter(project=project)
    wanted = {"user": "user", "min_confidence": "confidence__gte", "q": "statement__icontains"}
    return beliefs.filter(**{column: asked[name] for name, column in wanted.items() if name in asked})
