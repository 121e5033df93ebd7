"""What a curator does to beliefs: state, merge, split, correct, pin, unpin, archive, challenge, restore."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import changeable_beliefs
from memory.api.beliefs import BeliefListView, BeliefSerializer
from memory.api.requests import StrictSerializer, belief_to_change, holder_of, read_body, viewer_from
from memory.api.responses import documented
from memory.consolidation.curation import (
    BeliefText,
    SplitPart,
    embed_statements,
    merge_beliefs,
    split_belief,
    state_belief,
)
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.proposals import order_by_evidence
from memory.domain.evidence import Verdict
from memory.domain.identity import IdKind, id_pattern
from memory.ingest.corrections import correct_belief
from memory.ledger.transactions import Author, NotFound
from memory.models import FactType, Permission
from memory.models.beliefs import EVIDENCE_VERDICTS, Timeframe

_STATEMENT_LENGTH = 1000
_MOST_EVIDENCE = 1000
_MOST_PARTS = 5


def _reason() -> serializers.CharField:
    return serializers.CharField(max_length=REASON_LENGTH, help_text="Kept in the history of every belief it changes.")


class WordingSerializer(StrictSerializer):
    """What a belief says."""

    statement = serializers.CharField(max_length=_STATEMENT_LENGTH, help_text="One short sentence that can be wrong.")
    subject = serializers.CharField(max_length=200, required=False, help_text="Whom or what it is about.")
    predicate = serializers.CharField(max_length=400, required=False)
    context = serializers.CharField(  # type: ignore[assignment]  # declared fields leave the class, which has its own
        max_length=400, required=False, help_text="When it holds; general if always."
    )
    timeframe = serializers.ChoiceField(Timeframe.choices, required=False)


class TestimonySerializer(StrictSerializer):
    """An episode, and what it says of the belief."""

    episode = serializers.RegexField(f"^{id_pattern(IdKind.EPISODE)}$")
    verdict = serializers.ChoiceField([(v.value, v.value) for v in EVIDENCE_VERDICTS], default=Verdict.SUPPORTS.value)


def evidence_field() -> serializers.ListField:
    """Declare a list of episodes with their verdicts."""
    return serializers.ListField(
        child=TestimonySerializer(), allow_empty=False, max_length=_MOST_EVIDENCE,
        help_text="Each episode once; one at least supports.",
    )  # fmt: skip


def check_evidence(given: Sequence[dict[str, str]]) -> None:
    """Refuse evidence that names an episode twice, or of which nothing supports."""
    if len({item["episode"] for item in given}) < len(given):
        raise serializers.ValidationError({"evidence": ["An episode is named twice."]})
    if not any(item["verdict"] == Verdict.SUPPORTS for item in given):
        raise serializers.ValidationError({"evidence": ["At least one episode must support it."]})


REASON_LENGTH = 200


class BeliefRequest(WordingSerializer):
    """A belief in a curator's words; its project and user follow from its evidence."""

    fact_type = serializers.ChoiceField(FactType.choices, default=FactType.FACTUAL.value)
    importance = serializers.IntegerField(min_value=1, max_value=10, default=5)
    evidence = evidence_field()
    reason = serializers.CharField(max_length=REASON_LENGTH, default="stated by a curator")

    def validate(self, attrs: Any) -> Any:
        check_evidence(attrs["evidence"])
        return attrs


class MergeRequest(StrictSerializer):
    """Two beliefs that say the same."""

    beliefs = serializers.ListField(
        child=serializers.RegexField(f"^{id_pattern(IdKind.BELIEF)}$"), min_length=2, max_length=2, help_text="Two ids."
    )
    statement = serializers.CharField(
        max_length=_STATEMENT_LENGTH, required=False, help_text="Else the better evidenced one's."
    )
    reason = _reason()

    def validate_beliefs(self, ids: list[str]) -> list[str]:
        if len(set(ids)) < len(ids):
            raise serializers.ValidationError("Two different beliefs are expected.")
        return ids


class PartSerializer(WordingSerializer):
    """One of the beliefs that another is split into."""

    evidence = evidence_field()

    def validate(self, attrs: Any) -> Any:
        check_evidence(attrs["evidence"])
        return attrs


