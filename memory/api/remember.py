"""POST /remember: a text becomes beliefs at once (R1)."""

from typing import Any, Literal

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from memory.access import allowed_projects
from memory.api.authentication import holder_of
from memory.api.problems import CONTENT_TYPE, problem, without_secrets
from memory.api.requests import sendable
from memory.api.schema import documented
from memory.domain.ids import IdKind, id_pattern
from memory.facts.remember import Remembered, remember
from memory.ingest.schemas import IngestContext, Name, Rejected, Slug, Time
from memory.models import Permission

_ACTIONS = Literal["created", "reinforced", "weakened", "superseded"]


class RememberRequest(BaseModel):
    """A text to be remembered. All but the text may be left out, or null."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="What is to be remembered, up to 32 KiB.")
    project: Slug | None = None
    user: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    speaker: Name | None = Field(default=None, description="Who says it; else it is told of the memory's owner.")
    source: Literal["human", "ai", "interaction", "ingest"] | None = None
    occurred_at: Time | None = Field(default=None, description="When it was said, with an offset; now if left out.")
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=200)


class BeliefActionAnswer(BaseModel):
    """What the text did to one belief."""

    id: str = Field(pattern=f"^{id_pattern(IdKind.BELIEF)}$")
    action: _ACTIONS


class RememberAnswer(BaseModel):
    """The episode that stands for the text, and what it did to beliefs by now."""

    episode_id: str = Field(pattern=f"^{id_pattern(IdKind.EPISODE)}$")
    state: Literal["done", "queued"] = Field(description="queued: beliefs follow as soon as a model answers.")
    reason: str | None = Field(
        default=None, description="Given where something stands in the beliefs' way: a model that is too slow, say."
    )
    beliefs: list[BeliefActionAnswer]
    deduplicated: bool = Field(description="The same words, or the same idempotency key, were sent before.")
    forgotten: Literal[True] | None = Field(
        default=None, description="Given where these words were forgotten: nothing was stored, and nothing follows."
    )


_EXAMPLES = [
    OpenApiExample(
        "A change of mind",
        request_only=True,
        value={"text": "Mara prefers spaces over tabs now.", "project": "compiler", "user": "mara"},
    ),
    OpenApiExample(
        "What came of it",
        response_only=True,
        status_codes=["201"],
        value={
            "episode_id": "ep_3f9a1c0b77de",
            "state": "done",
            "beliefs": [
                {"id": "bl_77aa01c4d2e9", "action": "created"},
                {"id": "bl_0c4e1f6a92d3", "action": "weakened"},
            ],
            "deduplicated": False,
        },
    ),
]


class RememberView(APIView):
    """A text that becomes beliefs at once."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="remember",
        summary="Remember a text: its facts meet what is believed at once",
        description=(
            "The text is stored as an episode before anything else. Then up to three facts are taken from it: each "
            "bears out a belief that says the same, weakens or supersedes one that it contradicts, and else is a "
            "belief of its own. Without a model to ask now, the answer says queued, and beliefs follow; the same call "
            "again tells how far it has come, and changes nothing more."
        ),
        request=RememberRequest,
        **documented({201: RememberAnswer}, 400, 409, 413, 415, 422, examples=_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        holder = holder_of(request)
        arrival = IngestContext(
            workspace=holder.workspace,
            now=timezone.now(),
            allowed_projects=allowed_projects(holder.key),
            actor=holder.actor,
        )
        outcome = remember(line=_checked(request.data), arrival=arrival)
        if isinstance(outcome, Rejected):
            return _refusal(outcome)
        return Response(as_json(outcome), status=201)


def _checked(body: object) -> dict[str, object]:
    """Return the body if it holds nothing but what can be said here; the episode's own door checks the values."""
    if not isinstance(body, dict):
        raise serializers.ValidationError({api_settings.NON_FIELD_ERRORS_KEY: ["A JSON object is expected."]})
    if unknown := sorted(set(body) - set(RememberRequest.model_fields)):
        raise serializers.ValidationError({sendable(name): ["There is no such field."] for name in unknown})
    return dict(body)


def as_json(remembered: Remembered) -> dict[str, Any]:
    """Return the answer as it is sent."""
    answer: dict[str, Any] = {
        "episode_id": remembered.episode_id,
        "state": remembered.state,
        "beliefs": [{"id": one.id, "action": one.action} for one in remembered.beliefs],
        "deduplicated": remembered.is_duplicate,
    }
    why = {"reason": remembered.reason} if remembered.reason else {}
    return answer | why | ({"forgotten": True} if remembered.is_forgotten else {})


def _refusal(rejected: Rejected) -> Response:
    members = {"errors": rejected.errors} if rejected.errors else {}
    body = without_secrets(problem(status=rejected.status, detail=rejected.detail, **members))
    return Response(body, status=rejected.status, content_type=CONTENT_TYPE)
