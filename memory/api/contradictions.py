"""GET and POST /contradictions, /contradictions/{id}/dismiss and /reopen: pairs for curators to look at (R11)."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.authentication import holder_of
from memory.api.reflection import FEW, MOST
from memory.api.requests import Nothing, StrictSerializer, read_body, read_query
from memory.api.rounding import RoundedField
from memory.api.schema import documented
from memory.facts.contradictions import (
    CheckOutcome,
    believed_candidates,
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.models import Permission, Rival, RivalState, Workspace

# What a curator may say of a pair.
SETTLINGS: dict[str, Callable[..., int]] = {
    "dismiss": dismiss_contradiction_candidates,
    "reopen": reopen_contradiction_candidates,
}

_PAIR = {
    "id": 31,
    "beliefs": [
        {"id": "bl_0c4e1f6a92d3", "statement": "Mara prefers tabs over spaces."},
        {"id": "bl_77aa01c4d2e9", "statement": "Mara indents with spaces."},
    ],
    "similarity": 0.7314,
    "state": "contradicts",
    "reason": "One says tabs, the other spaces.",
    "checked_at": "2026-03-02T08:00:00Z",
}
_LISTED = {"total": 1, "unasked": 0, "pairs": [_PAIR]}


class ContradictionQuery(StrictSerializer):
    """Which are listed, and how many."""

    state = serializers.ChoiceField(
        RivalState.choices, required=False, help_text="Those in this state, instead of those to look at."
    )
    limit = serializers.IntegerField(default=FEW, min_value=1, max_value=MOST)


class ContradictionRequest(StrictSerializer):
    """What is to be done about pairs that may contradict each other."""

    check = serializers.BooleanField(
        default=False, help_text="Have a model asked about the pairs that nobody was asked about, within 25 s."
    )
    again = serializers.BooleanField(
        default=False, help_text="With `check`: also about those of which no model could tell."
    )
    limit = serializers.IntegerField(
        default=FEW, min_value=1, max_value=MOST, help_text="Most pairs to look for, to ask about and to list."
    )


class SideSerializer(serializers.Serializer[Any]):
    """One of the two."""

    id = serializers.CharField()
    statement = serializers.CharField()


class ContradictionSerializer(serializers.ModelSerializer[Rival]):
    """Two beliefs of one project, user and language that may contradict each other."""

    beliefs = serializers.SerializerMethodField()
    similarity = RoundedField(help_text="On the reference scale, when the pair was found.")
    reason = serializers.CharField(
        source="why", read_only=True, help_text="The model's, or by which rule both cannot hold."
    )

    class Meta:
        model = Rival
        fields = ("id", "beliefs", "similarity", "state", "reason", "checked_at")
        read_only_fields = fields

    @extend_schema_field(SideSerializer(many=True))
    def get_beliefs(self, rival: Rival) -> list[dict[str, str]]:
        return [{"id": one.pk, "statement": one.statement} for one in (rival.first, rival.second)]


class ContradictionListSerializer(serializers.Serializer[Any]):
    """What somebody should look at."""

    total = serializers.IntegerField(help_text="Pairs to look at, more than are listed perhaps.")
    unasked = serializers.IntegerField(
        help_text="Pairs that are alike and no more, and of which no model was asked: `check` has one asked."
    )
    pairs = ContradictionSerializer(many=True, help_text="Contradictions first, the most similar before others.")


class ContradictionLookSerializer(ContradictionListSerializer):
    """What a look found."""

    found = serializers.IntegerField(help_text="Pairs that were not on the list before.")
    outcomes = serializers.DictField(
        child=serializers.IntegerField(), help_text="Of a check: how many pairs came to which state."
    )
    stopped = serializers.CharField(allow_blank=True, help_text="Why not all were answered; else empty.")


class ContradictionsView(APIView):
    """Pairs of beliefs that may contradict each other."""

    permission_for = {"GET": Permission.READ, "POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="list_contradictions",
        summary="List pairs of beliefs that may contradict each other",
        parameters=[ContradictionQuery],
        **documented(
            {200: ContradictionListSerializer}, 422,
            examples=[OpenApiExample("listed", response_only=True, status_codes=["200"], value=_LISTED)],
        ),
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        asked, workspace = read_query(ContradictionQuery, request), holder_of(request).workspace
        return Response(ContradictionListSerializer(_listed(workspace, asked["limit"], asked.get("state"))).data)

    @extend_schema(
        operation_id="find_contradictions",
        summary="Look for pairs of beliefs that may contradict each other, and have a model asked",
        description=(
            "No belief changes by it, whatever a model says: a curator corrects, merges, splits or archives, or "
            "dismisses the pair. What a check has no time for stays open: call again to go on. A pair of which no "
            "model could tell needs a person, and is asked about once more with `again`. Offline, rules see but a part "
            "of what contradicts, and leave the rest open."
        ),
        request=ContradictionRequest,
        **documented(
            {200: ContradictionLookSerializer}, 400, 409, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "found", response_only=True, status_codes=["200"],
                    value=_LISTED | {"found": 1, "outcomes": {"contradicts": 1, "compatible": 3}, "stopped": ""},
                )
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked, workspace = read_body(ContradictionRequest, request), holder_of(request).workspace
        most: int = asked["limit"]
        found = len(find_contradiction_candidates(workspace=workspace, now=timezone.now(), most=most))
        checked = CheckOutcome(outcomes={}, stopped="")
        if asked["check"]:
            seconds, again = settings.POLICY.remember.answer_seconds, asked["again"]
            checked = check_contradiction_candidates(
                workspace=workspace, now=timezone.now(), seconds=seconds, most=most, again=again
            )
        told = {"found": found, "outcomes": checked.outcomes, "stopped": checked.stopped}
        return Response(ContradictionLookSerializer(_listed(workspace, most) | told).data)


def _listed(workspace: Workspace, most: int, state: str | None = None) -> dict[str, Any]:
    rivals = list_contradiction_candidates(workspace=workspace, state=RivalState(state) if state else None)
    unasked = believed_candidates(workspace=workspace).only_alike().count()
    return {"total": rivals.count(), "unasked": unasked, "pairs": rivals[:most]}


class ContradictionView(APIView):
    """A curator's word on one pair."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="settle_contradiction",
        summary="Take a pair off the list, or let the next check ask about it again",
        parameters=[OpenApiParameter("settling", enum=list(SETTLINGS), location=OpenApiParameter.PATH)],
        request=None,
        **documented({200: ContradictionSerializer}, 400, 404, 413, 415, 422),
    )
    def post(self, request: Request, pair_id: int, settling: str) -> Response:
        read_body(Nothing, request)
        rivals = believed_candidates(workspace=holder_of(request).workspace).filter(pk=pair_id)
        get_object_or_404(rivals)
        SETTLINGS[settling](rivals=rivals)
        return Response(ContradictionSerializer(get_object_or_404(rivals)).data)  # a belief may have gone meanwhile
