"""What is answered where something comes in, for each line or turn."""

from typing import Literal

from pydantic import Field

from memory.answers.base import Answer
from memory.domain.identity import IdKind, id_pattern
from memory.language.explicit_requests import Signal

_BeliefActions = Literal["created", "reinforced", "weakened", "superseded"]


class StoredEpisode(Answer):
    """The episode that stands for a line: a new one, or the one that was there already."""

    id: str = Field(pattern=f"^{id_pattern(IdKind.EPISODE)}$")
    deduplicated: bool = Field(description="The same words, or the same idempotency key, were sent before.")
    forgotten: Literal[True] | None = Field(
        default=None,
        description="Given where the episode with these words was forgotten: nothing was stored, and nothing of it is "
        "recalled.",
    )


class LineError(Answer):
    """Why a line was not stored."""

    index: int
    status: Literal[403, 409, 413, 422]
    detail: str
    errors: dict[str, list[str]] | None = None


class RejectedEpisode(Answer):
    error: LineError


class EpisodesAnswer(Answer):
    """One answer for each line, in their order."""

    episodes: list[StoredEpisode | RejectedEpisode]


class AcceptedTurn(Answer):
    """How strongly a turn asks to be remembered, and how its conversation stands."""

    signal: Signal
    buffered: int = Field(ge=0, description="Turns of the conversation that wait to be read, after this one.")
    extraction: Literal["queued", "none"] = Field(description="queued: what waits is to be read now.")
    deduplicated: Literal[True] | None = Field(
        default=None, description="Given where the conversation had a turn of this turn_id: nothing was added."
    )


class RejectedTurn(Answer):
    error: LineError


class TurnsAnswer(Answer):
    """One answer for each turn, in their order."""

    turns: list[AcceptedTurn | RejectedTurn]


class BeliefActionAnswer(Answer):
    """What the text did to one belief."""

    id: str = Field(pattern=f"^{id_pattern(IdKind.BELIEF)}$")
    action: _BeliefActions


class RememberAnswer(Answer):
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
