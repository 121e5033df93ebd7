"""POST /episodes: store what happened or was said."""

from typing import Any, Literal

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import BaseModel, Field, RootModel
from rest_framework.request import Request
from rest_framework.response import Response

from memory.access import allowed_projects
from memory.api.authentication import holder_of
from memory.api.bulk import LineError, answer_lines
from memory.api.episodes_read import EpisodeListView
from memory.api.schema import documented
from memory.domain.ids import IdKind, id_pattern
from memory.ingest.schemas import INGEST, EpisodeLine, IngestContext, Stored
from memory.ingest.store import store_raw_episodes
from memory.models import Permission

_BULK = "episodes"


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


class RejectedEpisode(BaseModel):
    error: LineError


class EpisodesAnswer(BaseModel):
    """One answer for each line, in their order."""

    episodes: list[StoredEpisode | RejectedEpisode]


_EXAMPLES = [
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
        **documented({201: EpisodesAnswer}, 400, 409, 413, 415, 422, examples=_EXAMPLES),
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
            name=_BULK,
            take=lambda lines: store_raw_episodes(raw_lines=lines, arrival=arrival),
            as_json=_as_json,
            status=201,
        )


def _as_json(outcome: Stored) -> dict[str, Any]:
    stored: dict[str, Any] = {"id": outcome.id, "deduplicated": outcome.is_duplicate}
    return stored | ({"forgotten": True} if outcome.is_forgotten else {})
