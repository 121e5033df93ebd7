"""What tools take and return: the caller, the argument types that several tools share, and the answers."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from memory.access import (
    LIMITED_KEY,
    UNKNOWN_KEY,
    CallKind,
    Viewer,
    actor_of_key,
    changeable_beliefs,
    check_rate,
    find_key,
    find_project,
    grants,
    missing_permission,
    note_key_use,
    resolve_id,
    viewer_of,
    visible_beliefs,
    visible_episodes,
)
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, IdKind, beginning_pattern, id_pattern, is_episode_id
from memory.ingest.schemas import STORABLE
from memory.ledger.transactions import NotFound
from memory.models import ApiKey, Belief, Episode, Permission, Project, Turn, Workspace
from memory.recall.cards import find_turn

Row = TypeVar("Row", Belief, Episode, Turn)


class Forbidden(EngramError):
    """The key is unknown or lacks a permission; the message names what the call requires."""

    status = HTTPStatus.FORBIDDEN


class InvalidRequest(EngramError):
    """An argument cannot be used; the message says why."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a key at a moment."""

    key: ApiKey
    viewer: Viewer
    now: datetime

    @property
    def workspace(self) -> Workspace:
        """Return the only workspace that this caller can see."""
        return self.key.workspace

    @property
    def actor(self) -> Actor:
        """Name the caller as the history does."""
        return actor_of_key(key=self.key)

    def may(self, permission: Permission) -> bool:
        """Tell whether the key holds a permission."""
        return grants(key=self.key, permission=permission)

    def project(self, slug: str | None) -> Project | None:
        """Return the project of this name, None for no name; raise ProjectNotFound for one outside the key's reach."""
        return find_project(viewer=self.viewer, slug=slug)

    def belief(self, belief_id: str) -> Belief:
        """Return a belief that the key may see."""
        beliefs = visible_beliefs(viewer=self.viewer).select_related("workspace", "project").defer("search")
        belief: Belief | None = beliefs.filter(pk=belief_id).first()
        return _require(belief, belief_id)

    def belief_to_change(self, belief_id: str) -> Belief:
        """Return a belief that the key may see and change."""
        return _require(changeable_beliefs(viewer=self.viewer, ids=[belief_id]).get(belief_id), belief_id)

    def whole_id(self, name: str) -> str:
        """Return the id of a memory that the key may see, named by it or by a beginning that no other has."""
        return resolve_id(name=name, key=self.key)

    def episode(self, episode_id: str) -> Episode:
        """Return an episode that the key may see."""
        episodes = visible_episodes(viewer=self.viewer).select_related("workspace", "project").defer("search")
        episode: Episode | None = episodes.filter(pk=episode_id).first()
        return _require(episode, episode_id)

    def turn(self, turn_id: str) -> Turn:
        """Return a turn that the key may see."""
        return _require(find_turn(memory_id=turn_id, viewer=self.viewer), turn_id)

    def memory(self, memory_id: str) -> Episode | Belief:
        """Return an episode or a belief that the key may see."""
        return self.episode(memory_id) if is_episode_id(memory_id) else self.belief(memory_id)


def _require(row: Row | None, named: str) -> Row:
    if row is None:
        raise NotFound(f"There is no {named} here. Ids come from memory_recall: ep_… for episodes, bl_… for beliefs.")
    return row


def admit(
    *, key_text: str, permission: Permission, usage: CallKind, is_for_whole_workspace: bool = False, now: datetime
) -> Caller:
    """Let a key's holder in for one call; raise Forbidden, or RateLimited where its share is used up."""
    key = find_key(text=key_text) if key_text else None
    if key is None:
        raise Forbidden(UNKNOWN_KEY)
    note_key_use(key=key, now=now)
    if key.is_limited and is_for_whole_workspace:
        raise Forbidden(LIMITED_KEY)
    if not grants(key=key, permission=permission):
        raise Forbidden(missing_permission(permission))
    check_rate(key=key, usage=usage)
    return Caller(key=key, viewer=viewer_of(key=key), now=now)


DIGITS = 4  # of numbers that a model reads: further ones say nothing

MemoryId = Annotated[
    str, Field(pattern=f"^{id_pattern(IdKind.EPISODE, IdKind.BELIEF)}$", description="An id: ep_… or bl_….")
]

