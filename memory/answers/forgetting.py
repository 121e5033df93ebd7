"""What is told of memories that are gone."""

from typing import Literal

from pydantic import Field

from memory.answers.base import Answer


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
