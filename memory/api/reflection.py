"""GET /reflection; POST /reflection/prune, /merges, /meta-beliefs and /subjects: all beliefs looked at (R7, R13)."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.authentication import holder_of
from memory.api.beliefs import BeliefSerializer
from memory.api.requests import Nothing, StrictSerializer, read_body, read_query
from memory.api.rounding import RoundedField
from memory.api.schema import documented
from memory.facts.meta_beliefs import META_REASON, make_meta_beliefs
from memory.facts.reflection import DuplicatePair, backfill_subjects, list_prunable, propose_merges, prune, reflect
from memory.ledger.transactions import Author
from memory.models import Permission

MOST = 1_000
FEW = 100

_TABS, _SPACES = "Mara prefers tabs over spaces.", "Mara prefers tabs to spaces."
_PAIR = {
    "ids": ["bl_0c4e1f6a92d3", "bl_77aa01c4d2e9"],
    "statements": [_TABS, _SPACES],
    "similarity": 0.9412,
    "passes_guard": True,
}
_REFLECTION = {
    "beliefs": 214,
    "duplicate_count": 1,
    "duplicates": [_PAIR],
    "faded_count": 1,
    "faded": [
        {
            "id": "bl_5d20e7b1c9a4",
            "statement": "The printer is on the second floor.",
            "effective_confidence": 0.0412,
            "is_prunable": True,
        }
    ],
}


def _example(value: dict[str, Any]) -> list[OpenApiExample]:
    return [OpenApiExample("found", response_only=True, status_codes=["200"], value=value)]


class ReflectionQuery(StrictSerializer):
    """How much is told."""

    limit = serializers.IntegerField(
        default=FEW, min_value=1, max_value=MOST, help_text="Most pairs, and most faded beliefs, that are listed."
    )


class DuplicateSerializer(serializers.Serializer[Any]):
    """Two beliefs that may say the same."""

    ids = serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2)
    statements = serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2)
    similarity = RoundedField(help_text="On the reference scale, 0 to 1.")
    passes_guard = serializers.BooleanField(
        help_text="Whether they may be merged: a rule (a negation, another order, other numbers or names) tells them "
        "apart otherwise, and they may contradict each other."
    )


class FadedSerializer(serializers.Serializer[Any]):
    """A belief of which nothing was said for long."""

    id = serializers.CharField()
    statement = serializers.CharField()
    effective_confidence = RoundedField(help_text="What time has left of its confidence.")
    is_prunable = serializers.BooleanField(help_text="Whether `POST /reflection/prune` would take it.")


class ReflectionSerializer(serializers.Serializer[Any]):
    """What a look at all active beliefs found."""

    beliefs = serializers.IntegerField(help_text="Active ones, all of which were looked at.")
    duplicate_count = serializers.IntegerField()
    duplicates = DuplicateSerializer(many=True, help_text="The most similar first.")
    faded_count = serializers.IntegerField()
    faded = FadedSerializer(many=True, help_text="Those of which least is left first.")


class PruneRequest(StrictSerializer):
    """Whether it is meant."""

    dry_run = serializers.BooleanField(default=False, help_text="Name what would be pruned, and change nothing.")


class PrunedSerializer(serializers.Serializer[Any]):
    """Beliefs that faded."""

    pruned = FadedSerializer(many=True)
    dry_run = serializers.BooleanField()


class ProposedSerializer(serializers.Serializer[Any]):
    """Pairs that the next cycle's merge gate looks at."""

    proposed = DuplicateSerializer(many=True)


class MetaRoundSerializer(serializers.Serializer[Any]):
    """Beliefs about groups of beliefs."""

    groups = serializers.IntegerField(help_text="Groups that no belief is about yet, of which a model was asked.")
    made = BeliefSerializer(many=True, help_text="What says no more than a source, or what is known, is not made.")
    unanswered = serializers.CharField(allow_blank=True, help_text="Why not every group had its turn; else empty.")


