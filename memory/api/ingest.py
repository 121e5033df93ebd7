"""POST /episodes, /turns and /remember: one line or many come in, and each is answered for itself."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import BaseModel, ConfigDict, Field, RootModel
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from memory.answers.base import Answer
from memory.answers.changes import (
    AcceptedTurn,
    BeliefActionAnswer,
    EpisodesAnswer,
    RememberAnswer,
    StoredEpisode,
    TurnsAnswer,
)
from memory.api.memories import EpisodeListView
from memory.api.requests import holder_of, replace_surrogates
from memory.api.responses import CONTENT_TYPE, documented, problem, without_secrets
from memory.facts.remember import Remembered, remember
from memory.ingest.buffer import BufferedTurn, buffer_raw_turns
from memory.ingest.schemas import INGEST, EpisodeLine, IngestContext, Name, Rejected, Slug, Stored, Time, TurnLine
from memory.ingest.store import store_raw_episodes
from memory.models import Permission

_EPISODES = "episodes"


class EpisodeBatch(BaseModel):
    """Many episodes at once; each is answered for itself."""

    episodes: list[EpisodeLine] = Field(max_length=INGEST.bulk_items)


class EpisodesBody(RootModel[EpisodeLine | EpisodeBatch]):
    """One episode, or many."""


_EPISODE_EXAMPLES = [
    OpenApiExample(
        "One episode",
        request_only=True,
        value={
            "text": "Mara: I'd rather have tabs than spaces.",
            "project": "compiler",
            "session": "2026-03-01-morning",
            "source": "human",
            "occurred_at": "2026-03-01T09:30:00Z",
        },
    ),
    OpenApiExample(
        "Many episodes",
        request_only=True,
        value={"episodes": [{"text": "The build runs in four minutes."}, {"text": "Not for long."}, {"text": ""}]},
    ),
    OpenApiExample(
        "An answer for each",
        response_only=True,
        status_codes=["201"],
        value={
            "episodes": [
                {"id": "ep_3f9a1c0b77de", "deduplicated": False},
                {"id": "ep_91d0c2a4be57", "deduplicated": True, "forgotten": True},
                {"error": {"index": 2, "status": 422, "detail": "…", "errors": {"text": ["The text is empty."]}}},
            ]
        },
    ),
]


class EpisodesView(EpisodeListView):
    """Episodes of the caller's workspace."""

    permission_for = {"GET": Permission.READ, "POST": Permission.WRITE}

    @extend_schema(
        operation_id="store_episodes",
        summary="Store one episode, or many",
        description=(
            "A line without `episodes` is one episode: if it is bad, the answer is the problem. In bulk, bad lines are "
            "answered with their errors while the good ones are kept; if every line is bad, the answer is a problem "
            "whose member `episodes` has the errors. Words that were forgotten are answered with the forgotten "
            "episode's id and `forgotten`, and stay forgotten; words that were erased are a 409."
        ),
        request=EpisodesBody,
        **documented({201: EpisodesAnswer}, 400, 409, 413, 415, 422, examples=_EPISODE_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        arrival = IngestContext.of_key(key=holder_of(request).key, now=timezone.now())
        return answer_lines(
            body=request.data,
            name=_EPISODES,
            take=lambda lines: store_raw_episodes(raw_lines=lines, arrival=arrival),
            as_answer=_stored_answer,
            whole=EpisodesAnswer,
            status=201,
        )


def _stored_answer(outcome: Stored) -> StoredEpisode:
    return StoredEpisode(
        id=outcome.id, deduplicated=outcome.is_duplicate, forgotten=True if outcome.is_forgotten else None
    )


class TurnBatch(BaseModel):
    """Many turns at once, of one conversation or several, in the order in which they were said."""

    turns: list[TurnLine] = Field(max_length=INGEST.bulk_items)


class TurnsBody(RootModel[TurnLine | TurnBatch]):
    """One turn, or many."""


_TURN_EXAMPLES = [
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
        **documented({202: TurnsAnswer}, 400, 409, 413, 415, 422, examples=_TURN_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        arrival = IngestContext.of_key(key=holder_of(request).key, now=timezone.now())
        return answer_lines(
            body=request.data,
            name="turns",
            take=lambda lines: buffer_raw_turns(raw_lines=lines, arrival=arrival),
            as_answer=_accepted_answer,
            whole=TurnsAnswer,
            status=202,
        )


def _accepted_answer(accepted: BufferedTurn) -> AcceptedTurn:
    return AcceptedTurn(
        signal=accepted.signal,
        buffered=accepted.buffered,
        extraction="queued" if accepted.is_queued else "none",
        deduplicated=True if accepted.is_duplicate else None,
    )


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


_REMEMBER_EXAMPLES = [
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
        **documented({201: RememberAnswer}, 400, 409, 413, 415, 422, examples=_REMEMBER_EXAMPLES),
    )
    def post(self, request: Request) -> Response:
        arrival = IngestContext.of_key(key=holder_of(request).key, now=timezone.now())
        outcome = remember(line=_refuse_unknown_fields(request.data), arrival=arrival)
        if isinstance(outcome, Rejected):
            return _problem_answer(status=outcome.status, detail=outcome.detail, **_errors_member(outcome))
        return Response(_remembered_answer(outcome), status=201)


def _refuse_unknown_fields(body: object) -> dict[str, object]:
    """Return the body if it holds nothing but what can be said here; the episode's own door checks the values."""
    if not isinstance(body, dict):
        raise serializers.ValidationError({api_settings.NON_FIELD_ERRORS_KEY: ["A JSON object is expected."]})
    if unknown := sorted(set(body) - set(RememberRequest.model_fields)):
        raise serializers.ValidationError({replace_surrogates(name): ["There is no such field."] for name in unknown})
    return dict(body)


def _remembered_answer(remembered: Remembered) -> RememberAnswer:
    return RememberAnswer(
        episode_id=remembered.episode_id,
        state=remembered.state,
        reason=remembered.reason or None,
        beliefs=[BeliefActionAnswer.model_validate(one) for one in remembered.beliefs],
        deduplicated=remembered.is_duplicate,
        forgotten=True if remembered.is_forgotten else None,
    )


def answer_lines(
    *,
    body: object,
    name: str,
    take: Callable[[Sequence[object]], Sequence[Any]],
    as_answer: Callable[[Any], Answer],
    whole: type[EpisodesAnswer | TurnsAnswer],
    status: int,
) -> Response:
    """Take one line, or those under the name of a batch, and answer with this status; a single bad one is a problem."""
    if not isinstance(body, dict) or name not in body:
        outcome = take([body])[0]
        if isinstance(outcome, Rejected):
            return _problem_answer(status=outcome.status, detail=outcome.detail, **_errors_member(outcome))
        return Response(whole.model_validate({name: [as_answer(outcome)]}), status=status)
    if refusal := _refuse_batch(body, name):
        return refusal
    outcomes = take(body[name])
    answers = [_line_answer(index, outcome, as_answer) for index, outcome in enumerate(outcomes)]
    told = whole.model_validate({name: answers})
    return _refuse_all(outcomes, name, told) or Response(told, status=status)


def _refuse_batch(body: dict[str, Any], name: str) -> Response | None:
    """Refuse a batch that is none as a whole."""
    lines, errors = body[name], {}
    if not isinstance(lines, list):
        errors[name] = ["A list is expected."]
    elif len(lines) > INGEST.bulk_items:
        errors[name] = [f"At most {INGEST.bulk_items} {name} fit into one request."]
    if len(body) > 1:
        errors["line"] = [f"Beside `{name}` there is no other field."]
    return _problem_answer(status=422, detail="The batch is not valid.", errors=errors) if errors else None


def _refuse_all(outcomes: Sequence[Any], name: str, told: Answer) -> Response | None:
    """Answer a batch of which nothing was stored with a problem, of its lines' common status if any."""
    statuses = {outcome.status for outcome in outcomes if isinstance(outcome, Rejected)}
    if not outcomes or any(not isinstance(outcome, Rejected) for outcome in outcomes):
        return None
    common = statuses.pop() if len(statuses) == 1 else 422
    members = told.model_dump(mode="json", exclude_defaults=True)
    return _problem_answer(status=common, detail=f"None of the {name} was stored.", **members)


def _line_answer(index: int, outcome: Any, as_answer: Callable[[Any], Answer]) -> Answer | dict[str, Any]:
    if isinstance(outcome, Rejected):
        told = without_secrets({"detail": outcome.detail, **_errors_member(outcome)})
        return {"error": {"index": index, "status": outcome.status, **told}}
    return as_answer(outcome)


def _errors_member(outcome: Rejected) -> dict[str, Any]:
    return {"errors": outcome.errors} if outcome.errors else {}


def _problem_answer(*, status: int, detail: str, **members: Any) -> Response:
    body = without_secrets(problem(status=status, detail=detail, **members))
    return Response(body, status=status, content_type=CONTENT_TYPE)
