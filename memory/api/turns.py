"""POST /turns: what is said in a conversation, as it is said."""

from typing import Any, Literal

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import BaseModel, Field, RootModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import allowed_projects
from memory.api.authentication import holder_of
from memory.api.bulk import LineError, answer_lines
from memory.api.schema import documented
from memory.domain.signals import Signal
from memory.ingest.buffer import BufferedTurn, buffer_raw_turns
from memory.ingest.schemas import INGEST, IngestContext, TurnLine
from memory.models import Permission


class TurnBatch(BaseModel):
    """Many turns at once, of one conversation or several, in the order in which they were said."""

    turns: list[TurnLine] = Field(max_length=INGEST.bulk_items)


class TurnsBody(RootModel[TurnLine | TurnBatch]):
    """One turn, or many."""


class AcceptedTurn(BaseModel):
    """How strongly a turn asks to be remembered, and how its conversation stands."""

    signal: Signal
    buffered: int = Field(ge=0, description="Turns of the conversation that wait to be read, after this one.")
    extraction: Literal["queued", "none"] = Field(description="queued: what waits is to be read now.")
    deduplicated: Literal[True] | None = Field(
        default=None, description="Given where the conversation had a turn of this turn_id: nothing was added."
    )


class RejectedTurn(BaseModel):
    error: LineError


class TurnsAnswer(BaseModel):
    """One answer for each turn, in their order."""

    turns: list[AcceptedTurn | RejectedTurn]


_EXAMPLES = [
    OpenApiExample(
        "One turn",
        request_only=True,
        value={
            "session": "2026-03-01-morning",
            "role": "user",
            "content": "No, I meant the staging server. Never deploy to production on a Friday.",
            "turn_id": "msg-17",
            "project": "compiler",
        },
    ),
    OpenApiExample(
        "Many turns",
        request_only=True,
        value={
            "turns": [
                {"session": "s-1", "role": "user", "content": "Which port is it?"},
                {"session": "s-1", "role": "assistant", "content": "It listens on 8443."},
                {"session": "s-1", "role": "user", "content": ""},
            ]
        },
    ),
    OpenApiExample(
        "An answer for each",
        response_only=True,
        status_codes=["202"],
        value={
            "turns": [
                {"signal": "none", "buffered": 1, "extraction": "none"},
                {"signal": "none", "buffered": 2, "extraction": "none"},
                {"error": {"index": 2, "status": 422, "detail": "…", "errors": {"content": ["The text is empty."]}}},
            ]
        },
    ),
]


class TurnsView(APIView):
    """Conversations of the caller's workspace."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="accept_turns",
        summary="Take in a turn of a conversation, or many",
        description=(
            "Turns are kept as they were said, without secrets, and buffered by session, user and project. They are "
            "read, and what they tell becomes episodes, when a turn asks for it (a correction, a prohibition, a "
            "decision, …), when enough of them wait, or after a while. A `turn_id` counts once in its conversation: "
            "sent again it adds nothing, and with other content it is a 409. In bulk, bad turns are answered with "
            "their errors while the good ones are kept."
        ),
        request=TurnsBody,
        **documented({202: TurnsAnswer}, 400, 409, 413, 415, 422, examples=_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        holder = holder_of(request)
        arrival = IngestContext(
            workspace=holder.workspace,
            now=timezone.now(),
            allowed_projects=allowed_projects(holder.key),
            actor=holder.actor,
        )
        return answer_lines(
            body=request.data,
            name="turns",
            take=lambda lines: buffer_raw_turns(raw_lines=lines, arrival=arrival),
            as_json=_as_json,
            status=202,
        )


def _as_json(accepted: BufferedTurn) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "signal": accepted.signal,
        "buffered": accepted.buffered,
        "extraction": "queued" if accepted.is_queued else "none",
    }
    return answer | ({"deduplicated": True} if accepted.is_duplicate else {})
