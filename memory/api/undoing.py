"""POST /consolidations/{id}/undo and /release."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.authentication import holder_of
from memory.api.requests import StrictSerializer, read_body
from memory.api.schema import CYCLE_STATES, documented
from memory.consolidation.held import held_for, release_held
from memory.consolidation.undo import undo_cycle
from memory.models import Cycle, Permission

_REASON_LENGTH = 150  # beside the cycle's name, in a history whose reasons have 200 characters


class UndoRequest(StrictSerializer):
    """Why a cycle is undone."""

    reason = serializers.CharField(
        max_length=_REASON_LENGTH, required=False, allow_blank=True, default="",
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
        return Response({"id": cycle.pk, "released": release_held(episodes=held_for(cycle=cycle))})