class SubjectsSerializer(serializers.Serializer[Any]):
    """Subjects that were filled in."""

    subjects = serializers.DictField(child=serializers.CharField(), help_text="By belief.")


class ReflectionView(APIView):
    """All active beliefs, looked at."""

    permission_for = {"GET": Permission.READ}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="reflect",
        summary="Look at all beliefs: which may say the same, and which have faded",
        description="Nothing changes by it. All active beliefs are compared with each other: no call for every prompt.",
        parameters=[ReflectionQuery],
        **documented({200: ReflectionSerializer}, 409, 422, examples=_example(_REFLECTION)),
    )
    def get(self, request: Request) -> Response:
        most = read_query(ReflectionQuery, request)["limit"]
        found = reflect(workspace=holder_of(request).workspace, now=timezone.now(), most=most)
        return Response(ReflectionSerializer(found).data)


class PruneView(APIView):
    """Beliefs that faded, taken out of recall."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="prune_beliefs",
        summary="Prune beliefs of whose confidence less than 0.05 is left",
        description="Never a pinned, published or well evidenced one. A curator can restore what was pruned.",
        request=PruneRequest,
        **documented({200: PrunedSerializer}, 400, 413, 415, 422),
    )
    def post(self, request: Request) -> Response:
        is_rehearsal, holder = read_body(PruneRequest, request)["dry_run"], holder_of(request)
        if is_rehearsal:
            pruned = list_prunable(workspace=holder.workspace, now=timezone.now())
        else:
            pruned = prune(workspace=holder.workspace, actor=holder.actor, now=timezone.now())
        return Response(PrunedSerializer({"pruned": pruned, "dry_run": is_rehearsal}).data)


class MergesView(APIView):
    """Duplicates, proposed to a cycle."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="propose_merges",
        summary="Have the next cycle ask whether beliefs that are near enough are one",
        description="Its gate decides, and a model; nothing is merged here. `POST /beliefs/merge` merges two at once.",
        request=Nothing,
        **documented({200: ProposedSerializer}, 400, 409, 413, 415, 422, examples=_example({"proposed": [_PAIR]})),
    )
    def post(self, request: Request) -> Response:
        read_body(Nothing, request)
        proposed: list[DuplicatePair] = propose_merges(workspace=holder_of(request).workspace, now=timezone.now())
        return Response({"proposed": DuplicateSerializer([asdict(pair) for pair in proposed], many=True).data})


class MetaBeliefsView(APIView):
    """Beliefs about groups of beliefs."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="make_meta_beliefs",
        summary="Have a model say what the largest groups of like beliefs come down to",
        description=(
            "Five groups at most are asked about at once, within 25 s; what comes of them is believed on the united "
            "evidence of all. A group that a belief is about already is left alone; rules make none. Called again it "
            "goes on with the groups that got no answer."
        ),
        request=Nothing,
        **documented({200: MetaRoundSerializer}, 400, 409, 413, 415, 422),
    )
    def post(self, request: Request) -> Response:
        read_body(Nothing, request)
        holder = holder_of(request)
        author = Author(actor=holder.actor, reason=META_REASON, now=timezone.now())
        return Response(MetaRoundSerializer(make_meta_beliefs(workspace=holder.workspace, author=author)).data)


class SubjectsView(APIView):
    """Subjects of beliefs that have none."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="backfill_subjects",
        summary="Give beliefs without a subject the one that their statement names",
        description="By rules; done again it finds nothing to do.",
        request=Nothing,
        **documented(
            {200: SubjectsSerializer}, 400, 413, 415, 422, examples=_example({"subjects": {"bl_0c4e1f6a92d3": "mara"}})
        ),
    )
    def post(self, request: Request) -> Response:
        read_body(Nothing, request)
        holder = holder_of(request)
        found = backfill_subjects(workspace=holder.workspace, actor=holder.actor, now=timezone.now())
        return Response({"subjects": found})
