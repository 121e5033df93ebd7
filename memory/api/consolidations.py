"""Cycles: list, start, read, cancel, undo them, and release the episodes of an undone one."""

from typing import Any

from django.db.models import Count, DecimalField, F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.requests import PageQuery, StrictSerializer, holder_of, page_of, read_body, read_query
from memory.api.responses import CONTENT_TYPE, CYCLE_STATES, documented, page_schema, problem
from memory.consolidation.cycle import describe_pause, find_pause, open_cycle
from memory.consolidation.dry_run import dry_run_cycle
from memory.consolidation.finish import cancel_cycle
from memory.consolidation.undo import undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.lifecycle import CycleState
from memory.models import Cycle, CycleStep, ModelCall, Permission, Trigger, Workspace

_COUNT_NAMES = (
    "episodes", "clusters", "created", "reinforced", "contradicted", "partial", "revised", "split", "merged",
    "archived", "deferred", "failed",
)  # fmt: skip


class StepSerializer(serializers.ModelSerializer[CycleStep]):
    """One step of a cycle."""

    class Meta:
        model = CycleStep
        fields = ("name", "started_at", "finished_at", "counts")


class CycleSerializer(serializers.ModelSerializer[Cycle]):
    """One run of consolidation."""

    steps = StepSerializer(many=True)
    counts = serializers.SerializerMethodField(help_text="What was done to how many.")
    calls = serializers.IntegerField(source="call_count")
    tokens = serializers.IntegerField(source="token_count")
    cost_usd = serializers.FloatField(source="cost")

    class Meta:
        model = Cycle
        fields = (
            "id", "state", "state_reason", "trigger", "now", "steps", "counts", "calls", "tokens", "cost_usd",
            "budget_spent", "opened_at", "started_at", "finished_at", "undone_at", "undone_by",
        )  # fmt: skip

    def get_counts(self, cycle: Cycle) -> dict[str, int]:
        counted: dict[str, int] = cycle.counts
        return dict.fromkeys(_COUNT_NAMES, 0) | counted


class CycleRequest(StrictSerializer):
    """How a cycle is to be started."""

    dry_run = serializers.BooleanField(default=False, help_text="Answer with what it would do, and do nothing.")


_STARTED_SCHEMA = inline_serializer(
    "CycleStarted",
    {
        "id": serializers.CharField(),
        "state": serializers.CharField(),
        "note": serializers.CharField(required=False, help_text="Why none would have started by itself just now."),
    },
)


class PlannedJobSerializer(serializers.Serializer[Any]):
    """A job that the cycle would have."""

    kind = serializers.CharField()
    belief = serializers.CharField(
        allow_null=True, help_text="What single episodes would be judged against, where it is one belief."
    )
    beliefs = serializers.ListField(child=serializers.CharField(), help_text="All that they would be judged against.")
    episodes = serializers.ListField(child=serializers.CharField())
    calls = serializers.IntegerField(help_text="An estimate.")


class EstimateSerializer(serializers.Serializer[Any]):
    """What the calls would come to, about."""

    calls = serializers.DictField(child=serializers.IntegerField(), help_text="By purpose.")
    tokens = serializers.IntegerField()
    cost_usd = serializers.FloatField()


class RehearsalSerializer(serializers.Serializer[Any]):
    """What a cycle would do now."""

    dry_run = serializers.BooleanField(default=True)
    now = serializers.DateTimeField()
    episodes = serializers.IntegerField(help_text="New and failed ones that it would take up.")
    unembedded = serializers.IntegerField(
        help_text="Those without a vector; a model on a server would have to be asked before they can be grouped."
    )
    jobs = PlannedJobSerializer(many=True)
    put_back = serializers.IntegerField(help_text="Episodes that would wait for a later cycle.")
    archive_due = serializers.IntegerField(help_text="Beliefs that time alone may archive.")
    estimate = EstimateSerializer()


def costed_cycles(*, workspace: Workspace) -> QuerySet[Cycle]:
    """Return a workspace's cycles with their calls, tokens and costs."""
    calls = ModelCall.objects.filter(cycle=OuterRef("pk")).order_by().values("cycle")
    tokens = Sum(F("input_tokens") + F("output_tokens"))
    cycles: QuerySet[Cycle] = Cycle.objects.for_workspace(workspace).annotate(
        call_count=Coalesce(Subquery(calls.annotate(n=Count("pk")).values("n")), 0),
        token_count=Coalesce(Subquery(calls.annotate(n=tokens).values("n")), 0),
        cost=Coalesce(Subquery(calls.annotate(n=Sum("cost_usd")).values("n")), 0, output_field=DecimalField()),
    )
    return cycles.prefetch_related("steps")


