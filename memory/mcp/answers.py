"""What tools answer: the models that their structured output follows."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from memory.answers.base import Answer, Rounded
from memory.answers.changes import Faded
from memory.answers.recall import MemoryAnswer, Recollection
from memory.answers.status import MemoryCounts, Spending


class Saved(Answer):
    """The episode that stands for what was saved."""

    id: str
    deduplicated: bool = Field(description="The same words of the same origin were saved before.")
    forgotten: bool = Field(description="These words were forgotten, and stay so: nothing was saved.")
    state: Literal["done", "queued"] | None = Field(
        default=None, description="With at_once: queued where beliefs follow as soon as a model answers."
    )
    reason: str | None = Field(default=None, description="Of what is queued: what stands in the beliefs' way, if any.")
    beliefs: dict[str, str] | None = Field(
        default=None, description="With at_once: which beliefs were created, reinforced, weakened or superseded."
    )
    file: str | None = Field(default=None, description="With in_file: the MEMORY.md that it stands in now.")
    file_problem: str | None = Field(default=None, description="With in_file: why it stands in none.")


class Forgotten(Answer):
    """A memory that is gone."""

    id: str
    recomputed: int = Field(description="Beliefs that it was evidence of.")
    archived: int = Field(description="Those among them that have no support any more.")
    belief_ids: list[str] | None = Field(default=None, description="Of the first 100 of them, for a key that may read.")
    merged: int = Field(default=0, description="Notes that were merged into it and are forgotten, too.")
    summaries: int = Field(default=0, description="Summaries that told of it and are forgotten, too.")


class Recalled(Answer):
    """What comes to mind, best first."""

    results: list[MemoryAnswer]
    degraded: list[str] = Field(description="Channels that could not be used; the answer may be poorer for it.")
    lines: list[str] = Field(description="Those that have to do with the query, as lines to read, each fact once.")

    def as_text(self) -> str:
        lines = self.lines or ["Nothing comes to mind."]
        return "\n".join([*lines, *(f"(without {channel}: the answer may be poorer)" for channel in self.degraded)])


class ContextTold(Recollection):
    """What bears on a task."""

    def as_text(self) -> str:
        return f"{self.text}\nIDs, in this order: {', '.join(self.ids)}" if self.ids else "Nothing bears on it."


class EvidenceTold(Answer):
    """One episode's word on a belief."""

    episode: str
    text: str
    claim: str | None = Field(default=None, description="The sentence of the text that counts, where not all does.")
    verdict: str
    weight: Rounded
    reason: str
    occurred_at: datetime


class RelativeTold(Answer):
    """A belief that another came from, or became."""

    id: str
    statement: str
    kind: str


class BeliefChangeTold(Answer):
    """A belief after one change, and who made it."""

    at: datetime
    statement: str
    status: str
    confidence: Rounded
    evidence_count: int
    actor: str
    reason: str


class WordTold(Answer):
    """What an episode says of a belief."""

    belief: str
    statement: str
    verdict: str
    weight: Rounded


class TurnTold(Answer):
    """A turn of a conversation that an episode was read from."""

    session: str
    number: int
    role: str
    speaker: str | None = None
    content: str
    occurred_at: datetime


class Expanded(Answer):
    """All that is known of one memory; what does not apply to its kind is null."""

    type: str
    id: str
    text: str
    status: str
    project: str | None = None
    user: str | None = None
    created_at: datetime
    # Of a belief
    confidence: Rounded | None = None
    interval: list[Rounded] | None = Field(default=None, description="The 90 % credible interval.")
    alpha: float | None = Field(default=None, description="1 and the weight of what bears it out.")
    beta: float | None = Field(default=None, description="1 and the weight of what speaks against it.")
    evidence_count: int | None = Field(default=None, description="Of all rows that count, seen by this key or not.")
    subject: str | None = None
    predicate: str | None = None
    context: str | None = None
    timeframe: str | None = None
    is_pinned: bool | None = None
    evidence: list[EvidenceTold] | None = Field(default=None, description="One page, the oldest first; texts are cut.")
    other_evidence: int | None = Field(default=None, description="Further evidence, on other pages.")
    hidden_evidence: int | None = Field(default=None, description="Evidence that this key may not see.")
    came_from: list[RelativeTold] | None = None
    became: list[RelativeTold] | None = None
    history: list[BeliefChangeTold] | None = Field(default=None, description="Its latest changes, the oldest first.")
    # Of an episode
    kind: str | None = Field(default=None, description="What happened (episode), or a note of what holds.")
    tier: str | None = Field(default=None, description="How sure it is, where it was read out of a conversation.")
    causes: list[str] | None = Field(default=None, description="Why it is so, as it was said.")
    verbatim: str | None = Field(default=None, description="The exact words of a decision, commitment or correction.")
    speaker: str | None = None
    session: str | None = None
    source: str | None = None
    occurred_at: datetime | None = None
    is_evidence_of: list[WordTold] | None = Field(default=None, description="One page.")
    other_beliefs: int | None = Field(default=None, description="Further beliefs that it is evidence of.")
    said_in: list[TurnTold] | None = Field(
        default=None, description="The latest turns it was read from, as they were said; long ones are cut."
    )
    other_turns: int | None = Field(default=None, description="Further turns it was read from, which are not shown.")
    hidden_beliefs: int | None = Field(default=None, description="Beliefs of it that this key may not see.")
    # Of a turn
    became_episodes: list[str] | None = Field(default=None, description="What it became, once it was read.")


