"""DELETE /memories/{id} and POST /erase: what is forgotten, and what is erased."""

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import LIMITED_KEY, grants, missing_permission, resolve_id, visible_episodes
from memory.answers import changes as answers
from memory.api.requests import (
    MAX_NAME,
    KeyHolder,
    StrictSerializer,
    belief_to_change,
    holder_of,
    read_body,
    read_query,
    viewer_from,
)
from memory.api.responses import MEMORY_NAME, documented
from memory.domain.identity import is_episode_id, is_turn_id, is_whole
from memory.erasure.erase import Erasure, erase_memories, erase_unread_turn, erase_user, erase_workspace
from memory.forgetting import Forgotten, bereft_in_sight, forget_belief, forget_episode
from memory.models import Belief, Episode, Permission
from memory.recall.cards import find_turn

_REASON_LENGTH = 200
_MAX_IDS = 100

_FORGET_EXAMPLES = [
    OpenApiExample(
        "A forgotten episode",
        response_only=True,
        status_codes=["200"],
        value={
            "id": "ep_3f9a1c0b77de",
            "status": "forgotten",
            "beliefs": {"recomputed": 2, "archived": 1},
            "belief_ids": {"recomputed": ["bl_0c4e1f6a92d3", "bl_5d20e7b1c9a4"], "archived": ["bl_5d20e7b1c9a4"]},
            "merged": 0,
            "merged_ids": [],
            "summaries": 1,
            "summary_ids": ["ep_90b1c2d3e4f5"],
        },
    ),
    OpenApiExample(
        "An erased one",
        response_only=True,
        status_codes=["200"],
        value={
            "id": "ep_3f9a1c0b77de",
            "status": "erased",
            "beliefs": {"recomputed": 1, "archived": 0, "erased": 1},
            "belief_ids": {"recomputed": ["bl_0c4e1f6a92d3"], "archived": [], "erased": ["bl_77aa01c4d2e9"]},
            "released": 4,
            "turns": 2,
        },
    ),
]
_ERASE_EXAMPLES = [
    OpenApiExample("A user", request_only=True, value={"user": "mara"}),
    OpenApiExample("Everything", request_only=True, value={"workspace": "the mill"}),
    OpenApiExample(
        "What is gone",
        response_only=True,
        status_codes=["200"],
        value={
            "episodes": 12,
            "beliefs": 1,
            "turns": 30,
            "calls": 9,
            "released": 5,
            "recomputed": 1,
            "archived": 0,
            "belief_ids": {"recomputed": ["bl_0c4e1f6a92d3"], "archived": [], "erased": ["bl_77aa01c4d2e9"]},
        },
    ),
]


class ForgetQuery(StrictSerializer):
    """How a memory goes."""

    reason = serializers.CharField(
        max_length=_REASON_LENGTH, required=False, allow_blank=True, default="", help_text="Kept in the history."
    )
    erase = serializers.BooleanField(default=False, help_text="For good, and with all that models said of it: owners.")


class EraseRequest(StrictSerializer):
    """Whose memories are erased: one user's, or all of the workspace, which is named to be sure."""

    user = serializers.CharField(required=False, max_length=MAX_NAME)
    workspace = serializers.CharField(required=False, max_length=MAX_NAME, help_text="The name of the key's workspace.")

    def validate(self, attrs: dict[str, str]) -> dict[str, str]:
        if len(attrs) != 1:
            raise serializers.ValidationError({"user": ["Name a user, or the workspace."]})
        return attrs


class ForgetView(APIView):
    """A memory that goes."""

    permission_for = {"DELETE": Permission.WRITE}

    @extend_schema(
        operation_id="forget_memory",
        summary="Forget an episode or a belief, or erase it",
        description=(
            "What is forgotten is recalled, listed and shown no more. Beliefs that an episode was evidence of are "
            "computed anew, and archived where no support is left. A belief stays as a tombstone: no cycle puts "
            "what says the same in its place; a curator may state it by hand. A pinned belief is forgotten with "
            "`curate` only. With `erase=true` a key with `owner` erases a memory for good, forgotten ones too: see "
            "`POST /erase`. That takes a whole id. A turn that waits to be read is gone for good either way, and "
            "refused when it comes again."
        ),
        parameters=[MEMORY_NAME, ForgetQuery],
        **documented({200: answers.Forgotten}, 404, 409, 422, examples=_FORGET_EXAMPLES),
    )
    def delete(self, request: Request, memory_id: str) -> Response:
        asked = read_query(ForgetQuery, request)
        if not asked["erase"]:
            whole = resolve_id(name=memory_id, key=holder_of(request).key)
            if is_turn_id(whole):
                return Response(answers.Forgotten.model_validate(_forget_turn(request, whole)))
            return Response(answers.Forgotten.model_validate(_forget(request, whole, asked["reason"])))
        if not is_whole(memory_id):
            raise serializers.ValidationError({"erase": ["Erasing takes a whole id."]})
        return Response(answers.Forgotten.model_validate(_erase(request, memory_id)))