class CycleListView(APIView):
    """Consolidation of a workspace: start it, and see how it went."""

    permission_for = {"GET": Permission.READ, "POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="list_consolidations",
        summary="List cycles, newest first",
        parameters=[PageQuery],
        **documented({200: page_schema("CyclePage", CycleSerializer)}, 422),
    )
    def get(self, request: Request) -> Response:
        asked = read_query(PageQuery, request)
        rows = costed_cycles(workspace=holder_of(request).workspace)
        return page_of(request=request, rows=rows, asked=asked, shown_as=CycleSerializer, newest_by="opened_at")

    @extend_schema(
        operation_id="start_consolidation",
        summary="Start a cycle, or say what it would do",
        request=CycleRequest,
        **documented(
            {200: RehearsalSerializer, 202: _STARTED_SCHEMA},
            400, 409, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "started",
                    value={"id": "cy_5d0e7c41ab92", "state": CycleState.QUEUED.value},
                    response_only=True,
                    status_codes=["202"],
                )
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(CycleRequest, request)
        workspace = holder_of(request).workspace
        if asked["dry_run"]:
            return Response(RehearsalSerializer(dry_run_cycle(workspace=workspace, now=timezone.now())).data)
        pause = find_pause(workspace=workspace)
        cycle, is_new = open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
        if is_new:
            note = {"note": f"Started by hand while the workspace rests: {describe_pause(pause)}."} if pause else {}
            return Response({"id": cycle.pk, "state": cycle.state} | note, status=202)
        body = problem(status=409, detail="A cycle of this workspace is queued or running.", id=cycle.pk)
        return Response(body, status=409, content_type=CONTENT_TYPE)


class CycleView(APIView):
    """One cycle."""

    permission_for = {"GET": Permission.READ}
    is_for_whole_workspace = True

    @extend_schema(operation_id="read_consolidation", summary="Read a cycle", **documented({200: CycleSerializer}, 404))
    def get(self, request: Request, cycle_id: str) -> Response:
        cycle = get_object_or_404(costed_cycles(workspace=holder_of(request).workspace), pk=cycle_id)
        return Response(CycleSerializer(cycle).data)


class CycleCancelView(APIView):
    """The end of a cycle before its time."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="cancel_consolidation",
        summary="Cancel a cycle: apply what is complete, put the rest back",
        request=None,
        **documented({202: _STARTED_SCHEMA}, 404, 409),
    )
    def post(self, request: Request, cycle_id: str) -> Response:
        holder = holder_of(request)
        cycle = get_object_or_404(Cycle.objects.for_workspace(holder.workspace), pk=cycle_id)
        cycle = cancel_cycle(cycle_id=cycle.pk, actor=holder.actor)
        return Response({"id": cycle.pk, "state": cycle.state}, status=202)


_UNDO_REASON_LENGTH = 150  # beside the cycle's name, in a history whose reasons have 200 characters


class UndoRequest(StrictSerializer):
    """Why a cycle is undone."""

    reason = serializers.CharField(
        max_length=_UNDO_REASON_LENGTH, required=False, allow_blank=True, default="",
        help_text="Kept in the history of the beliefs that go back.",
    )  # fmt: skip


class UndoneCountsSerializer(serializers.Serializer[Any]):
    """How many of what went back."""

    restored = serializers.IntegerField(help_text="Beliefs that are where they were before the cycle.")
    invalidated = serializers.IntegerField(help_text="Beliefs that were born in it.")
    evidence = serializers.IntegerField(help_text="Rows that count no more.")
    lineage = serializers.IntegerField(help_text="Rows that count no more.")
    held = serializers.IntegerField(help_text="Episodes that wait until a person releases them.")


class UndoneSerializer(serializers.Serializer[Any]):
    """A cycle that was undone."""

    id = serializers.CharField(source="cycle.pk")
    state = serializers.ChoiceField(choices=CYCLE_STATES, source="cycle.state")
    undone_at = serializers.DateTimeField(source="cycle.undone_at")
    undone_by = serializers.CharField(source="cycle.undone_by")
    undone = UndoneCountsSerializer(source="counts")


class ReleasedSerializer(serializers.Serializer[Any]):
    """Held episodes that take part again."""

    id = serializers.CharField(help_text="Of the cycle.")
    released = serializers.IntegerField()


class CycleUndoView(APIView):
    """A cycle taken back."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="undo_consolidation",
        summary="Undo a cycle: take back all that it did, and hold its episodes",
        request=UndoRequest,
        **documented({200: UndoneSerializer}, 400, 404, 409, 413, 415, 422),
    )
    def post(self, request: Request, cycle_id: str) -> Response:
        asked = read_body(UndoRequest, request)
        holder = holder_of(request)
        cycle = get_object_or_404(Cycle.objects.for_workspace(holder.workspace), pk=cycle_id)
        undone = undo_cycle(cycle_id=cycle.pk, actor=holder.actor, now=timezone.now(), reason=asked["reason"])
        return Response(UndoneSerializer(undone).data)


class CycleReleaseView(APIView):
    """The episodes of an undone cycle, let go."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="release_consolidation",
        summary="Release the episodes that are held since a cycle was undone",
        request=None,
        **documented({200: ReleasedSerializer}, 404, 409),
    )
    def post(self, request: Request, cycle_id: str) -> Response:
        cycle = get_object_or_404(Cycle.objects.for_workspace(holder_of(request).workspace), pk=cycle_id)
        return Response({"id": cycle.pk, "released": release_quarantined(episodes=select_quarantined(cycle=cycle))})
