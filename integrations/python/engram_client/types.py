"""What goes into calls and comes back, as JSON has it. Written from the API's schema: change that."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

ActionEnum: TypeAlias = Literal["created", "reinforced", "weakened", "superseded"]
BeliefStatus: TypeAlias = Literal[
    "active", "challenged", "revised", "merged", "split", "archived", "invalidated", "pruned", "forgotten"
]
BlankEnum: TypeAlias = Literal[""]
ClaimMode: TypeAlias = Literal[
    "asserted", "change", "advised", "asked", "hypothetical", "wished", "quoted", "ironic", "planned"
]
ContradictionStateEnum: TypeAlias = Literal["open", "contradicts", "compatible", "needs_a_person", "dismissed"]
CycleState: TypeAlias = Literal["queued", "running", "finished", "over_budget", "cancelled", "failed"]
EdgeKind: TypeAlias = Literal["entity", "time", "causal"]
EpisodeCardTypeEnum: TypeAlias = Literal["episode"]
EpisodeKind: TypeAlias = Literal["episode", "note"]
EpisodeState: TypeAlias = Literal["new", "leased", "pooled", "settled", "failed", "held"]
EpisodeStatus: TypeAlias = Literal[
    "active", "challenged", "invalidated", "merged", "superseded", "archived", "forgotten"
]
EpisodesBody: TypeAlias = "EpisodeLine | EpisodeBatch"
ExpandedBeliefTypeEnum: TypeAlias = Literal["belief"]
ExtractionEnum: TypeAlias = Literal["queued", "none"]
FactTypeEnum: TypeAlias = Literal["factual", "preference", "procedural", "architectural", "meta", "insight"]
ForgottenStatusEnum: TypeAlias = Literal["forgotten", "erased"]
KnowledgeEnum: TypeAlias = Literal["fact", "procedure", "narrative"]
LifecycleStateEnum: TypeAlias = Literal["candidate", "validated", "active", "stale", "archived"]
LineErrorStatusEnum: TypeAlias = Literal[403, 409, 413, 422]
LineageChangeKindEnum: TypeAlias = Literal["revision", "split", "merge", "supersession", "synthesis"]
MemoryCard: TypeAlias = "EpisodeCard | ExpandedBelief | TurnCard"
MemoryType: TypeAlias = Literal["episode", "belief"]
ModeEnum: TypeAlias = Literal["facts_only", "facts_plus_rules", "full_context"]
NullEnum: TypeAlias = None
ProfileEnum: TypeAlias = Literal["default", "associative"]
ReasonEnum: TypeAlias = Literal["failures", "auth", "billing", "cap"]
RememberAnswerStateEnum: TypeAlias = Literal["done", "queued"]
RoleEnum: TypeAlias = Literal["user", "assistant", "tool", "system"]
ScopeEnum: TypeAlias = Literal["global", "project"]
Signal: TypeAlias = Literal["high", "medium", "low", "none"]
SourceEnum: TypeAlias = Literal["human", "ai", "interaction", "ingest", "dream"]
Tier: TypeAlias = Literal["explicit", "implied", "inferred", "speculative"]
TimeframeEnum: TypeAlias = Literal["current", "past", "always"]
TriggerEnum: TypeAlias = Literal["schedule", "episodes", "person", "replay", "backlog"]
TurnCardTypeEnum: TypeAlias = Literal["turn"]
TurnsBody: TypeAlias = "TurnLine | TurnBatch"
ValueEnum: TypeAlias = Literal["useful", "wrong"]
VerdictEnum: TypeAlias = Literal["SUPPORTS", "CONTRADICTS", "PARTIAL"]
VerificationEnum: TypeAlias = Literal["unverified", "user_confirmed", "system_inferred", "disputed"]


class AcceptedTurn(TypedDict):
    """How strongly a turn asks to be remembered, and how its conversation stands."""

    signal: "Signal"
    buffered: int
    extraction: "ExtractionEnum"
    deduplicated: NotRequired[bool | None]


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


class Backlog(TypedDict):
    """What waits for cycles, and how fast those that ended lately took it away."""

    waiting: int
    per_minute: float | None
    done_at: str | None


class Belief(TypedDict):
    """A belief."""

    id: str
    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    fact_type: NotRequired["FactTypeEnum"]
    language: NotRequired[str]
    scope: NotRequired["ScopeEnum"]
    project: str | None
    user: NotRequired[str]
    alpha: NotRequired[float]
    beta: NotRequired[float]
    confidence: float
    interval: list[float]
    evidence_count: NotRequired[int]
    status: NotRequired["BeliefStatus"]
    status_reason: NotRequired[str]
    is_pinned: NotRequired[bool]
    importance: NotRequired[int]
    peak_confidence: NotRequired[float]
    prediction_error: NotRequired[float]
    storage_strength: NotRequired[int]
    created_at: str
    updated_at: str
    last_reinforced_at: NotRequired[str | None]
    last_verified_at: NotRequired[str | None]
    valid_from: NotRequired[str | None]
    valid_until: NotRequired[str | None]


class BeliefActionAnswer(TypedDict):
    """What the text did to one belief."""

    id: str
    action: "ActionEnum"


class BeliefCard(TypedDict):
    """A belief with its evidence, its gates' decisions and its lineage, for the schema."""

    id: str
    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    fact_type: NotRequired["FactTypeEnum"]
    language: NotRequired[str]
    scope: NotRequired["ScopeEnum"]
    project: str | None
    user: NotRequired[str]
    alpha: NotRequired[float]
    beta: NotRequired[float]
    confidence: float
    interval: list[float]
    evidence_count: NotRequired[int]
    status: NotRequired["BeliefStatus"]
    status_reason: NotRequired[str]
    is_pinned: NotRequired[bool]
    importance: NotRequired[int]
    peak_confidence: NotRequired[float]
    prediction_error: NotRequired[float]
    storage_strength: NotRequired[int]
    created_at: str
    updated_at: str
    last_reinforced_at: NotRequired[str | None]
    last_verified_at: NotRequired[str | None]
    valid_from: NotRequired[str | None]
    valid_until: NotRequired[str | None]
    evidence: list["Evidence"]
    hidden_evidence: int
    origins: dict[str, int]
    founding: "Founding | None"
    decisions: list["Decision"]
    lineage: "Lineage"
    additive_confidence: float | None


