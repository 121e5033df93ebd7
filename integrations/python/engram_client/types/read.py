"""What is known of memories, as JSON has it. Written from the API's schema: change that."""

from typing import Any, NotRequired, TypeAlias, TypedDict

from engram_client.types.closed_sets import (
    BeliefStatus,
    BlankEnum,
    ClaimMode,
    EdgeKind,
    EpisodeCardTypeEnum,
    EpisodeKind,
    EpisodeState,
    EpisodeStatus,
    ExpandedBeliefTypeEnum,
    FactTypeEnum,
    KnowledgeEnum,
    LifecycleStateEnum,
    LineageChangeKindEnum,
    RoleEnum,
    ScopeEnum,
    SourceEnum,
    Tier,
    TimeframeEnum,
    TurnCardTypeEnum,
    VerificationEnum,
)


class Ancestor(TypedDict):
    """A belief of the line, in short."""

    id: str
    statement: str
    context: NotRequired[str]
    confidence: float
    status: NotRequired["BeliefStatus"]
    status_reason: NotRequired[str]
    evidence_count: NotRequired[int]
    created_at: str


class Belief(Ancestor):
    """A belief."""

    subject: NotRequired[str]
    predicate: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    fact_type: NotRequired["FactTypeEnum"]
    language: NotRequired[str]
    scope: NotRequired["ScopeEnum"]
    project: str | None
    user: NotRequired[str]
    alpha: NotRequired[float]
    beta: NotRequired[float]
    interval: list[float]
    is_pinned: NotRequired[bool]
    importance: NotRequired[int]
    peak_confidence: NotRequired[float]
    prediction_error: NotRequired[float]
    storage_strength: NotRequired[int]
    updated_at: str
    last_reinforced_at: NotRequired[str | None]
    last_verified_at: NotRequired[str | None]
    valid_from: NotRequired[str | None]
    valid_until: NotRequired[str | None]


class Decision(TypedDict):
    """What a gate decided."""

    gate: str
    passed: bool
    reason: str
    facts: NotRequired[Any]
    twin: NotRequired[str | None]
    cycle: NotRequired[str | None]
    is_undone: bool
    created_at: str


class Evidence(TypedDict):
    """One episode's word on a belief."""

    episode: str
    text: str
    claim: str
    speaker: str
    origin: str
    occurred_at: str
    verdict: str
    kind: str
    basis: str
    weight: float
    reason: str
    cycle: str | None


class Founding(TypedDict):
    """What a belief was born of."""

    cycle: str
    job: int
    verdicts: dict[str, int]


class Relative(TypedDict):
    """A belief that another came from."""

    id: str
    statement: str
    kind: str
    reason: str


class Lineage(TypedDict):
    """Where a belief came from, and what came from it."""

    parents: list["Relative"]
    children: list["Relative"]


class BeliefCard(Belief):
    """A belief with its evidence, its gates' decisions and its lineage, for the schema."""

    evidence: list["Evidence"]
    hidden_evidence: int
    origins: dict[str, int]
    founding: "Founding | None"
    decisions: list["Decision"]
    lineage: "Lineage"
    additive_confidence: float | None


class BeliefPage(TypedDict):
    results: list["Belief"]
    next: str | None


class Change(TypedDict):
    """A belief after one change, and who made it."""

    at: str
    recorded_at: str
    change: str
    actor: str
    reason: str
    statement: str
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    status: NotRequired["BeliefStatus"]
    status_reason: NotRequired[str]
    alpha: NotRequired[float]
    beta: NotRequired[float]
    confidence: float
    evidence_count: NotRequired[int]
    is_pinned: NotRequired[bool]
    valid_from: NotRequired[str | None]
    valid_until: NotRequired[str | None]


class ChangePage(TypedDict):
    results: list["Change"]
    next: str | None


class Episode(TypedDict):
    """An episode."""

    id: str
    text: str
    summary: NotRequired[str]
    project: str | None
    user: NotRequired[str]
    agent: NotRequired[str]
    session: NotRequired[str]
    document: NotRequired[str]
    speaker: NotRequired[str]
    source: NotRequired["SourceEnum"]
    language: NotRequired[str]
    entities: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    category: NotRequired[str]
    kind: "EpisodeKind"
    confidence: NotRequired[float | None]
    tier: str
    importance: NotRequired[float]
    is_derived: NotRequired[bool]
    status: NotRequired["EpisodeStatus"]
    state: NotRequired["EpisodeState"]
    state_reason: NotRequired[str]
    created_at: str
    occurred_at: str
    valid_until: NotRequired[str | None]


