"""RecallQuery and RecallScope say what is asked, RecallRun is a recall under way, Recalled is the answer."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum

from memory.access import Viewer
from memory.domain.graph import EdgeKind
from memory.domain.lifecycle import HIDDEN_STATES
from memory.domain.policy import Policy
from memory.domain.policy_recall import LifecyclePolicy
from memory.domain.taxonomy import PROCEDURAL, Knowledge, RecallMode, asks_for_procedures, categories_of
from memory.llm.types import Embedder
from memory.models import FactType
from memory.search.prepared import TimedSearch
from memory.search.scope import SearchScope


class RecallProfile(StrEnum):
    """How memories are scored: by B17, or by R5."""

    DEFAULT = "default"
    ASSOCIATIVE = "associative"


# What every door says of a question that contradicts itself; of `occurred_before`, and of `graph`.
WRONG_ORDER = "It must be later than occurred_after."
LINKS_ARE_OF_NOW = "It cannot be asked with as_of: how links stood is not kept."


class MemoryType(StrEnum):
    """The kinds of memory that recall answers with."""

    EPISODE = "episode"
    BELIEF = "belief"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Which memories of a scope are wanted: see `SearchScope`; nothing given narrows nothing."""

    occurred: tuple[datetime | None, datetime | None] = (None, None)
    categories: tuple[str, ...] | None = None
    fact_types: tuple[str, ...] | None = None
    with_expired: bool = False
    hidden_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallScope:
    """Whose memories are searched: what the viewer may see, and of it a project's, a user's, an agent's, if named.

    `narrowing` is what else is asked of them.
    """

    viewer: Viewer
    project_id: int | None = None
    user: str = ""
    agent: str = ""
    narrowing: MemoryFilter = MemoryFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A query, and how it is to be answered.

    `occurred_from` and `occurred_before` bound a time, its start included; `as_of` asks how things stood then; `quotas`
    are the most results of one kind. `is_for_task` if the query tells of a task that memories are to bear on: else one
    that sets a task is taken to be about what that is done to. `follows_links` has the graph between episodes answer,
    too, as it is today. `session` is the conversation that asks: it has heard its own turns, which wait to be read.
    """

    query: str
    limit: int
    types: Collection[MemoryType] = tuple(MemoryType)
    mode: RecallMode = RecallMode.FULL_CONTEXT
    profile: RecallProfile = RecallProfile.DEFAULT
    occurred_from: datetime | None = None
    occurred_before: datetime | None = None
    as_of: datetime | None = None
    with_expired: bool = False
    is_explained: bool = False
    follows_links: bool = False
    quotas: Mapping[MemoryType, int] = field(default_factory=dict)
    is_for_task: bool = False
    session: str = ""

    @property
    def includes_waiting_turns(self) -> bool:
        """Tell whether turns that nobody has read yet may answer: of these it is known when they were said, no more."""
        return self.as_of is None and categories_of(mode=self.mode) is None and MemoryType.EPISODE in self.types

    def narrow(self, *, scope: RecallScope, policy: LifecyclePolicy) -> RecallScope:
        """Return the scope with what this question asks of memories beside its words (B1, D2, L14)."""
        narrowing = MemoryFilter(
            occurred=(self.occurred_from, self.occurred_before),
            categories=categories_of(mode=self.mode),
            fact_types=None if asks_for_procedures(mode=self.mode) else _NOT_PROCEDURAL,
            with_expired=self.with_expired,
            hidden_states=HIDDEN_STATES if policy.enabled and policy.hides_stale else (),
        )
        return replace(scope, narrowing=narrowing)


_NOT_PROCEDURAL = tuple(str(kind) for kind in FactType if kind != PROCEDURAL)


def search_scope_of(*, scope: RecallScope, now: datetime) -> SearchScope:
    """Turn a scope into what a statement filters by; a project outside the viewer's own reaches nothing (B21)."""
    allowed = scope.viewer.projects
    projects = allowed if scope.project_id is None else (scope.project_id,)
    if allowed is not None and scope.project_id is not None and scope.project_id not in allowed:
        projects = ()
    narrowing = {one.name: getattr(scope.narrowing, one.name) for one in fields(scope.narrowing)}
    return SearchScope(
        workspace_id=scope.viewer.workspace.pk, projects=projects, allowed=allowed, user=scope.user, agent=scope.agent,
        now=now, **narrowing,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRun:
    """One recall under way: the question, whose memories it is about, and what every step works with."""

    question: RecallQuery
    scope: RecallScope
    timed: TimedSearch
    model: Embedder
    now: datetime
    policy: Policy

    @property
    def at(self) -> datetime:
        """The moment that the question is about: now, or the past that it names."""
        return self.question.as_of or self.now

    @property
    def narrowed(self) -> RecallScope:
        """The scope with what the question alone leaves out."""
        return self.question.narrow(scope=self.scope, policy=self.policy.lifecycle)

    @property
    def reach(self) -> SearchScope:
        """The narrowed scope as statements filter by it."""
        return search_scope_of(scope=self.narrowed, now=self.at)


BELOW_THE_LAST = "below_the_last"  # a smaller score than that of the last result
FITS_NO_BETTER = "fits_no_better"  # a belief that is hardly nearer to the query than the episodes found
TOO_UNLIKE = "too_unlike"  # less like the query than the associative profile asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverRank:
    """One channel's word on a memory: its place among the candidates of that kind (1 is best), and its number."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """A memory on the way to another, and how sure the link from it is; between episodes also its kind and weight."""

    id: str
    confidence: float
    kind: EdgeKind | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a memory stands where it stands: every channel, and every number its score is made of."""

    channels: Mapping[str, RetrieverRank]
    components: Mapping[str, float | None]
    path: tuple[PathStep, ...] = ()  # by which it came along, from the memory that was found


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One result; a belief has a confidence, an episode a time at which it occurred.

    `dated` is the day to name it by: when an episode occurred, when a belief was borne out last. `superseded_by` is the
    belief that stands in the place of all that an episode bore out. `is_derived` are summaries. `is_relevant` if it has
    to do with the query at all. `claim` is what an episode asserts that the query means, as a sentence.
    """

    type: MemoryType
    id: str
    text: str
    knowledge: Knowledge
    score: float
    dated: datetime
    confidence: float | None = None
    occurred_at: datetime | None = None
    superseded_by: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    session: str = ""
    is_derived: bool = False
    is_relevant: bool = False
    claim: str | None = None
    passage: str = ""  # of an episode, the words that a query is about, where those were looked for
    explain: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A memory that fell just short of the answer, and why."""

    memory: RecalledMemory
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Results, best first, the channels that could not be used, and, if asked for, what fell short."""

    results: tuple[RecalledMemory, ...]
    degraded: tuple[str, ...]
    near_misses: tuple[NearMiss, ...] = ()
    is_explained: bool = False
