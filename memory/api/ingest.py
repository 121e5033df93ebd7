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

from memory.api.memories import EpisodeListView
from memory.api.requests import holder_of, replace_surrogates
from memory.api.responses import CONTENT_TYPE, documented, problem, without_secrets
from memory.domain.identity import IdKind, id_pattern
from memory.facts.remember import Remembered, remember
from memory.ingest.buffer import BufferedTurn, buffer_raw_turns
from memory.ingest.schemas import INGEST, EpisodeLine, IngestContext, Name, Rejected, Slug, Stored, Time, TurnLine
from memory.ingest.store import store_raw_episodes
from memory.language.explicit_requests import Signal
from memory.models import Permission

_EPISODES = "episodes"


class EpisodeBatch(BaseModel):
    """Many episodes at once; each is answered for itself."""

    episodes: list[EpisodeLine] = Field(max_length=INGEST.bulk_items)


class EpisodesBody(RootModel[EpisodeLine | EpisodeBatch]):
    """One episode, or many."""


class StoredEpisode(BaseModel):
    """The episode that stands for a line: a new one, or the one that was there already."""

    id: str = Field(pattern=f"^{id_pattern(IdKind.EPISODE)}$")
    deduplicated: bool = Field(description="The same words, or the same idempotency key, were sent before.")
    forgotten: Literal[True] | None = Field(
        default=None,
        description="Given where the episode with these words was forgotten: nothing was stored, and nothing of it is "
        "recalled.",
    )


class LineError(BaseModel):
    """Why a line was not stored."""

    index: int
    status: Literal[403, 409, 413, 422]
    detail: str
    errors: dict[str, list[str]] | None = None


class RejectedEpisode(BaseModel):
    error: LineError


class EpisodesAnswer(BaseModel):
    """One answer for each line, in their order."""

    episodes: list[StoredEpisode | RejectedEpisode]


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
            as_json=_stored_as_json,
            status=201,
        )


def _stored_as_json(outcome: Stored) -> dict[str, Any]:
    stored: dict[str, Any] = {"id": outcome.id, "deduplicated": outcome.is_duplicate}
    return stored | ({"forgotten": True} if outcome.is_forgotten else {})


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
            as_json=_accepted_as_json,
            status=202,
        )


def _accepted_as_json(accepted: BufferedTurn) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "signal": accepted.signal,
        "buffered": accepted.buffered,
        "extraction": "queued" if accepted.is_queued else "none",
    }
    return answer | ({"deduplicated": True} if accepted.is_duplicate else {})


_BeliefActions = Literal["created", "reinforced", "weakened", "superseded"]


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
    action: _BeliefActions


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
            return _rejected_answer(outcome)
        return Response(_remembered_as_json(outcome), status=201)


def _refuse_unknown_fields(body: object) -> dict[str, object]:
    """Return the body if it holds nothing but what can be said here; the episode's own door checks the values."""
    if not isinstance(body, dict):
        raise serializers.ValidationError({api_settings.NON_FIELD_ERRORS_KEY: ["A JSON object is expected."]})
    if unknown := sorted(set(body) - set(RememberRequest.model_fields)):
        raise serializers.ValidationError({replace_surrogates(name): ["There is no such field."] for name in unknown})
    return dict(body)


def _remembered_as_json(remembered: Remembered) -> dict[str, Any]:
    """Return the answer as it is sent."""
    answer: dict[str, Any] = {
        "episode_id": remembered.episode_id,
        "state": remembered.state,
        "beliefs": [{"id": one.id, "action": one.action} for one in remembered.beliefs],
        "deduplicated": remembered.is_duplicate,
    }
    why = {"reason": remembered.reason} if remembered.reason else {}
    return answer | why | ({"forgotten": True} if remembered.is_forgotten else {})


def _rejected_answer(rejected: Rejected) -> Response:
    members = {"errors": rejected.errors} if rejected.errors else {}
    body = without_secrets(problem(status=rejected.status, detail=rejected.detail, **members))
    return Response(body, status=rejected.status, content_type=CONTENT_TYPE)


def answer_lines(
    *,
    body: object,
    name: str,
    take: Callable[[Sequence[object]], Sequence[Any]],
    as_json: Callable[[Any], dict[str, Any]],
    status: int,
) -> Response:
    """Take one line, or those under the name of a batch, and answer with this status; a single bad one is a problem."""
    if not isinstance(body, dict) or name not in body:
        outcome = take([body])[0]
        if isinstance(outcome, Rejected):
            return _problem_answer(status=outcome.status, detail=outcome.detail, **_errors_member(outcome))
        return Response({name: [as_json(outcome)]}, status=status)
    return _refuse_batch(body, name) or _answer_many(take(body[name]), name, as_json, status)


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


def _answer_many(outcomes: Sequence[Any], name: str, as_json: Callable[[Any], dict[str, Any]], status: int) -> Response:
    """Answer each line; a batch of which nothing was stored is a problem, of its lines' common status if any."""
    answers = [_line_answer(index, outcome, as_json) for index, outcome in enumerate(outcomes)]
    statuses = {outcome.status for outcome in outcomes if isinstance(outcome, Rejected)}
    if not outcomes or any(not isinstance(outcome, Rejected) for outcome in outcomes):
        return Response({name: answers}, status=status)
    common = statuses.pop() if len(statuses) == 1 else 422
    return _problem_answer(status=common, detail=f"None of the {name} was stored.", **{name: answers})


def _line_answer(index: int, outcome: Any, as_json: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    if isinstance(outcome, Rejected):
        told = without_secrets({"detail": outcome.detail, **_errors_member(outcome)})
        return {"error": {"index": index, "status": outcome.status, **told}}
    return as_json(outcome)


def _errors_member(outcome: Rejected) -> dict[str, Any]:
    return {"errors": outcome.errors} if outcome.errors else {}


def _problem_answer(*, status: int, detail: str, **members: Any) -> Response:
    body = without_secrets(problem(status=status, detail=detail, **members))
    return Response(body, status=status, content_type=CONTENT_TYPE)