class BeliefIds(TypedDict):
    """Which beliefs the numbers are about, at most 100 of each kind."""

    recomputed: list[str]
    archived: list[str]
    erased: NotRequired[list[str]]


class BeliefPage(TypedDict):
    results: list["Belief"]
    next: str | None


class BeliefRequest(TypedDict):
    """A belief in a curator's words; its project and user follow from its evidence."""

    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    fact_type: NotRequired["FactTypeEnum"]
    importance: NotRequired[int]
    evidence: list["Testimony"]
    reason: NotRequired[str]


class Bereft(TypedDict):
    """What it meant for beliefs."""

    recomputed: int
    archived: int
    erased: NotRequired[int]


class Budget(TypedDict):
    """What models used since midnight UTC, recall's embeddings apart, and the caps; null for no cap."""

    tokens_today: int
    daily_token_cap: int | None
    cost_usd_today: float
    daily_cost_cap_usd: float | None
    is_cap_reached: bool
    recall_tokens_today: int
    daily_recall_token_cap: int


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


class Channel(TypedDict):
    """A channel's word on a memory."""

    rank: int
    score: float


class ClaimedBelief(TypedDict):
    """What a claim says of a belief."""

    id: str
    verdict: str
    statement: str


class ContextRequest(TypedDict):
    """What a task is about."""

    query: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    session: NotRequired[str | None]
    max_tokens: NotRequired[int]


class Contradiction(TypedDict):
    """Two beliefs of one project, user and language that may contradict each other."""

    id: int
    beliefs: list["Side"]
    similarity: float
    state: "ContradictionStateEnum"
    reason: str
    checked_at: str | None


class ContradictionList(TypedDict):
    """What somebody should look at."""

    total: int
    unasked: int
    pairs: list["Contradiction"]


class ContradictionLook(TypedDict):
    """What a look found."""

    total: int
    unasked: int
    pairs: list["Contradiction"]
    found: int
    outcomes: dict[str, int]
    stopped: str


class ContradictionRequest(TypedDict):
    """What is to be done about pairs that may contradict each other."""

    check: NotRequired[bool]
    again: NotRequired[bool]
    limit: NotRequired[int]


class CorrectionRequest(TypedDict):
    """What is wrong about a belief, and, with a statement, what is right instead."""

    reason: str
    statement: NotRequired[str]
    subject: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]


class CurationRequest(TypedDict):
    """Why something is done to a belief."""

    reason: str


