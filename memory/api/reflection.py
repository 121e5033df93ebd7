"""All beliefs of a workspace: duplicates, faded ones, meta beliefs, subjects (R7, R13); contradictions (R11)."""

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

from memory.answers.changes import Duplicate, Faded, Proposed, Pruned, Reflection, Subjects
from memory.api.beliefs import BeliefSerializer
from memory.api.requests import EmptyRequest, StrictSerializer, holder_of, read_body, read_query
from memory.api.responses import RoundedField, documented
from memory.facts.contradictions import (
    CheckOutcome,
    believed_candidates,
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.facts.meta_beliefs import META_REASON, make_meta_beliefs
from memory.facts.reflection import backfill_subjects, list_prunable, propose_merges, prune, reflect
from memory.ledger.transactions import Author
from memory.models import ContradictionCandidate, ContradictionState, Permission, Workspace

MAX_LISTED = 1_000
DEFAULT_LISTED = 100
_TABS, _SPACES = "Mara prefers tabs over spaces.", "Mara prefers tabs to spaces."

_DUPLICATE_EXAMPLE = {
    "ids": ["bl_0c4e1f6a92d3", "bl_77aa01c4d2e9"],
    "statements": [_TABS, _SPACES],
    "similarity": 0.9412,
    "passes_guard": True,
}

_REFLECTION_EXAMPLE = {
    "beliefs": 214,
    "duplicate_count": 1,
    "duplicates": [_DUPLICATE_EXAMPLE],
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


def _ok_example(value: dict[str, Any]) -> list[OpenApiExample]:
    return [OpenApiExample("found", response_only=True, status_codes=["200"], value=value)]


class ReflectionQuery(StrictSerializer):
    """How much is told."""

    limit = serializers.IntegerField(
        default=DEFAULT_LISTED,
        min_value=1,
        max_value=MAX_LISTED,
        help_text="Most pairs, and most faded beliefs, that are listed.",
    )


class PruneRequest(StrictSerializer):
    """Whether it is meant."""

    dry_run = serializers.BooleanField(default=False, help_text="Name what would be pruned, and change nothing.")


class MetaRoundSerializer(serializers.Serializer[Any]):
    """Beliefs about groups of beliefs."""

    groups = serializers.IntegerField(help_text="Groups that no belief is about yet, of which a model was asked.")
    made = BeliefSerializer(many=True, help_text="What says no more than a source, or what is known, is not made.")
    unanswered = serializers.CharField(allow_blank=True, help_text="Why not every group had its turn; else empty.")


class ReflectionView(APIView):
    """All active beliefs, looked at."""

    permission_for = {"GET": Permission.READ}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="reflect",
        summary="Look at all beliefs: which may say the same, and which have faded",
        description="Nothing changes by it. All active beliefs are compared with each other: no call for every prompt.",
        parameters=[ReflectionQuery],
        **documented({200: Reflection}, 409, 422, examples=_ok_example(_REFLECTION_EXAMPLE)),
    )
    def get(self, request: Request) -> Response:
        most = read_query(ReflectionQuery, request)["limit"]
        found = reflect(workspace=holder_of(request).workspace, now=timezone.now(), most=most)
        return Response(Reflection.model_validate(found))


class PruneView(APIView):
    """Beliefs that faded, taken out of recall."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="prune_beliefs",
        summary="Prune beliefs of whose confidence less than 0.05 is left",
        description="Never a pinned, published or well evidenced one. A curator can restore what was pruned.",
        request=PruneRequest,
        **documented({200: Pruned}, 400, 413, 415, 422),
    )
    def post(self, request: Request) -> Response:
        is_rehearsal, holder = read_body(PruneRequest, request)["dry_run"], holder_of(request)
        if is_rehearsal:
            pruned = list_prunable(workspace=holder.workspace, now=timezone.now())
        else:
            pruned = prune(workspace=holder.workspace, actor=holder.actor, now=timezone.now())
        return Response(Pruned(pruned=[Faded.model_validate(one) for one in pruned], dry_run=is_rehearsal))


class MergesView(APIView):
    """Duplicates, proposed to a cycle."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="propose_merges",
        summary="Have the next cycle ask whether beliefs that are near enough are one",
        description="Its gate decides, and a model; nothing is merged here. `POST /beliefs/merge` merges two at once.",
        request=EmptyRequest,
        **documented(
            {200: Proposed}, 400, 409, 413, 415, 422, examples=_ok_example({"proposed": [_DUPLICATE_EXAMPLE]})
        ),
    )
    def post(self, request: Request) -> Response:
        read_body(EmptyRequest, request)
        proposed = propose_merges(workspace=holder_of(request).workspace, now=timezone.now())
        return Response(Proposed(proposed=[Duplicate.model_validate(pair) for pair in proposed]))


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
        request=EmptyRequest,
        **documented({200: MetaRoundSerializer}, 400, 409, 413, 415, 422),
    )
    def post(self, request: Request) -> Response:
        read_body(EmptyRequest, request)
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
        request=EmptyRequest,
        **documented(
            {200: Subjects},
            400,
            413,
            415,
            422,
            examples=_ok_example({"subjects": {"bl_0c4e1f6a92d3": "mara"}}),
        ),
    )
    def post(self, request: Request) -> Response:
        read_body(EmptyRequest, request)
        holder = holder_of(request)
        found = backfill_subjects(workspace=holder.workspace, actor=holder.actor, now=timezone.now())
        return Response(Subjects(subjects=found))