MemoryName = Annotated[
    str,
    Field(
        pattern=f"^{beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, IdKind.TURN)}$",
        description="An id: ep_…, bl_… or tn_…; or the beginning of one of the first two, of four digits at least, "
        "that no other memory has.",
    ),
]
ProjectName = Annotated[str, Field(max_length=200, description="A project's short name (slug).")]
UserName = Annotated[str, Field(max_length=200, description="Whose memory it is, where several people share one.")]
BeliefId = Annotated[str, Field(pattern=f"^{id_pattern(IdKind.BELIEF)}$", description="A belief's id: bl_….")]
Reason = Annotated[str, Field(min_length=1, max_length=200, description="Why; kept in the history."), STORABLE]


class ToolAnswer(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True)

    def as_text(self) -> str:
        """Return the answer as a text for a model: JSON without what is not there, unless there is a better one."""
        return self.model_dump_json(exclude_none=True)


class Saved(ToolAnswer):
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


class Forgotten(ToolAnswer):
    """A memory that is gone."""

    id: str
    recomputed: int = Field(description="Beliefs that it was evidence of.")
    archived: int = Field(description="Those among them that have no support any more.")
    belief_ids: list[str] | None = Field(default=None, description="Of the first 100 of them, for a key that may read.")
    merged: int = Field(default=0, description="Notes that were merged into it and are forgotten, too.")
    summaries: int = Field(default=0, description="Summaries that told of it and are forgotten, too.")


class FeedbackTold(ToolAnswer):
    """How a memory's feedback stands."""

    id: str
    feedback: float = Field(description="From -1, wrong, to 1, useful.")


class Memory(ToolAnswer):
    """A recalled memory."""

    type: str = Field(description="belief or episode")
    id: str
    text: str
    knowledge: str = Field(description="A fact, a procedure, or a narrative of what happened.")
    score: float = Field(description="0 to 1")
    relevant: bool = Field(description="Whether it has to do with the query at all.")
    confidence: float | None = Field(default=None, description="Of a belief, 0 to 1.")
    occurred_at: datetime | None = Field(default=None, description="Of an episode.")
    claim: str | None = Field(
        default=None, description="What an episode asserts that the query means, in a sentence that stands alone."
    )
    superseded_by: str | None = Field(
        default=None, description="Of an episode that holds no more: the belief that stands in its place."
    )
    valid_from: datetime | None = Field(default=None, description="Since when a belief holds, where it says so.")
    valid_until: datetime | None = Field(default=None, description="Until when it holds, where it says so.")


class Recalled(ToolAnswer):
    """What comes to mind, best first."""

    results: list[Memory]
    degraded: list[str] = Field(description="Channels that could not be used; the answer may be poorer for it.")
    lines: list[str] = Field(description="Those that have to do with the query, as lines to read, each fact once.")

    def as_text(self) -> str:
        lines = self.lines or ["Nothing comes to mind."]
        return "\n".join([*lines, *(f"(without {channel}: the answer may be poorer)" for channel in self.degraded)])


class ContextTold(ToolAnswer):
    """What bears on a task."""

    text: str
    ids: list[str] = Field(description="Of the memories in the text, in its order.")

    def as_text(self) -> str:
        return f"{self.text}\nIDs, in this order: {', '.join(self.ids)}" if self.ids else "Nothing bears on it."


class EvidenceTold(ToolAnswer):
    """One episode's word on a belief."""

    episode: str
    text: str
    claim: str | None = Field(default=None, description="The sentence of the text that counts, where not all does.")
    verdict: str
    weight: float
    reason: str
    occurred_at: datetime


class RelativeTold(ToolAnswer):
    """A belief that another came from, or became."""

    id: str
    statement: str
    kind: str


class WordTold(ToolAnswer):
    """What an episode says of a belief."""

    belief: str
    statement: str
    verdict: str
    weight: float


class TurnTold(ToolAnswer):
    """A turn of a conversation that an episode was read from."""

    session: str
    number: int
    role: str
    speaker: str | None = None
    content: str
    occurred_at: datetime


class Expanded(ToolAnswer):
    """All that is known of one memory; what does not apply to its kind is null."""

    type: str
    id: str
    text: str
    status: str
    project: str | None = None
    user: str | None = None
    created_at: datetime
    # Of a belief
    confidence: float | None = None
    interval: list[float] | None = Field(default=None, description="The 90 % credible interval.")
    subject: str | None = None
    context: str | None = None
    timeframe: str | None = None
    is_pinned: bool | None = None
    evidence: list[EvidenceTold] | None = Field(default=None, description="One page, the oldest first; texts are cut.")
    other_evidence: int | None = Field(default=None, description="Further evidence, on other pages.")
    hidden_evidence: int | None = Field(default=None, description="Evidence that this key may not see.")
    came_from: list[RelativeTold] | None = None
    became: list[RelativeTold] | None = None
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


