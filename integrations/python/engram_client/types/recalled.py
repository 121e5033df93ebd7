"""What comes to mind, and how a memory stands, as JSON has it. Written from the API's schema: change that."""

from typing import NotRequired, TypeAlias, TypedDict

from engram_client.types.closed_sets import EdgeKind, KnowledgeEnum, MemoryType, ReasonEnum


class Channel(TypedDict):
    """A channel's word on a memory."""

    rank: int
    score: float


NullEnum: TypeAlias = None


class PathStep(TypedDict):
    """A memory on the way to another."""

    id: str
    confidence: float
    kind: "EdgeKind | NullEnum"
    weight: float | None


class Explanation(TypedDict):
    """How a memory came to its score."""

    channels: dict[str, "Channel"]
    components: dict[str, float | None]
    path: list["PathStep"]


class Memory(TypedDict):
    """A recalled memory."""

    type: "MemoryType"
    id: str
    text: str
    knowledge: "KnowledgeEnum"
    score: float
    relevant: bool
    confidence: NotRequired[float]
    occurred_at: NotRequired[str]
    claim: NotRequired[str]
    superseded_by: NotRequired[str]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    explain: NotRequired["Explanation"]


class Missed(TypedDict):
    """A memory that fell short."""

    memory: "Memory"
    reason: str


class Recalled(TypedDict):
    """Results, best first."""

    results: list["Memory"]
    degraded: list[str]
    near_misses: NotRequired[list["Missed"]]


class Recollection(TypedDict):
    """Lines to put before a conversation; an empty text if nothing comes up."""

    text: str
    ids: list[str]


class Backlog(TypedDict):
    """What waits for cycles, and how fast those that ended lately took it away."""

    waiting: int
    per_minute: float | None
    done_at: str | None


class Budget(TypedDict):
    """What models used since midnight UTC, recall's embeddings apart, and the caps; null for no cap."""

    tokens_today: int
    daily_token_cap: int | None
    cost_usd_today: float
    daily_cost_cap_usd: float | None
    is_cap_reached: bool
    recall_tokens_today: int
    daily_recall_token_cap: int


class Graph(TypedDict):
    """What links memories."""

    entities: int
    edges: int
    boxes: int
    unlinked: int


class LastCycle(TypedDict):
    """The newest cycle, briefly."""

    id: str
    state: str
    started_at: str | None
    finished_at: str | None


class Models(TypedDict):
    """The models in use."""

    llm: str
    verdicts: str
    embeddings: str
    reranker: str
    offline: bool


class Pause(TypedDict):
    """Why no cycle starts by itself."""

    reason: "ReasonEnum"
    detail: str
    failures: int
    since: str
    until: str


class Remembering(TypedDict):
    """Texts that are to be remembered at once."""

    queued: int
    failed: int


class WaitingTurns(TypedDict):
    """Turns of conversations that are not read yet."""

    buffered: int
    leased: int
    dead: int
    oldest_at: str | None


class Status(TypedDict):
    """How a memory stands; a key limited to projects sees its own counts alone."""

    version: str
    beliefs_enabled: bool
    is_believing: bool
    episodes: dict[str, int]
    beliefs: dict[str, int]
    pending_episodes: int
    pooled_episodes: int
    held_episodes: int
    dead_letters: int
    redactions: dict[str, int] | None
    next_cycle_at: str | None
    backlog: "Backlog | None"
    turns: "WaitingTurns"
    remembering: "Remembering"
    graph: "Graph | None"
    last_cycle: "LastCycle | None"
    pause: "Pause | None"
    budget: "Budget | None"
    models: "Models"