def _forget(request: Request, memory_id: str, reason: str) -> dict[str, Any]:
    holder, viewer = holder_of(request), viewer_from(request)
    told: dict[str, Any] = {"actor": holder.actor, "now": timezone.now(), "reason": reason}
    if is_episode_id(memory_id):
        gone = forget_episode(episode=get_object_or_404(visible_episodes(viewer=viewer), pk=memory_id), **told)
    else:
        gone = _forget_belief(belief_to_change(request, memory_id), holder, told)
    bereft = gone.bereft
    beliefs = {"recomputed": len(bereft.beliefs), "archived": len(bereft.archived)}
    counts = {"merged": len(gone.along.merged), "summaries": len(gone.along.summaries)}
    answer = {"id": memory_id, "status": "forgotten", "beliefs": beliefs, **counts}
    if not grants(key=holder.key, permission=Permission.READ):
        return answer
    seen = bereft_in_sight(bereft=bereft, viewer=viewer)
    belief_ids = _first_ids(recomputed=seen.beliefs, archived=seen.archived)
    along = _first_ids(merged_ids=gone.along.merged, summary_ids=gone.along.summaries)
    return {**answer, "belief_ids": belief_ids, **along}


def _forget_turn(request: Request, memory_id: str) -> dict[str, Any]:
    """Forget a turn that waits to be read: no belief knows of it yet, and no history keeps a reason."""
    turn = find_turn(memory_id=memory_id, viewer=viewer_from(request))
    if turn is None:
        raise Http404
    erase_unread_turn(turn=turn)
    return {"id": memory_id, "status": "forgotten", "beliefs": {"recomputed": 0, "archived": 0}}


def _first_ids(**ids: Collection[str]) -> dict[str, list[str]]:
    return {name: sorted(found)[:_MAX_IDS] for name, found in ids.items()}


def _forget_belief(belief: Belief, holder: KeyHolder, told: dict[str, Any]) -> Forgotten:
    even_pinned = grants(key=holder.key, permission=Permission.CURATE)
    return forget_belief(belief=belief, even_pinned=even_pinned, **told)


def _erase(request: Request, memory_id: str) -> dict[str, Any]:
    holder = holder_of(request)
    if not grants(key=holder.key, permission=Permission.OWNER):
        raise PermissionDenied(missing_permission(Permission.OWNER))
    if holder.key.is_limited:
        raise PermissionDenied(LIMITED_KEY)
    if is_turn_id(memory_id):  # what is forgotten before it was read is gone for good
        return _forget_turn(request, memory_id) | {"status": "erased"}
    is_episode = is_episode_id(memory_id)
    mine: QuerySet[Any] = (Episode if is_episode else Belief).objects.for_workspace(holder.workspace)
    get_object_or_404(mine, pk=memory_id)
    erasure = erase_memories(
        workspace=holder.workspace,
        episodes=Episode.objects.for_workspace(holder.workspace).filter(pk=memory_id),
        beliefs=[] if is_episode else [memory_id],
        actor=holder.actor,
        now=timezone.now(),
    )
    beliefs = {"recomputed": erasure.recomputed, "archived": erasure.archived, "erased": erasure.beliefs}
    answer = {"id": memory_id, "status": "erased", "beliefs": beliefs}
    return answer | {"released": erasure.released, "turns": erasure.turns} | _belief_ids(erasure)


def _belief_ids(erasure: Erasure) -> dict[str, dict[str, list[str]]]:
    ids = erasure.ids
    return {"belief_ids": _first_ids(recomputed=ids.recomputed, archived=ids.archived, erased=ids.erased)}


class EraseView(APIView):
    """Memories that leave no trace."""

    permission_for = {"POST": Permission.OWNER}
    is_for_whole_workspace = True

    @extend_schema(
        operation_id="erase_memories",
        summary="Erase a user's memories, or a workspace's",
        description=(
            "Text, vectors, history, what models said about them, and beliefs that may quote them are gone; what else "
            "such beliefs were made of is consolidated anew. The same words of the same user, and the same turns, are "
            "refused afterwards. Erasing the whole workspace keeps its members, keys and projects, and refuses nothing "
            "afterwards. 409 while a cycle is open."
        ),
        request=EraseRequest,
        **documented({200: answers.Erasure}, 400, 409, 413, 415, 422, examples=_ERASE_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        asked, holder = read_body(EraseRequest, request), holder_of(request)
        workspace, actor = holder.workspace, holder.actor
        if asked.get("workspace", workspace.name) != workspace.name:
            raise serializers.ValidationError({"workspace": ["This is not the name of the key's workspace."]})
        if "workspace" in asked:
            return Response(answers.Erasure.model_validate(erase_workspace(workspace=workspace, actor=actor).counts))
        done = erase_user(workspace=workspace, user=asked["user"], actor=actor, now=timezone.now())
        return Response(answers.Erasure.model_validate(done.counts | _belief_ids(done)))