# What a curator may say of a pair.
PAIR_ACTIONS: dict[str, Callable[..., int]] = {
    "dismiss": dismiss_contradiction_candidates,
    "reopen": reopen_contradiction_candidates,
}

_PAIR_EXAMPLE = {
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
_PAIRS_EXAMPLE = {"total": 1, "unasked": 0, "pairs": [_PAIR_EXAMPLE]}


class ContradictionQuery(StrictSerializer):
    """Which are listed, and how many."""

    state = serializers.ChoiceField(
        ContradictionState.choices, required=False, help_text="Those in this state, instead of those to look at."
    )
    limit = serializers.IntegerField(default=DEFAULT_LISTED, min_value=1, max_value=MAX_LISTED)


class ContradictionRequest(StrictSerializer):
    """What is to be done about pairs that may contradict each other."""

    check = serializers.BooleanField(
        default=False, help_text="Have a model asked about the pairs that nobody was asked about, within 25 s."
    )
    again = serializers.BooleanField(
        default=False, help_text="With `check`: also about those of which no model could tell."
    )
    limit = serializers.IntegerField(
        default=DEFAULT_LISTED,
        min_value=1,
        max_value=MAX_LISTED,
        help_text="Most pairs to look for, to ask about and to list.",
    )


class SideSerializer(serializers.Serializer[Any]):
    """One of the two."""

    id = serializers.CharField()
    statement = serializers.CharField()


class ContradictionSerializer(serializers.ModelSerializer[ContradictionCandidate]):
    """Two beliefs of one project, user and language that may contradict each other."""

    beliefs = serializers.SerializerMethodField()
    similarity = RoundedField(help_text="On the reference scale, when the pair was found.")
    reason = serializers.CharField(
        source="why", read_only=True, help_text="The model's, or by which rule both cannot hold."
    )

    class Meta:
        model = ContradictionCandidate
        fields = ("id", "beliefs", "similarity", "state", "reason", "checked_at")
        read_only_fields = fields

    @extend_schema_field(SideSerializer(many=True))
    def get_beliefs(self, rival: ContradictionCandidate) -> list[dict[str, str]]:
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
            examples=[OpenApiExample("listed", response_only=True, status_codes=["200"], value=_PAIRS_EXAMPLE)],
        ),
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        asked, workspace = read_query(ContradictionQuery, request), holder_of(request).workspace
        return Response(
            ContradictionListSerializer(_list_contradictions(workspace, asked["limit"], asked.get("state"))).data
        )

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
                    value=_PAIRS_EXAMPLE | {"found": 1, "outcomes": {"contradicts": 1, "compatible": 3}, "stopped": ""},
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
        return Response(ContradictionLookSerializer(_list_contradictions(workspace, most) | told).data)


def _list_contradictions(workspace: Workspace, most: int, state: str | None = None) -> dict[str, Any]:
    rivals = list_contradiction_candidates(workspace=workspace, state=ContradictionState(state) if state else None)
    unasked = believed_candidates(workspace=workspace).only_alike().count()
    return {"total": rivals.count(), "unasked": unasked, "pairs": rivals[:most]}


class ContradictionView(APIView):
    """A curator's word on one pair."""

    permission_for = {"POST": Permission.CURATE}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="settle_contradiction",
        summary="Take a pair off the list, or let the next check ask about it again",
        parameters=[OpenApiParameter("settling", enum=list(PAIR_ACTIONS), location=OpenApiParameter.PATH)],
        request=None,
        **documented({200: ContradictionSerializer}, 400, 404, 413, 415, 422),
    )
    def post(self, request: Request, pair_id: int, settling: str) -> Response:
        read_body(EmptyRequest, request)
        rivals = believed_candidates(workspace=holder_of(request).workspace).filter(pk=pair_id)
        get_object_or_404(rivals)
        PAIR_ACTIONS[settling](rivals=rivals)
        return Response(ContradictionSerializer(get_object_or_404(rivals)).data)  # a belief may have gone meanwhile
