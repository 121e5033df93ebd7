"""GET /beliefs, GET /beliefs/{id} and GET /beliefs/{id}/history."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import Viewer, visible_beliefs
from memory.api.pagination import PageQuery, page_of
from memory.api.requests import (
    NothingThere,
    ShareField,
    StrictSerializer,
    as_of_field,
    name_field,
    project_named,
    query_field,
    read_query,
    viewer_from,
)
from memory.api.schema import BELIEF_STATUSES, FACT_TYPES, documented, page_schema
from memory.domain.lifecycle import BeliefStatus
from memory.history.as_of import beliefs_as_of, changes_of
from memory.models import Belief, BeliefEvent, GateDecision, Permission, Project
from memory.recall.cards import BeliefCard, interval_of, read_card, read_card_as_of


class BeliefQuery(PageQuery):
    """Which beliefs a list shows."""

    status = serializers.ChoiceField(BELIEF_STATUSES, default=BeliefStatus.ACTIVE.value)
    project = name_field(help_text="Slug: that project's own beliefs.")
    user = name_field()
    category = serializers.ChoiceField(FACT_TYPES, required=False, help_text="The type of fact.")
    min_confidence = ShareField(required=False)
    q = query_field(required=False, help_text="Words that the statement contains.")
    as_of = as_of_field()


class CardQuery(StrictSerializer):
    """When a belief is to be shown."""

    as_of = as_of_field()


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
            "updated_at", "last_reinforced_at", "last_verified_at", "valid_from", "valid_until",
        )  # fmt: skip

    def get_interval(self, belief: Belief | BeliefEvent) -> list[float]:
        return list(interval_of(belief))


class BeliefAsOfSerializer(BeliefSerializer):
    """A belief as it stood."""

    id = serializers.CharField(source="pgh_obj_id")

    class Meta(BeliefSerializer.Meta):
        model = BeliefEvent


class ChangeSerializer(serializers.ModelSerializer[Any]):
    """A belief after one change, and who made it."""

    at = serializers.DateTimeField(source="updated_at", help_text="In the time of storing: a cycle's `now`.")
    recorded_at = serializers.DateTimeField(source="pgh_created_at", help_text="By the clock on the wall.")
    change = serializers.CharField(source="pgh_label", help_text="created, changed, or found when history began.")
    actor = serializers.SerializerMethodField(help_text="A cycle, a key, a person or a command.")
    reason = serializers.SerializerMethodField(help_text="Why it was changed.")

    class Meta:
        model = BeliefEvent
        fields = (
            "at", "recorded_at", "change", "actor", "reason", "statement", "context", "timeframe", "status",
            "status_reason", "alpha", "beta", "confidence", "evidence_count", "is_pinned", "valid_from",
            "valid_until",
        )  # fmt: skip

    def get_actor(self, event: BeliefEvent) -> str:
        return _said(event, "actor")

    def get_reason(self, event: BeliefEvent) -> str:
        return _said(event, "reason")


def _said(event: BeliefEvent, name: str) -> str:
    """Return what was said of a change; nothing for one made by hand in the database."""
    said: str = (event.pgh_context or {}).get(name, "")
    return said


class EvidenceSerializer(serializers.Serializer[Any]):
    """One episode's word on a belief."""

    episode = serializers.CharField()
    text = serializers.CharField()
    claim = serializers.CharField(
        allow_blank=True, help_text="The sentence of it that counts; empty: the whole text does."
    )
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

    is_undone = serializers.SerializerMethodField(help_text="Its cycle was undone, and what it led to with it.")

    class Meta:
        model = GateDecision
        fields = ("gate", "passed", "reason", "facts", "twin", "cycle", "is_undone", "created_at")

    def get_is_undone(self, decision: GateDecision) -> bool:
        return decision.cycle is not None and decision.cycle.undone_at is not None


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
    additive_confidence = serializers.FloatField(
        allow_null=True,
        help_text="By the additive model; null where the workspace has not chosen it, and for a belief as it stood.",
    )


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
            "additive_confidence",
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
        viewer = viewer_from(request)
        beliefs = visible_beliefs(viewer=viewer)
        if "as_of" not in asked:
            rows = _filtered(beliefs, viewer, asked)
            return page_of(request=request, rows=rows, asked=asked, shown_as=BeliefSerializer)
        rows = _filtered(beliefs_as_of(beliefs=beliefs, at=asked["as_of"]), viewer, asked)
        return page_of(request=request, rows=rows, asked=asked, shown_as=BeliefAsOfSerializer, key="pgh_obj_id")


class BeliefView(APIView):
    """One belief."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_belief",
        summary="Read a belief with its evidence",
        parameters=[CardQuery],
        **documented({200: BeliefCardSerializer}, 404, 422),
    )
    def get(self, request: Request, belief_id: str) -> Response:
        asked = read_query(CardQuery, request)
        viewer = viewer_from(request)
        belief = get_object_or_404(visible_beliefs(viewer=viewer).select_related("project", "workspace"), pk=belief_id)
        if "as_of" not in asked:
            return _answer(read_card(belief=belief, viewer=viewer), shown_as=BeliefSerializer)
        card = read_card_as_of(belief=belief, at=asked["as_of"], viewer=viewer)
        if card is None:
            raise NothingThere(f"There was no belief {belief_id} at that time.")
        return _answer(card, shown_as=BeliefAsOfSerializer)


class BeliefHistoryView(APIView):
    """What changed about a belief, when, by whom and why."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_belief_history",
        summary="List a belief's changes, latest first",
        parameters=[PageQuery],
        **documented({200: page_schema("ChangePage", ChangeSerializer)}, 404, 422),
    )
    def get(self, request: Request, belief_id: str) -> Response:
        asked = read_query(PageQuery, request)
        belief = get_object_or_404(visible_beliefs(viewer=viewer_from(request)), pk=belief_id)
        rows = changes_of(belief=belief)
        return page_of(request=request, rows=rows, asked=asked, shown_as=ChangeSerializer, newest_by="pgh_created_at")


def _answer(card: BeliefCard, *, shown_as: type[BeliefSerializer]) -> Response:
    return Response({**shown_as(card.belief).data, **CardPartsSerializer(card).data})


def _filtered(beliefs: QuerySet[Any], viewer: Viewer, asked: dict[str, Any]) -> QuerySet[Any]:
    project = project_named(viewer=viewer, slug=asked.get("project"))
    beliefs = beliefs.filter(status=asked["status"]).select_related("project")
    if project:
        beliefs = beliefs.filter(project=project)
    wanted = {"user": "user", "category": "fact_type", "min_confidence": "confidence__gte", "q": "statement__icontains"}
    return beliefs.filter(**{column: asked[name] for name, column in wanted.items() if name in asked})
