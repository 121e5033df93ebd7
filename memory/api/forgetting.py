"""DELETE /memories/{id}: forget an episode or a belief."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access.keys import grants
from memory.access.visibility import visible_beliefs, visible_episodes
from memory.api.authentication import holder_of
from memory.api.requests import StrictSerializer, read_query, viewer_from
from memory.api.schema import documented
from memory.forgetting.forget import Forgotten, PinnedBelief, forget_belief, forget_episode
from memory.models import Permission

_REASON_LENGTH = 200
_EPISODES = "ep_"

_EXAMPLE = OpenApiExample(
    "A forgotten episode",
    response_only=True,
    status_codes=["200"],
    value={"id": "ep_3f9a1c0b77de", "status": "forgotten", "beliefs": {"recomputed": 2, "archived": 1}},
)


class ForgetQuery(StrictSerializer):
    """How a memory goes."""

    reason = serializers.CharField(
        max_length=_REASON_LENGTH, required=False, allow_blank=True, default="", help_text="Kept in the history."
    )


class BereftSerializer(serializers.Serializer[Any]):
    """What it meant for beliefs."""

    recomputed = serializers.IntegerField(help_text="Beliefs that it was evidence of.")
    archived = serializers.IntegerField(help_text="Those among them that have no support any more.")


class ForgottenSerializer(serializers.Serializer[Any]):
    """A memory that is gone."""

    id = serializers.CharField()
    status = serializers.ChoiceField(["forgotten"])
    beliefs = BereftSerializer()


class ForgetView(APIView):
    """A memory that goes."""

    permission_for = {"DELETE": Permission.WRITE}

    @extend_schema(
        operation_id="forget_memory",
        summary="Forget an episode or a belief",
        description=(
            "It is recalled, listed and shown no more. Beliefs that an episode was evidence of are computed anew, and "
            "archived where no support is left. A belief stays as a tombstone: nothing that says the same comes in its "
            "place. A pinned belief is forgotten with `curate` only."
        ),
        parameters=[ForgetQuery],
        **documented({200: ForgottenSerializer}, 404, 422, examples=[_EXAMPLE]),
    )
    def delete(self, request: Request, memory_id: str) -> Response:
        asked = read_query(ForgetQuery, request)
        forgotten = _forget(request, memory_id, asked["reason"])
        return Response(
            {
                "id": forgotten.id,
                "status": "forgotten",
                "beliefs": {
                    "recomputed": len(forgotten.bereft.beliefs), "archived": len(forgotten.bereft.archived)
                },
            }
        )  # fmt: skip


def _forget(request: Request, memory_id: str, reason: str) -> Forgotten:
    holder, viewer, now = holder_of(request), viewer_from(request), timezone.now()
    if memory_id.startswith(_EPISODES):
        episode = get_object_or_404(visible_episodes(viewer=viewer), pk=memory_id)
        return forget_episode(episode=episode, actor=holder.actor, now=now, reason=reason)
    belief = get_object_or_404(visible_beliefs(viewer=viewer), pk=memory_id)
    may_curate = grants(key=holder.key, permission=Permission.CURATE)
    try:
        return forget_belief(belief=belief, actor=holder.actor, now=now, reason=reason, even_pinned=may_curate)
    except PinnedBelief as pinned:
        raise PermissionDenied(str(pinned)) from None
