"""What is stored, and what is answered, as JSON has it. Written from the API's schema: change that."""

from typing import Literal, NotRequired, TypedDict

from engram_client.types.closed_sets import (
    ActionEnum,
    ExtractionEnum,
    LineErrorStatusEnum,
    RememberAnswerStateEnum,
    RoleEnum,
    Signal,
    VerdictEnum,
)


class Testimony(TypedDict):
    """An episode, and what it says of the belief."""

    episode: str
    verdict: NotRequired["VerdictEnum"]


class RememberRequest(TypedDict):
    """A text to be remembered. All but the text may be left out, or null."""

    text: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    agent: NotRequired[str | None]
    session: NotRequired[str | None]
    speaker: NotRequired[str | None]
    source: NotRequired[Literal["human", "ai", "interaction", "ingest"] | None]
    occurred_at: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class EpisodeLine(RememberRequest):
    """One thing that happened or was said. All but the text may be left out, or null."""

    document: NotRequired[str | None]
    valid_until: NotRequired[str | None]
    entities: NotRequired[list[str] | None]
    category: NotRequired[str | None]
    importance: NotRequired[float | None]
    tags: NotRequired[list[str] | None]
    language: NotRequired[str | None]


class LineError(TypedDict):
    """Why a line was not stored."""

    index: int
    status: "LineErrorStatusEnum"
    detail: str
    errors: NotRequired[dict[str, list[str]]]


class RejectedEpisode(TypedDict):
    error: "LineError"


class StoredEpisode(TypedDict):
    """The episode that stands for a line: a new one, or the one that was there already."""

    id: str
    deduplicated: bool
    forgotten: NotRequired[bool]


class EpisodesAnswer(TypedDict):
    """One answer for each line, in their order."""

    episodes: list["StoredEpisode | RejectedEpisode"]


class BeliefActionAnswer(TypedDict):
    """What the text did to one belief."""

    id: str
    action: "ActionEnum"


class RememberAnswer(TypedDict):
    """The episode that stands for the text, and what it did to beliefs by now."""

    episode_id: str
    state: "RememberAnswerStateEnum"
    reason: NotRequired[str]
    beliefs: list["BeliefActionAnswer"]
    deduplicated: bool
    forgotten: NotRequired[bool]


class TurnLine(TypedDict):
    """What one side of a conversation said. Session, role and content are needed; the rest may be left out, or null."""

    session: str
    role: "RoleEnum"
    content: str
    turn_id: NotRequired[str | None]
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    speaker: NotRequired[str | None]
    occurred_at: NotRequired[str | None]


class AcceptedTurn(TypedDict):
    """How strongly a turn asks to be remembered, and how its conversation stands."""

    signal: "Signal"
    buffered: int
    extraction: "ExtractionEnum"
    deduplicated: NotRequired[bool]


class RejectedTurn(TypedDict):
    error: "LineError"


class TurnsAnswer(TypedDict):
    """One answer for each turn, in their order."""

    turns: list["AcceptedTurn | RejectedTurn"]
