"""GET /status."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.requests import Nothing, read_query, viewer_from
from memory.api.schema import documented
from memory.models import PauseReason, Permission
from memory.status import read_status


class LastCycleSerializer(serializers.Serializer[Any]):
    """The newest cycle, briefly."""

    id = serializers.CharField()
    state = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class BudgetSerializer(serializers.Serializer[Any]):
    """What models used since midnight UTC, recall's embeddings apart, and the caps; null for no cap."""

    tokens_today = serializers.IntegerField()
    daily_token_cap = serializers.IntegerField(allow_null=True)
    cost_usd_today = serializers.FloatField()
    daily_cost_cap_usd = serializers.FloatField(allow_null=True)
    is_cap_reached = serializers.BooleanField(help_text="Consolidation makes no call until midnight UTC.")
    recall_tokens_today = serializers.IntegerField(help_text="Of recall's embeddings, counted apart.")
    daily_recall_token_cap = serializers.IntegerField(help_text="Beyond it recall searches by words alone.")


class PauseSerializer(serializers.Serializer[Any]):
    """Why no cycle starts by itself."""

    reason = serializers.ChoiceField(choices=PauseReason.choices)
    detail = serializers.CharField()
    failures = serializers.IntegerField(help_text="Cycles in a row that got nothing done.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


class ModelsSerializer(serializers.Serializer[Any]):
    """The models in use."""

    llm = serializers.CharField()
    verdicts = serializers.CharField(help_text="Judges pairs of texts.")
    embeddings = serializers.CharField()
    reranker = serializers.CharField(allow_blank=True, help_text="Has the last word on recall's order; blank for none.")
    offline = serializers.BooleanField(help_text="Rules and vectors of the installation itself.")


class BacklogSerializer(serializers.Serializer[Any]):
    """What waits for cycles, and how fast those that ended lately took it away."""

    waiting = serializers.IntegerField(help_text="Episodes that are new, leased or failed.")
    per_minute = serializers.FloatField(
        allow_null=True, help_text="Episodes that cycles took away in a minute of running; null where none did lately."
    )
    done_at = serializers.DateTimeField(
        allow_null=True, help_text="When nothing waits any more, at this pace; null while no cycle is at it."
    )


class WaitingTurnsSerializer(serializers.Serializer[Any]):
    """Turns of conversations that are not read yet."""

    buffered = serializers.IntegerField(help_text="They wait until it is time to read them.")
    leased = serializers.IntegerField(help_text="They are being read, or will be again.")
    dead = serializers.IntegerField(help_text="They could not be read too often, and wait for a person.")
    oldest_at = serializers.DateTimeField(allow_null=True, help_text="When the oldest that waits was stored.")


class RememberingSerializer(serializers.Serializer[Any]):
    """Texts that are to be remembered at once."""

    queued = serializers.IntegerField(help_text="They wait for a model.")
    failed = serializers.IntegerField(help_text="They cost too many workers: left to consolidation, and to a person.")


class GraphSerializer(serializers.Serializer[Any]):
    """What links memories."""

    entities = serializers.IntegerField(help_text="Whom and what they name; above 10,000 an estimate.")
    edges = serializers.IntegerField(help_text="Links between episodes; above 10,000 an estimate.")
    boxes = serializers.IntegerField(help_text="Episodes of one topic, near in time; above 10,000 an estimate.")
    unlinked = serializers.IntegerField(help_text="Episodes that wait to be linked; 10,001 stands for more, too.")


class StatusSerializer(serializers.Serializer[Any]):
    """How a memory stands; a key limited to projects sees its own counts alone."""

    is_believing = serializers.BooleanField(
        help_text="False, by the workspace's choice or the installation's: no cycle runs, recall has episodes alone."
    )
    episodes = serializers.DictField(child=serializers.IntegerField(), help_text="By status.")
    beliefs = serializers.DictField(child=serializers.IntegerField(), help_text="By status.")
    pending_episodes = serializers.IntegerField(help_text="New, leased or failed.")
    pooled_episodes = serializers.IntegerField(help_text="Looked at, and waiting for others like them.")
    held_episodes = serializers.IntegerField(help_text="Of cycles that were undone; they wait for a person.")
    backlog = BacklogSerializer(allow_null=True)
    turns = WaitingTurnsSerializer()
    remembering = RememberingSerializer()
    graph = GraphSerializer(allow_null=True)
    dead_letters = serializers.IntegerField(help_text="Episodes whose work failed too often; they wait for a person.")
    redactions = serializers.DictField(
        child=serializers.IntegerField(), allow_null=True, help_text="Secrets taken out of texts so far, by kind."
    )
    last_cycle = LastCycleSerializer(allow_null=True)
    next_cycle_at = serializers.DateTimeField(allow_null=True)
    pause = PauseSerializer(allow_null=True)
    budget = BudgetSerializer(allow_null=True)
    models = ModelsSerializer()


class StatusView(APIView):
    """How a memory stands."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="read_status", summary="Count memories by status", **documented({200: StatusSerializer}, 422)
    )
    def get(self, request: Request) -> Response:
        read_query(Nothing, request)
        status = read_status(viewer=viewer_from(request), now=timezone.now())
        return Response(StatusSerializer(status).data)
