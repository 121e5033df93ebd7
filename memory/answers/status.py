"""How a memory stands, as callers are told."""

from datetime import datetime

from pydantic import Field

from memory.answers.base import Answer
from memory.models import PauseReason


class LastCycle(Answer):
    """The newest cycle, briefly."""

    id: str
    state: str
    started_at: datetime | None
    finished_at: datetime | None


class Spending(Answer):
    """What models used since midnight UTC, recall's embeddings apart, and the caps; null for no cap."""

    tokens_today: int
    daily_token_cap: int | None
    cost_usd_today: float
    daily_cost_cap_usd: float | None
    is_cap_reached: bool = Field(description="Consolidation makes no call until midnight UTC.")


class Budget(Spending):
    """What models used since midnight UTC, recall's embeddings apart, and the caps; null for no cap."""

    recall_tokens_today: int = Field(description="Of recall's embeddings, counted apart.")
    daily_recall_token_cap: int = Field(description="Beyond it recall searches by words alone.")


class Pause(Answer):
    """Why no cycle starts by itself."""

    reason: PauseReason = Field(
        description="failures: cycles in a row got nothing done; auth: a model server refuses the key; billing: it "
        "wants to be paid; cap: a cap of the day is reached."
    )
    detail: str
    failures: int = Field(description="Cycles in a row that got nothing done.")
    since: datetime
    until: datetime


class Models(Answer):
    """The models in use."""

    llm: str
    verdicts: str = Field(description="Judges pairs of texts.")
    embeddings: str
    reranker: str = Field(description="Has the last word on recall's order; blank for none.")
    offline: bool = Field(description="Rules and vectors of the installation itself.")


class Backlog(Answer):
    """What waits for cycles, and how fast those that ended lately took it away."""

    waiting: int = Field(description="Episodes that are new, leased or failed.")
    per_minute: float | None = Field(
        description="Episodes that cycles took away in a minute of running; null where none did lately."
    )
    done_at: datetime | None = Field(
        description="When nothing waits any more, at this pace; null while no cycle is at it."
    )


class WaitingTurns(Answer):
    """Turns of conversations that are not read yet."""

    buffered: int = Field(description="They wait until it is time to read them.")
    leased: int = Field(description="They are being read, or will be again.")
    dead: int = Field(description="They could not be read too often, and wait for a person.")
    oldest_at: datetime | None = Field(description="When the oldest that waits was stored.")


class Remembering(Answer):
    """Texts that are to be remembered at once."""

    queued: int = Field(description="They wait for a model.")
    failed: int = Field(description="They cost too many workers: left to consolidation, and to a person.")


class Graph(Answer):
    """What links memories."""

    entities: int = Field(description="Whom and what they name; above 10,000 an estimate.")
    edges: int = Field(description="Links between episodes; above 10,000 an estimate.")
    boxes: int = Field(description="Episodes of one topic, near in time; above 10,000 an estimate.")
    unlinked: int = Field(description="Episodes that wait to be linked; 10,001 stands for more, too.")


class MemoryCounts(Answer):
    """What the API and the tools tell of a memory alike."""

    version: str = Field(description="The release of this server.")
    beliefs_enabled: bool = Field(
        description="False, by the workspace's choice or the installation's: no cycle runs, recall has episodes alone."
    )
    is_believing: bool = Field(description="The former name of beliefs_enabled, until 2.0.", deprecated=True)
    episodes: dict[str, int] = Field(description="By status.")
    beliefs: dict[str, int] = Field(description="By status.")
    pending_episodes: int = Field(description="New, leased or failed; they are recalled all the same.")
    pooled_episodes: int = Field(description="Looked at, and waiting for others like them.")
    held_episodes: int = Field(description="Of cycles that were undone; they wait for a person.")
    dead_letters: int = Field(description="Episodes whose work failed too often; they wait for a person.")
    redactions: dict[str, int] | None = Field(description="Secrets taken out of texts so far, by kind.")
    next_cycle_at: datetime | None


class Status(MemoryCounts):
    """How a memory stands; a key limited to projects sees its own counts alone."""

    backlog: Backlog | None
    turns: WaitingTurns
    remembering: Remembering
    graph: Graph | None
    last_cycle: LastCycle | None
    pause: Pause | None
    budget: Budget | None
    models: Models