class EpisodePage(TypedDict):
    results: list["Episode"]
    next: str | None


class LineageChange(TypedDict):
    """How one belief became another."""

    parent: str
    child: str
    kind: "LineageChangeKindEnum"
    reason: NotRequired[str]
    cycle: NotRequired[str | None]
    created_at: str


class Family(TypedDict):
    """All that a belief came from, and all that came of it, oldest first."""

    beliefs: list["Ancestor"]
    changes: list["LineageChange"]


class Link(TypedDict):
    """A link to another episode."""

    episode: str
    text: str
    kind: "EdgeKind"
    is_cause: bool
    weight: float
    confidence: float
    last_seen_at: str


class SaidTurn(TypedDict):
    """A turn of a conversation, as it was said."""

    session: str
    number: int
    turn_id: str | None
    role: "RoleEnum"
    speaker: str
    content: str
    occurred_at: str


class Transition(TypedDict):
    """A change of a status."""

    old: str
    new: str
    reason: str
    actor: str
    at: str


class Word(TypedDict):
    """What an episode says of a belief."""

    belief: str
    statement: str
    status: str
    confidence: float
    verdict: str
    kind: str
    basis: str
    weight: float
    reason: str
    cycle: str | None


class EpisodeCard(Episode):
    """An episode with what became of it, for the schema."""

    type: "EpisodeCardTypeEnum"
    knowledge: "KnowledgeEnum"
    access_count: int
    accessed_at: str | None
    beliefs: list["Word"]
    hidden_beliefs: int
    transitions: list["Transition"]
    names: list[str]
    links: list["Link"]
    turns: list["SaidTurn"]
    other_turns: int
    causes: NotRequired[list[str]]
    verbatim: NotRequired[str]
    confirmations: NotRequired[int]
    confirmed_at: NotRequired[str | None]
    distance: NotRequired[float | None]
    surprise: NotRequired[float | None]
    is_near_duplicate: NotRequired[bool]
    origin: str
    valence: NotRequired[float]
    lifecycle_state: NotRequired["LifecycleStateEnum | BlankEnum"]
    verification: NotRequired["VerificationEnum | BlankEnum"]
    feedback: float
    resolved_at: NotRequired[str | None]


class ExpandedBelief(BeliefCard):
    """A belief with its evidence and its use, for the schema."""

    type: "ExpandedBeliefTypeEnum"
    knowledge: "KnowledgeEnum"
    access_count: int
    accessed_at: str | None
    stability: float
    retrieval_strength: float
    feedback: float


class TurnCard(TypedDict):
    """A turn of a conversation, which waits to be read, or was read since it was recalled."""

    type: "TurnCardTypeEnum"
    id: str
    text: str
    project: NotRequired[str | None]
    user: str
    session: str
    number: int
    turn_id: str | None
    role: "RoleEnum"
    speaker: str
    state: str
    episodes: list[str]
    created_at: str
    occurred_at: str


MemoryCard: TypeAlias = "EpisodeCard | ExpandedBelief | TurnCard"


class ClaimedBelief(TypedDict):
    """What a claim says of a belief."""

    id: str
    verdict: str
    statement: str


class ShownClaim(TypedDict):
    """A claim with what became of it, for the schema."""

    episode: str
    number: int
    sentence: str
    subject: NotRequired[str]
    slot: NotRequired[str]
    value: NotRequired[str]
    context: NotRequired[str]
    mode: "ClaimMode"
    kind: NotRequired[str]
    confidence: float
    tier: "Tier"
    is_told: NotRequired[bool]
    is_whole: NotRequired[bool]
    is_denial: NotRequired[bool]
    ended: NotRequired[list[str]]
    holds_from: NotRequired[str | None]
    holds_until: NotRequired[str | None]
    words: NotRequired[str]
    language: NotRequired[str]
    reader: str
    beliefs: list["ClaimedBelief"]


class MemoryClaims(TypedDict):
    """The claims of an episode, in its order; or those that a belief rests on, the newest first."""

    id: str
    read_at: str | None
    claims: list["ShownClaim"]
    other_claims: int