class Cycle(TypedDict):
    """One run of consolidation."""

    id: str
    state: NotRequired["CycleState"]
    state_reason: NotRequired[str]
    trigger: "TriggerEnum"
    now: str
    steps: list["Step"]
    counts: dict[str, int]
    calls: int
    tokens: int
    cost_usd: float
    budget_spent: NotRequired[str]
    opened_at: str
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]
    undone_at: NotRequired[str | None]
    undone_by: NotRequired[str]


class CyclePage(TypedDict):
    results: list["Cycle"]
    next: str | None


class CycleRequest(TypedDict):
    """How a cycle is to be started."""

    dry_run: NotRequired[bool]


class CycleStarted(TypedDict):
    id: str
    state: str
    note: NotRequired[str]


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


class Duplicate(TypedDict):
    """Two beliefs that may say the same."""

    ids: list[str]
    statements: list[str]
    similarity: float
    passes_guard: bool


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


class EpisodeBatch(TypedDict):
    """Many episodes at once; each is answered for itself."""

    episodes: list["EpisodeLine"]


class EpisodeCard(TypedDict):
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


class EpisodeLine(TypedDict):
    """One thing that happened or was said. All but the text may be left out, or null."""

    text: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    agent: NotRequired[str | None]
    session: NotRequired[str | None]
    document: NotRequired[str | None]
    speaker: NotRequired[str | None]
    source: NotRequired[Literal["human", "ai", "interaction", "ingest"] | None]
    occurred_at: NotRequired[str | None]
    valid_until: NotRequired[str | None]
    entities: NotRequired[list[str] | None]
    category: NotRequired[str | None]
    importance: NotRequired[float | None]
    tags: NotRequired[list[str] | None]
    language: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class EpisodePage(TypedDict):
    results: list["Episode"]
    next: str | None


class EpisodesAnswer(TypedDict):
    """One answer for each line, in their order."""

    episodes: list["StoredEpisode | RejectedEpisode"]


class EraseRequest(TypedDict):
    """Whose memories are erased: one user's, or all of the workspace, which is named to be sure."""

    user: NotRequired[str]
    workspace: NotRequired[str]


class Erasure(TypedDict):
    """How much was erased."""

    episodes: int
    beliefs: int
    turns: int
    calls: int
    released: int
    recomputed: int
    archived: int
    belief_ids: NotRequired["BeliefIds"]


class Estimate(TypedDict):
    """What the calls would come to, about."""

    calls: dict[str, int]
    tokens: int
    cost_usd: float


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


class ExpandedBelief(TypedDict):
    """A belief with its evidence and its use, for the schema."""

    type: "ExpandedBeliefTypeEnum"
    knowledge: "KnowledgeEnum"
    access_count: int
    accessed_at: str | None
    stability: float
    retrieval_strength: float
    feedback: float
    id: str
    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    fact_type: NotRequired["FactTypeEnum"]
    language: NotRequired[str]
    scope: NotRequired["ScopeEnum"]
    project: str | None
    user: NotRequired[str]
    alpha: NotRequired[float]
    beta: NotRequired[float]
    confidence: float
    interval: list[float]
    evidence_count: NotRequired[int]
    status: NotRequired["BeliefStatus"]
    status_reason: NotRequired[str]
    is_pinned: NotRequired[bool]
    importance: NotRequired[int]
    peak_confidence: NotRequired[float]
    prediction_error: NotRequired[float]
    storage_strength: NotRequired[int]
    created_at: str
    updated_at: str
    last_reinforced_at: NotRequired[str | None]
    last_verified_at: NotRequired[str | None]
    valid_from: NotRequired[str | None]
    valid_until: NotRequired[str | None]
    evidence: list["Evidence"]
    hidden_evidence: int
    origins: dict[str, int]
    founding: "Founding | None"
    decisions: list["Decision"]
    lineage: "Lineage"
    additive_confidence: float | None


class Explanation(TypedDict):
    """How a memory came to its score."""

    channels: dict[str, "Channel"]
    components: dict[str, float | None]
    path: list["PathStep"]


class Faded(TypedDict):
    """A belief of which nothing was said for long."""

    id: str
    statement: str
    effective_confidence: float
    is_prunable: bool


class Family(TypedDict):
    """All that a belief came from, and all that came of it, oldest first."""

    beliefs: list["Ancestor"]
    changes: list["LineageChange"]


class Feedback(TypedDict):
    """How a memory's feedback stands. Nothing else is told: whoever may write need not be allowed to read."""

    id: str
    feedback: float


class FeedbackRequest(TypedDict):
    """A word on the use of a memory."""

    value: "ValueEnum"