class BeliefTold(ToolAnswer):
    """A belief as it stands."""

    id: str
    statement: str
    confidence: float
    status: str
    is_pinned: bool


class Corrected(ToolAnswer):
    """What came of a correction."""

    made: list[BeliefTold] = Field(description="New beliefs.")
    changed: list[BeliefTold] = Field(description="Older ones, as they stand now.")


class BudgetTold(ToolAnswer):
    """What models used since midnight UTC, and the caps; none where there is no cap."""

    tokens_today: int
    daily_token_cap: int | None = None
    cost_usd_today: float
    daily_cost_cap_usd: float | None = None
    is_cap_reached: bool


class StatusTold(ToolAnswer):
    """How the memory stands."""

    episodes: dict[str, int] = Field(description="By status.")
    beliefs: dict[str, int] = Field(description="By status.")
    pending_episodes: int = Field(description="Not consolidated yet; they are recalled all the same.")
    pooled_episodes: int
    held_episodes: int
    dead_letters: int
    turns: dict[str, int] = Field(description="Of conversations: not read yet, being read, given up.")
    remembering: dict[str, int] = Field(description="Texts to be remembered at once: queued, and given up.")
    graph: dict[str, int] | None = Field(default=None, description="What links memories; unlinked ones wait.")
    redactions: dict[str, int] | None = Field(default=None, description="Secrets taken out of texts, by kind.")
    is_believing: bool
    last_cycle: str | None = None
    next_cycle_at: datetime | None = None
    paused_until: datetime | None = None
    budget: BudgetTold | None = Field(default=None, description="Not for a key limited to projects.")
    models: dict[str, Any]


class ChangeTold(ToolAnswer):
    """One change of a memory's status."""

    at: datetime
    old: str
    new: str
    reason: str
    actor: str


class StatusHistory(ToolAnswer):
    """The changes of a memory's status, oldest first."""

    id: str
    status: str
    changes: list[ChangeTold]


class PairTold(ToolAnswer):
    """Two beliefs that may say the same, or contradict each other."""

    pair: int | None = Field(default=None, description="Of rivals: the number by which memory_tidy names them.")
    ids: list[str] = Field(description="The two.")
    statements: list[str]
    similarity: float
    passes_guard: bool | None = Field(
        default=None, description="Of a duplicate: whether it may be merged; else a rule tells the two apart."
    )
    state: str | None = Field(
        default=None, description="Of rivals: open, contradicts, or needs_a_person where no model could tell."
    )
    reason: str | None = None


class FadedTold(ToolAnswer):
    """A belief of which nothing was said for long."""

    id: str
    statement: str
    effective_confidence: float = Field(description="What time has left of its confidence.")
    is_prunable: bool


class Reflected(ToolAnswer):
    """What a look at all active beliefs found; of many, the first."""

    beliefs: int = Field(description="Active ones.")
    duplicate_count: int
    duplicates: list[PairTold]
    faded_count: int
    faded: list[FadedTold]


class Tidied(ToolAnswer):
    """What came of tidying, by what was asked for; the rest is null. Of many the first 100 are told."""

    count: int = Field(description="How many there are, told or not.")
    dry_run: bool = Field(default=False, description="Nothing was changed.")
    pruned: list[FadedTold] | None = Field(default=None, description="Beliefs that are recalled no more.")
    proposed: list[PairTold] | None = Field(
        default=None, description="Pairs that the next cycle's merge gate looks at."
    )
    made: list[BeliefTold] | None = Field(default=None, description="Beliefs about groups of beliefs.")
    subjects: dict[str, str] | None = Field(default=None, description="Subjects that were filled in, by belief.")
    groups: int | None = Field(default=None, description="Groups of beliefs that a model was to be asked about.")
    unanswered: str | None = Field(default=None, description="Why not every group had its turn; call again to go on.")
    pair: PairTold | None = Field(default=None, description="The pair that was dismissed or opened again.")


class RivalsTold(ToolAnswer):
    """Pairs of beliefs that may contradict each other."""

    found: int = Field(description="Pairs that were not on the list before.")
    outcomes: dict[str, int] = Field(description="Of a check: how many pairs came to which state.")
    stopped: str | None = Field(default=None, description="Why not all were answered; call again to go on.")
    total: int
    unasked: int | None = Field(default=None, description="Pairs only alike, not listed: check has a model asked.")
    pairs: list[PairTold] = Field(description="Contradictions first.")
