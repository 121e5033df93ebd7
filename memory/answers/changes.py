"""What is answered where memories change: what came in, what is gone, how one stands, and what tidying did."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from memory.answers.base import Answer, Rounded
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


class Feedback(Answer):
    """How a memory's feedback stands. Nothing else is told: whoever may write need not be allowed to read."""

    id: str
    feedback: Rounded = Field(ge=-1, le=1, description="From -1, wrong, to 1, useful.")


class Resolved(Answer):
    """A commitment that was done with."""

    id: str
    resolved_at: datetime = Field(description="When it was resolved first.")


class Bereft(Answer):
    """What it meant for beliefs."""

    recomputed: int = Field(description="Beliefs that it was evidence of.")
    archived: int = Field(description="Those among them that have no support any more.")
    erased: int | None = Field(default=None, description="Beliefs that may quote it, where it was erased.")


class BeliefIds(Answer):
    """Which beliefs the numbers are about, at most 100 of each kind."""

    recomputed: list[str]
    archived: list[str]
    erased: list[str] | None = None


class Forgotten(Answer):
    """A memory that is gone."""

    id: str
    status: Literal["forgotten", "erased"]
    beliefs: Bereft
    belief_ids: BeliefIds | None = Field(default=None, description="For a key that may read: those that it may see.")
    released: int | None = Field(default=None, description="Other episodes that are consolidated anew.")
    merged: int | None = Field(default=None, description="Notes that were merged into it: they are forgotten with it.")
    merged_ids: list[str] | None = Field(default=None, description="Which, at most 100, for a key that may read.")
    summaries: int | None = Field(
        default=None, description="Summaries of what it was read from: they are forgotten with it."
    )
    summary_ids: list[str] | None = Field(default=None, description="Which, at most 100, for a key that may read.")
    turns: int | None = Field(default=None, description="Turns that it was read out of, where it was erased.")


class Erasure(Answer):
    """How much was erased."""

    episodes: int
    beliefs: int
    turns: int = Field(description="Turns of conversations.")
    calls: int = Field(description="Calls of models whose replies are gone.")
    released: int = Field(description="Other episodes that are consolidated anew.")
    recomputed: int = Field(description="Beliefs that stay, and do not stand as before.")
    archived: int = Field(description="Those among them that have no support any more.")
    belief_ids: BeliefIds | None = Field(default=None, description="Not where a whole workspace was erased.")


class Duplicate(Answer):
    """Two beliefs that may say the same."""

    ids: list[str] = Field(min_length=2, max_length=2)
    statements: list[str] = Field(min_length=2, max_length=2)
    similarity: Rounded = Field(description="On the reference scale, 0 to 1.")
    passes_guard: bool = Field(
        description="Whether they say the same, and may be merged; otherwise they may contradict each other."
    )


class Faded(Answer):
    """A belief of which nothing was said for long."""

    id: str
    statement: str
    effective_confidence: Rounded = Field(description="What time has left of its confidence.")
    is_prunable: bool = Field(description="Whether pruning would take it.")


class Reflection(Answer):
    """What a look at all active beliefs found."""

    beliefs: int = Field(description="Active ones, all of which were looked at.")
    duplicate_count: int
    duplicates: list[Duplicate] = Field(description="The most similar first.")
    faded_count: int
    faded: list[Faded] = Field(description="Those of which least is left first.")


class Pruned(Answer):
    """Beliefs that faded."""

    pruned: list[Faded]
    dry_run: bool


class Proposed(Answer):
    """Pairs that the next cycle's merge gate looks at."""

    proposed: list[Duplicate]


class Subjects(Answer):
    """Subjects that were filled in."""

    subjects: dict[str, str] = Field(description="By belief.")
