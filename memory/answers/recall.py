"""What is recalled, as callers are told."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from memory.answers.base import Answer, Rounded
from memory.domain.graph import EdgeKind
from memory.domain.taxonomy import Knowledge
from memory.recall.query import MemoryType, RecalledMemory
from memory.recall.query import Recalled as FoundMemories


class MemoryAnswer(Answer):
    """A recalled memory."""

    type: MemoryType
    id: str
    text: str
    knowledge: Knowledge = Field(description="A fact, a procedure, or a narrative of what happened.")
    score: Rounded = Field(description="0 to 1, comparable between the kinds.")
    relevant: bool = Field(description="Whether it has to do with the query at all, as far as likeness and words tell.")
    confidence: Rounded | None = Field(default=None, description="Of a belief, 0 to 1.")
    occurred_at: datetime | None = Field(default=None, description="Of an episode.")
    claim: str | None = Field(
        default=None, description="What an episode asserts that the query means, in a sentence that stands alone."
    )
    superseded_by: str | None = Field(
        default=None, description="Of an episode that bears out nothing that is believed: the belief in its place."
    )
    valid_from: datetime | None = Field(default=None, description="Of a belief that says since when it holds.")
    valid_until: datetime | None = Field(default=None, description="Where it says until when it holds.")

    @classmethod
    def of(cls, memory: RecalledMemory, **more: Any) -> Self:
        """Tell of a memory that was recalled."""
        return cls(
            type=memory.type,
            id=memory.id,
            text=memory.text,
            knowledge=memory.knowledge,
            score=memory.score,
            relevant=memory.is_relevant,
            confidence=memory.confidence,
            occurred_at=memory.occurred_at,
            claim=memory.claim,
            superseded_by=memory.superseded_by,
            valid_from=memory.valid_from,
            valid_until=memory.valid_until,
            **more,
        )


class Channel(Answer):
    """A channel's word on a memory."""

    rank: int = Field(description="Among the candidates of that kind; 1 is best.")
    score: Rounded


class PathStep(Answer):
    """A memory on the way to another."""

    id: str
    confidence: Rounded = Field(description="How sure the link from it is.")
    kind: EdgeKind | None = Field(description="Of a link between episodes.")
    weight: Rounded | None = Field(description="How strongly it links; of a link between episodes.")


class Explanation(Answer):
    """How a memory came to its score."""

    channels: dict[str, Channel] = Field(description="vector, text, graph: those that found it.")
    components: dict[str, Rounded | None] = Field(description="Every number that the score is made of.")
    path: list[PathStep] = Field(description="The way along links to what came with another memory.")


class Memory(MemoryAnswer):
    """A recalled memory."""

    explain: Explanation | None = Field(default=None, description="If asked for.")

    @classmethod
    def explained(cls, memory: RecalledMemory) -> Self:
        """Tell of a memory that was recalled, and of how it came to its score where that is known."""
        return cls.of(memory, explain=memory.explain)


class Missed(Answer):
    """A memory that fell short."""

    memory: Memory
    reason: str = Field(description="below_the_last, fits_no_better or too_unlike.")


class Recalled(Answer):
    """Results, best first."""

    results: list[Memory]
    degraded: list[str] = Field(description="Channels that could not be used.")
    near_misses: list[Missed] | None = Field(default=None, description="If an explanation was asked for.")

    @classmethod
    def of(cls, found: FoundMemories) -> Self:
        """Tell of what was recalled."""
        missed = [Missed(memory=Memory.explained(one.memory), reason=one.reason) for one in found.near_misses]
        return cls(
            results=[Memory.explained(one) for one in found.results],
            degraded=list(found.degraded),
            near_misses=missed if found.is_explained else None,
        )


class Recollection(Answer):
    """Lines to put before a conversation; an empty text if nothing comes up."""

    text: str = Field(description="`[Memory flash: …]` and `[Belief (0.85): …]`.")
    ids: list[str] = Field(description="Of the memories, in the order of the lines.")