class SplitRequest(StrictSerializer):
    """What a belief is split into."""

    parts = serializers.ListField(child=PartSerializer(), min_length=2, max_length=_MOST_PARTS)
    reason = _reason()

    def validate_parts(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len({part["statement"].casefold() for part in parts}) < len(parts):
            raise serializers.ValidationError("Two parts say the same.")
        return parts


class CorrectionRequest(StrictSerializer):
    """What is wrong about a belief, and, with a statement, what is right instead."""

    reason = _reason()
    statement = serializers.CharField(max_length=_STATEMENT_LENGTH, required=False)
    subject = serializers.CharField(max_length=200, required=False)
    context = serializers.CharField(max_length=400, required=False)  # type: ignore[assignment]  # as above
    timeframe = serializers.ChoiceField(Timeframe.choices, required=False)

    def validate(self, attrs: Any) -> Any:
        if "statement" not in attrs and attrs.keys() - {"reason"}:
            raise serializers.ValidationError({"statement": ["What is right instead is expected with these."]})
        return attrs


class ReshapedSerializer(serializers.Serializer[Any]):
    """What came of it."""

    made = BeliefSerializer(many=True, help_text="New beliefs.")
    changed = BeliefSerializer(many=True, help_text="Older ones, as they stand now.")


def author_of(request: Request, asked: dict[str, Any]) -> Author:
    """Return the caller as author, now, for the reason given."""
    return Author(actor=holder_of(request).actor, reason=asked["reason"], now=timezone.now())


def wording_of(asked: dict[str, Any]) -> BeliefText:
    """Return what was said, without what was left out."""
    timeframe = asked.get("timeframe")
    return BeliefText(
        statement=asked["statement"],
        subject=asked.get("subject"),
        predicate=asked.get("predicate"),
        context=asked.get("context"),
        timeframe=Timeframe(timeframe) if timeframe else None,
    )


def verdicts_of(evidence: Sequence[dict[str, str]]) -> dict[str, Verdict]:
    """Return verdicts by episode."""
    return {item["episode"]: Verdict(item["verdict"]) for item in evidence}


class BeliefsView(BeliefListView):
    """The beliefs of a workspace, and a new one by hand."""

    permission_for = {"GET": Permission.READ, "POST": Permission.CURATE}

    @extend_schema(
        operation_id="found_belief",
        summary="State a belief with its evidence; no model is asked",
        request=BeliefRequest,
        **documented(
            {201: BeliefSerializer}, 400, 409, 413, 415, 422, 503,
            examples=[
                OpenApiExample(
                    "belief",
                    request_only=True,
                    value={
                        "statement": "Mara prefers tabs over spaces.",
                        "subject": "Mara",
                        "fact_type": "preference",
                        "evidence": [
                            {"episode": "ep_3f9a1c0b77de"},
                            {"episode": "ep_77d0a2c4e5f1", "verdict": "CONTRADICTS"},
                        ],
                    },
                )
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(BeliefRequest, request)
        wording = wording_of(asked)
        [vector] = embed_statements(workspace_id=holder_of(request).workspace.pk, statements=[wording.statement])
        belief = state_belief(
            wording=wording,
            vector=vector,
            verdicts=verdicts_of(asked["evidence"]),
            viewer=viewer_from(request),
            author=author_of(request, asked),
            fact_type=FactType(asked["fact_type"]),
            importance=asked["importance"],
        )
        return Response(BeliefSerializer(belief).data, status=201)


class MergeView(APIView):
    """Two beliefs become one."""

    permission_for = {"POST": Permission.CURATE}

    @extend_schema(
        operation_id="merge_beliefs",
        summary="Merge two beliefs that say the same; their evidence is united",
        request=MergeRequest,
        **documented({200: ReshapedSerializer}, 400, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request) -> Response:
        asked = read_body(MergeRequest, request)
        beliefs = changeable_beliefs(viewer=viewer_from(request), ids=asked["beliefs"])
        if missing := [key for key in asked["beliefs"] if key not in beliefs]:
            raise NotFound(f"There is no belief {missing[0]} that this key may see.")
        one, other = (beliefs[key] for key in asked["beliefs"])
        wording = BeliefText(statement=asked.get("statement") or order_by_evidence(one, other)[0].statement)
        [vector] = embed_statements(workspace_id=one.workspace_id, statements=[wording.statement])
        reshaped = merge_beliefs(
            ids=tuple(asked["beliefs"]), wording=wording, vector=vector, author=author_of(request, asked)
        )
        return Response(ReshapedSerializer(reshaped).data)


class SplitView(APIView):
    """One belief becomes several."""

    permission_for = {"POST": Permission.CURATE}

    @extend_schema(
        operation_id="split_belief",
        summary="Split a belief; the curator says which of its evidence bears out which part",
        request=SplitRequest,
        **documented({200: ReshapedSerializer}, 400, 404, 409, 413, 415, 422, 503),
    )
    def post(self, request: Request, belief_id: str) -> Response:
        asked = read_body(SplitRequest, request)
        belief = belief_to_change(request, belief_id)
        wordings = [wording_of(part) for part in asked["parts"]]
        vectors = embed_statements(workspace_id=belief.workspace_id, statements=[one.statement for one in wordings])
        parts = [
            SplitPart(wording=wording, vector=vector, verdicts=verdicts_of(part["evidence"]))
            for wording, vector, part in zip(wordings, vectors, asked["parts"], strict=True)
        ]
        reshaped = split_belief(belief_id=belief.pk, parts=parts, author=author_of(request, asked))
        return Response(ReshapedSerializer(reshaped).data)


class CorrectionView(APIView):
    """A curator's word against a belief."""

    permission_for = {"POST": Permission.CURATE}

    @extend_schema(
        operation_id="correct_belief",
        summary="Say that a belief is wrong, and, if you know, what is right instead",
        description=(
            "What is said is stored as an episode and weighs five times as much as another. Without a statement the "
            "belief only loses confidence; with one the new statement takes its place."
        ),
        request=CorrectionRequest,
        **documented(
            {200: ReshapedSerializer}, 400, 404, 409, 413, 415, 422, 503,
            examples=[
                OpenApiExample("wrong", request_only=True, value={"reason": "the mill was closed in May"}),
                OpenApiExample(
                    "right instead",
                    request_only=True,
                    value={"reason": "she told me so", "statement": "Mara prefers spaces over tabs."},
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request, belief_id: str) -> Response:
        asked = read_body(CorrectionRequest, request)
        belief = belief_to_change(request, belief_id)
        wording = wording_of(asked) if "statement" in asked else None
        reshaped = correct_belief(belief=belief, wording=wording, author=author_of(request, asked))
        return Response(ReshapedSerializer(reshaped).data)


# Forgetting is for whoever may forget a memory of any kind, by another address.
ACTS = (CuratorAction.PIN, CuratorAction.UNPIN, CuratorAction.ARCHIVE, CuratorAction.CHALLENGE, CuratorAction.RESTORE)


class CurationRequest(StrictSerializer):
    """Why something is done to a belief."""

    reason = serializers.CharField(max_length=REASON_LENGTH, help_text="Kept in the belief's history.")


class CurationView(APIView):
    """A curator's hand on one belief."""

    permission_for = {"POST": Permission.CURATE}

    @extend_schema(
        operation_id="curate_belief",
        summary="Pin, unpin, archive, challenge or restore a belief",
        parameters=[OpenApiParameter("act", enum=[act.value for act in ACTS], location=OpenApiParameter.PATH)],
        request=CurationRequest,
        **documented({200: BeliefSerializer}, 400, 404, 409, 413, 415, 422),
    )
    def post(self, request: Request, belief_id: str, act: str) -> Response:
        asked = read_body(CurationRequest, request)
        belief = curate_belief(
            belief_id=belief_to_change(request, belief_id).pk, act=CuratorAction(act), reason=asked["reason"],
            actor=holder_of(request).actor, now=timezone.now(),
        )  # fmt: skip
        return Response(BeliefSerializer(belief).data)