class Forgotten(TypedDict):
    """A memory that is gone."""

    id: str
    status: "ForgottenStatusEnum"
    beliefs: "Bereft"
    belief_ids: NotRequired["BeliefIds"]
    released: NotRequired[int]
    merged: NotRequired[int]
    merged_ids: NotRequired[list[str]]
    summaries: NotRequired[int]
    summary_ids: NotRequired[list[str]]
    turns: NotRequired[int]


class Founding(TypedDict):
    """What a belief was born of."""

    cycle: str
    job: int
    verdicts: dict[str, int]


class Graph(TypedDict):
    """What links memories."""

    entities: int
    edges: int
    boxes: int
    unlinked: int


class Imported(TypedDict):
    """How much was read."""

    episodes: int
    beliefs: int
    cycles: int
    evidence: int
    rows: int
    recomputed: int
    with_secrets: int


class LastCycle(TypedDict):
    """The newest cycle, briefly."""

    id: str
    state: str
    started_at: str | None
    finished_at: str | None


class LineError(TypedDict):
    """Why a line was not stored."""

    index: int
    status: "LineErrorStatusEnum"
    detail: str
    errors: NotRequired[dict[str, list[str]] | None]


class Lineage(TypedDict):
    """Where a belief came from, and what came from it."""

    parents: list["Relative"]
    children: list["Relative"]


class LineageChange(TypedDict):
    """How one belief became another."""

    parent: str
    child: str
    kind: "LineageChangeKindEnum"
    reason: NotRequired[str]
    cycle: NotRequired[str | None]
    created_at: str


class Link(TypedDict):
    """A link to another episode."""

    episode: str
    text: str
    kind: "EdgeKind"
    is_cause: bool
    weight: float
    confidence: float
    last_seen_at: str


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


class MemoryClaims(TypedDict):
    """The claims of an episode, in its order; or those that a belief rests on, the newest first."""

    id: str
    read_at: str | None
    claims: list["ShownClaim"]
    other_claims: int


class MergeRequest(TypedDict):
    """Two beliefs that say the same."""

    beliefs: list[str]
    statement: NotRequired[str]
    reason: str


class MetaRound(TypedDict):
    """Beliefs about groups of beliefs."""

    groups: int
    made: list["Belief"]
    unanswered: str


class Missed(TypedDict):
    """A memory that fell short."""

    memory: "Memory"
    reason: str


class Models(TypedDict):
    """The models in use."""

    llm: str
    verdicts: str
    embeddings: str
    reranker: str
    offline: bool


class Part(TypedDict):
    """One of the beliefs that another is split into."""

    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    evidence: list["Testimony"]


class PathStep(TypedDict):
    """A memory on the way to another."""

    id: str
    confidence: float
    kind: "EdgeKind | NullEnum"
    weight: float | None


class Pause(TypedDict):
    """Why no cycle starts by itself."""

    reason: "ReasonEnum"
    detail: str
    failures: int
    since: str
    until: str


class PlannedJob(TypedDict):
    """A job that the cycle would have."""

    kind: str
    belief: str | None
    beliefs: list[str]
    episodes: list[str]
    calls: int


class Problem(TypedDict):
    """RFC 9457."""

    type: NotRequired[str]
    title: str
    status: int
    detail: str
    errors: NotRequired[dict[str, Any]]
    id: NotRequired[str]
    line: NotRequired[int]


class Proposed(TypedDict):
    """Pairs that the next cycle's merge gate looks at."""

    proposed: list["Duplicate"]


class PruneRequest(TypedDict):
    """Whether it is meant."""

    dry_run: NotRequired[bool]


class Pruned(TypedDict):
    """Beliefs that faded."""

    pruned: list["Faded"]
    dry_run: bool


class RecallRequest(TypedDict):
    """A question to the memory."""

    query: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    session: NotRequired[str | None]
    agent: NotRequired[str | None]
    limit: NotRequired[int]
    mode: NotRequired["ModeEnum"]
    profile: NotRequired["ProfileEnum"]
    types: NotRequired[list["MemoryType"]]
    occurred_after: NotRequired[str]
    occurred_before: NotRequired[str]
    as_of: NotRequired[str]
    include_expired: NotRequired[bool]
    graph: NotRequired[bool]
    explain: NotRequired[bool]


class Recalled(TypedDict):
    """Results, best first."""

    results: list["Memory"]
    degraded: list[str]
    near_misses: NotRequired[list["Missed"]]


class Recollection(TypedDict):
    """Lines to put before a conversation; an empty text if nothing comes up."""

    text: str
    ids: list[str]