class BeliefTold(Answer):
    """A belief as it stands."""

    id: str
    statement: str
    confidence: Rounded
    status: str
    is_pinned: bool


class Corrected(Answer):
    """What came of a correction."""

    made: list[BeliefTold] = Field(description="New beliefs.")
    changed: list[BeliefTold] = Field(description="Older ones, as they stand now.")


class StatusTold(MemoryCounts):
    """How the memory stands."""

    turns: dict[str, int] = Field(description="Of conversations: not read yet, being read, given up.")
    remembering: dict[str, int] = Field(description="Texts to be remembered at once: queued, and given up.")
    graph: dict[str, int] | None = Field(default=None, description="What links memories; unlinked ones wait.")
    last_cycle: str | None = None
    paused_until: datetime | None = None
    budget: Spending | None = Field(default=None, description="Not for a key limited to projects.")
    models: dict[str, Any]


class ChangeTold(Answer):
    """One change of a memory's status."""

    at: datetime
    old: str
    new: str
    reason: str
    actor: str


class StatusHistory(Answer):
    """The changes of a memory's status, oldest first."""

    id: str
    status: str
    changes: list[ChangeTold]


class PairTold(Answer):
    """Two beliefs that may say the same, or contradict each other."""

    pair: int | None = Field(default=None, description="Of rivals: the number by which memory_tidy names them.")
    ids: list[str] = Field(description="The two.")
    statements: list[str]
    similarity: Rounded
    passes_guard: bool | None = Field(
        default=None, description="Of a duplicate: whether the two say the same, and may be merged."
    )
    state: str | None = Field(
        default=None, description="Of rivals: open, contradicts, or needs_a_person where no model could tell."
    )
    reason: str | None = None


class Reflected(Answer):
    """What a look at all active beliefs found; of many, the first."""

    beliefs: int = Field(description="Active ones.")
    duplicate_count: int
    duplicates: list[PairTold]
    faded_count: int
    faded: list[Faded]


class Tidied(Answer):
    """What came of tidying, by what was asked for; the rest is null. Of many the first 100 are told."""

    count: int = Field(description="How many there are, told or not.")
    dry_run: bool = Field(default=False, description="Nothing was changed.")
    pruned: list[Faded] | None = Field(default=None, description="Beliefs that are recalled no more.")
    proposed: list[PairTold] | None = Field(
        default=None, description="Pairs that the next cycle's merge gate looks at."
    )
    made: list[BeliefTold] | None = Field(default=None, description="Beliefs about groups of beliefs.")
    subjects: dict[str, str] | None = Field(default=None, description="Subjects that were filled in, by belief.")
    groups: int | None = Field(default=None, description="Groups of beliefs that a model was to be asked about.")
    unanswered: str | None = Field(default=None, description="Why not every group had its turn; call again to go on.")
    pair: PairTold | None = Field(default=None, description="The pair that was dismissed or opened again.")


class RivalsTold(Answer):
    """Pairs of beliefs that may contradict each other."""

    found: int = Field(description="Pairs that were not on the list before.")
    outcomes: dict[str, int] = Field(description="Of a check: how many pairs came to which state.")
    stopped: str | None = Field(default=None, description="Why not all were answered; call again to go on.")
    total: int
    unasked: int | None = Field(default=None, description="Pairs only alike, not listed: check has a model asked.")
    pairs: list[PairTold] = Field(description="Contradictions first.")
