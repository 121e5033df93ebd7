"""Beliefs as they are read: the list, a card, the history, the lineage, and the claims of a memory (E1)."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import Viewer, find_project, visible_beliefs, visible_episodes
from memory.api.requests import (
    EmptyRequest,
    PageQuery,
    ShareField,
    StrictSerializer,
    as_of_field,
    name_field,
    page_of,
    query_field,
    read_query,
    viewer_from,
)
from memory.api.responses import BELIEF_STATUSES, CLAIM_MODES, FACT_TYPES, TIERS, RoundedField, documented, page_schema
from memory.domain.identity import is_episode_id
from memory.domain.lifecycle import BeliefStatus
from memory.history import beliefs_as_of, changes_of
from memory.ledger.transactions import NotFound
from memory.models import Belief, BeliefEvent, Claim, GateDecision, Lineage, Permission, Project
from memory.recall.cards import (
    BeliefCard,
    MemoryClaims,
    interval_of,
    read_card,
    read_card_as_of,
    read_claims_of_belief,
    read_claims_of_episode,
    read_lineage,
)


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
        return event.actor

    def get_reason(self, event: BeliefEvent) -> str:
        return event.reason


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
            rows = _filtered_beliefs(beliefs, viewer, asked)
            return page_of(request=request, rows=rows, asked=asked, shown_as=BeliefSerializer)
        rows = _filtered_beliefs(beliefs_as_of(beliefs=beliefs, at=asked["as_of"]), viewer, asked)
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
            return _card_response(read_card(belief=belief, viewer=viewer), shown_as=BeliefSerializer)
        card = read_card_as_of(belief=belief, at=asked["as_of"], viewer=viewer)
        if card is None:
            raise NotFound(f"There was no belief {belief_id} at that time.")
        return _card_response(card, shown_as=BeliefAsOfSerializer)


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


def _card_response(card: BeliefCard, *, shown_as: type[BeliefSerializer]) -> Response:
    return Response({**shown_as(card.belief).data, **CardPartsSerializer(card).data})


def _filtered_beliefs(beliefs: QuerySet[Any], viewer: Viewer, asked: dict[str, Any]) -> QuerySet[Any]:
    project = find_project(viewer=viewer, slug=asked.get("project"))
    beliefs = beliefs.filter(status=asked["status"]).select_related("project")
    if project:
        beliefs = beliefs.filter(project=project)
    wanted = {"user": "user", "category": "fact_type", "min_confidence": "confidence__gte", "q": "statement__icontains"}
    return beliefs.filter(**{column: asked[name] for name, column in wanted.items() if name in asked})


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
        read_query(EmptyRequest, request)
        viewer = viewer_from(request)
        belief = get_object_or_404(visible_beliefs(viewer=viewer), pk=belief_id)
        return Response(FamilySerializer(read_lineage(belief=belief, viewer=viewer)).data)


class ClaimedBeliefSerializer(serializers.Serializer[Any]):
    """What a claim says of a belief."""

    id = serializers.CharField()
    verdict = serializers.CharField(help_text="SUPPORTS, CONTRADICTS or PARTIAL.")
    statement = serializers.CharField()


class ClaimSerializer(serializers.ModelSerializer[Claim]):
    """One thing that an episode asserts."""

    episode = serializers.CharField(source="episode_id")
    mode = serializers.ChoiceField(CLAIM_MODES, help_text="How it is meant.")
    confidence = RoundedField(help_text="How plainly it says something that lasts, 0 to 1.")
    tier = serializers.ChoiceField(TIERS, help_text="Of that confidence.")

    class Meta:
        model = Claim
        fields = (
            "episode", "number", "sentence", "subject", "slot", "value", "context", "mode", "kind", "confidence",
            "tier", "is_told", "is_whole", "is_denial", "ended", "holds_from", "holds_until", "words", "language",
            "reader",
        )  # fmt: skip


class ShownClaimSerializer(ClaimSerializer):
    """A claim with what became of it, for the schema."""

    beliefs = ClaimedBeliefSerializer(
        many=True, help_text="What it is evidence for or against, as far as this key may see it."
    )

    class Meta(ClaimSerializer.Meta):
        fields = (*ClaimSerializer.Meta.fields, "beliefs")  # type: ignore[assignment]  # longer than its parent's


class MemoryClaimsSerializer(serializers.Serializer[Any]):
    """The claims of an episode, in its order; or those that a belief rests on, the newest first."""

    id = serializers.CharField()
    read_at = serializers.DateTimeField(
        allow_null=True, help_text="When the episode was read into claims; null: not yet, or it is a belief."
    )
    claims = ShownClaimSerializer(many=True, help_text="At most 200.")
    other_claims = serializers.IntegerField(help_text="Claims that are not shown.")


_CLAIMS_EXAMPLE = OpenApiExample(
    "An episode",
    response_only=True,
    status_codes=["200"],
    value={
        "id": "ep_3f9a1c0b77de", "read_at": "2026-03-01T12:00:00Z",
        "claims": [
            {
                "episode": "ep_3f9a1c0b77de", "number": 1, "sentence": "Mara's editor indents with tabs.",
                "subject": "Mara's editor", "slot": "", "value": "", "context": "general", "mode": "asserted",
                "kind": "lasting", "confidence": 0.8, "tier": "implied", "is_told": True, "is_whole": False,
                "is_denial": False, "ended": [], "holds_from": None, "holds_until": None,
                "words": "", "language": "en", "reader": "gpt-5-mini read-3",
                "beliefs": [
                    {
                        "id": "bl_0c4e1f6a92d3", "verdict": "SUPPORTS", "statement": "Mara prefers tabs over spaces.",
                    }
                ],
            }
        ],
        "other_claims": 0,
    },
)  # fmt: skip


class ClaimsView(APIView):
    """The claims of one memory."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_claims",
        summary="Read what an episode asserts and what became of it, or the claims that a belief rests on",
        **documented({200: MemoryClaimsSerializer}, 404, 422, examples=[_CLAIMS_EXAMPLE]),
    )
    def get(self, request: Request, memory_id: str) -> Response:
        read_query(EmptyRequest, request)
        viewer = viewer_from(request)
        read = _claims_of_episode if is_episode_id(memory_id) else _claims_of_belief
        return Response(_claims_as_json(read(memory_id, viewer)))


def _claims_of_episode(memory_id: str, viewer: Viewer) -> MemoryClaims:
    episode = get_object_or_404(visible_episodes(viewer=viewer).defer("search"), pk=memory_id)
    return read_claims_of_episode(episode=episode, viewer=viewer)


def _claims_of_belief(memory_id: str, viewer: Viewer) -> MemoryClaims:
    belief = get_object_or_404(visible_beliefs(viewer=viewer).defer("search"), pk=memory_id)
    return read_claims_of_belief(belief=belief, viewer=viewer)


def _claims_as_json(found: MemoryClaims) -> dict[str, Any]:
    claims = [
        {**ClaimSerializer(shown.claim).data, "beliefs": ClaimedBeliefSerializer(shown.beliefs, many=True).data}
        for shown in found.claims
    ]
    return {"id": found.id, "read_at": found.read_at, "claims": claims, "other_claims": found.other_claims}