class RecollectionRequest(TypedDict):
    """What a conversation is about."""

    query: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    session: NotRequired[str | None]
    max_tokens: NotRequired[int]


class Reflection(TypedDict):
    """What a look at all active beliefs found."""

    beliefs: int
    duplicate_count: int
    duplicates: list["Duplicate"]
    faded_count: int
    faded: list["Faded"]


class Rehearsal(TypedDict):
    """What a cycle would do now."""

    dry_run: NotRequired[bool]
    now: str
    episodes: int
    unembedded: int
    jobs: list["PlannedJob"]
    put_back: int
    archive_due: int
    estimate: "Estimate"


class RejectedEpisode(TypedDict):
    error: "LineError"


class RejectedTurn(TypedDict):
    error: "LineError"


class Relative(TypedDict):
    """A belief that another came from."""

    id: str
    statement: str
    kind: str
    reason: str


class Released(TypedDict):
    """Held episodes that take part again."""

    id: str
    released: int


class RememberAnswer(TypedDict):
    """The episode that stands for the text, and what it did to beliefs by now."""

    episode_id: str
    state: "RememberAnswerStateEnum"
    reason: NotRequired[str | None]
    beliefs: list["BeliefActionAnswer"]
    deduplicated: bool
    forgotten: NotRequired[bool | None]


class RememberRequest(TypedDict):
    """A text to be remembered. All but the text may be left out, or null."""

    text: str
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    agent: NotRequired[str | None]
    session: NotRequired[str | None]
    speaker: NotRequired[str | None]
    source: NotRequired[Literal["human", "ai", "interaction", "ingest"] | None]
    occurred_at: NotRequired[str | None]
    idempotency_key: NotRequired[str | None]


class Remembering(TypedDict):
    """Texts that are to be remembered at once."""

    queued: int
    failed: int


class Reshaped(TypedDict):
    """What came of it."""

    made: list["Belief"]
    changed: list["Belief"]


class Resolved(TypedDict):
    """A commitment that was done with."""

    id: str
    resolved_at: str


class SaidTurn(TypedDict):
    """A turn of a conversation, as it was said."""

    session: str
    number: int
    turn_id: str | None
    role: "RoleEnum"
    speaker: str
    content: str
    occurred_at: str


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


class Side(TypedDict):
    """One of the two."""

    id: str
    statement: str


class SplitRequest(TypedDict):
    """What a belief is split into."""

    parts: list["Part"]
    reason: str


class Status(TypedDict):
    """How a memory stands; a key limited to projects sees its own counts alone."""

    version: str
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


class Step(TypedDict):
    """One step of a cycle."""

    name: str
    started_at: str
    finished_at: NotRequired[str | None]
    counts: NotRequired[Any]


class StoredEpisode(TypedDict):
    """The episode that stands for a line: a new one, or the one that was there already."""

    id: str
    deduplicated: bool
    forgotten: NotRequired[bool | None]


class Subjects(TypedDict):
    """Subjects that were filled in."""

    subjects: dict[str, str]


class Testimony(TypedDict):
    """An episode, and what it says of the belief."""

    episode: str
    verdict: NotRequired["VerdictEnum"]


class Transition(TypedDict):
    """A change of a status."""

    old: str
    new: str
    reason: str
    actor: str
    at: str


class TurnBatch(TypedDict):
    """Many turns at once, of one conversation or several, in the order in which they were said."""

    turns: list["TurnLine"]


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


class TurnLine(TypedDict):
    """What one side of a conversation said. Session, role and content are needed; the rest may be left out, or null."""

    session: str
    role: "RoleEnum"
    content: str
    turn_id: NotRequired[str | None]
    project: NotRequired[str | None]
    user: NotRequired[str | None]
    speaker: NotRequired[str | None]
    occurred_at: NotRequired[str | None]


class TurnsAnswer(TypedDict):
    """One answer for each turn, in their order."""

    turns: list["AcceptedTurn | RejectedTurn"]


class UndoRequest(TypedDict):
    """Why a cycle is undone."""

    reason: NotRequired[str]


class Undone(TypedDict):
    """A cycle that was undone."""

    id: str
    state: "CycleState"
    undone_at: str
    undone_by: str
    undone: "UndoneCounts"


class UndoneCounts(TypedDict):
    """How many of what went back."""

    restored: int
    invalidated: int
    evidence: int
    lineage: int
    held: int


class WaitingTurns(TypedDict):
    """Turns of conversations that are not read yet."""

    buffered: int
    leased: int
    dead: int
    oldest_at: str | None


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
