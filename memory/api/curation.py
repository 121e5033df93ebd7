"""POST /beliefs/{id}/pin, /unpin, /archive, /challenge and /restore."""

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.authentication import holder_of
from memory.api.beliefs import BeliefSerializer
from memory.api.requests import StrictSerializer, belief_to_change, read_body
from memory.api.schema import documented
from memory.consolidation.curating import Act, curate_belief
from memory.models import Permission

# Forgetting is for whoever may forget a memory of any kind, by another address.
ACTS = (Act.PIN, Act.UNPIN, Act.ARCHIVE, Act.CHALLENGE, Act.RESTORE)
REASON_LENGTH = 200


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
            belief_id=belief_to_change(request, belief_id).pk, act=Act(act), reason=asked["reason"],
            actor=holder_of(request).actor, now=timezone.now(),
        )  # fmt: skip
        return Response(BeliefSerializer(belief).data)
