"""GET /memories/{id}/claims: what an episode asserts, and what became of it (E1)."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import Viewer, visible_beliefs, visible_episodes
from memory.api.requests import Nothing, read_query, viewer_from
from memory.api.rounding import RoundedField
from memory.api.schema import CLAIM_MODES, TIERS, documented
from memory.domain.ids import is_episode_id
from memory.models import Claim, Permission
from memory.recall.cards import MemoryClaims, read_claims_of_belief, read_claims_of_episode


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


_EXAMPLE = OpenApiExample(
    "An episode",
    response_only=True,
    status_codes=["200"],
    value={
        "id": "ep_3f9a1c0b77de", "read_at": "2026-03-01T12:00:00Z",
        "claims": [
            {
                "episode": "ep_3f9a1c0b77de", "number": 1, "sentence": "Mara's editor indents with tabs.",
                "subject": "Mara's editor", "slot": "", "value": "", "context": "general", "mode": "asserted",
                "kind": "possession", "confidence": 0.7, "tier": "implied", "is_told": True, "is_whole": False,
                "is_denial": False, "ended": [], "holds_from": None, "holds_until": None,
                "words": "My editor indents with tabs.", "language": "en", "reader": "rules-1",
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
        **documented({200: MemoryClaimsSerializer}, 404, 422, examples=[_EXAMPLE]),
    )
    def get(self, request: Request, memory_id: str) -> Response:
        read_query(Nothing, request)
        viewer = viewer_from(request)
        read = _of_episode if is_episode_id(memory_id) else _of_belief
        return Response(_shown(read(memory_id, viewer)))


def _of_episode(memory_id: str, viewer: Viewer) -> MemoryClaims:
    episode = get_object_or_404(visible_episodes(viewer=viewer).defer("search"), pk=memory_id)
    return read_claims_of_episode(episode=episode, viewer=viewer)


def _of_belief(memory_id: str, viewer: Viewer) -> MemoryClaims:
    belief = get_object_or_404(visible_beliefs(viewer=viewer).defer("search"), pk=memory_id)
    return read_claims_of_belief(belief=belief, viewer=viewer)


def _shown(found: MemoryClaims) -> dict[str, Any]:
    claims = [
        {**ClaimSerializer(shown.claim).data, "beliefs": ClaimedBeliefSerializer(shown.beliefs, many=True).data}
        for shown in found.claims
    ]
    return {"id": found.id, "read_at": found.read_at, "claims": claims, "other_claims": found.other_claims}
