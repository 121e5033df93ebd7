"""What is told of all beliefs, of cycles and of exports, as JSON has it. Written from the API's schema: change that."""

from typing import Any, NotRequired, TypedDict

from engram_client.types.closed_sets import ContradictionStateEnum, CycleState, TriggerEnum
from engram_client.types.read import Belief


class Side(TypedDict):
    """One of the two."""

    id: str
    statement: str


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


class ContradictionLook(ContradictionList):
    """What a look found."""

    found: int
    outcomes: dict[str, int]
    stopped: str


class MetaRound(TypedDict):
    """Beliefs about groups of beliefs."""

    groups: int
    made: list["Belief"]
    unanswered: str


class Duplicate(TypedDict):
    """Two beliefs that may say the same."""

    ids: list[str]
    statements: list[str]
    similarity: float
    passes_guard: bool


class Proposed(TypedDict):
    """Pairs that the next cycle's merge gate looks at."""

    proposed: list["Duplicate"]


class Faded(TypedDict):
    """A belief of which nothing was said for long."""

    id: str
    statement: str
    effective_confidence: float
    is_prunable: bool


class Pruned(TypedDict):
    """Beliefs that faded."""

    pruned: list["Faded"]
    dry_run: bool


class Reflection(TypedDict):
    """What a look at all active beliefs found."""

    beliefs: int
    duplicate_count: int
    duplicates: list["Duplicate"]
    faded_count: int
    faded: list["Faded"]


class Subjects(TypedDict):
    """Subjects that were filled in."""

    subjects: dict[str, str]


class Step(TypedDict):
    """One step of a cycle."""

    name: str
    started_at: str
    finished_at: NotRequired[str | None]
    counts: NotRequired[Any]


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


class CycleStarted(TypedDict):
    id: str
    state: str
    note: NotRequired[str]


class Estimate(TypedDict):
    """What the calls would come to, about."""

    calls: dict[str, int]
    tokens: int
    cost_usd: float


class PlannedJob(TypedDict):
    """A job that the cycle would have."""

    kind: str
    belief: str | None
    beliefs: list[str]
    episodes: list[str]
    calls: int


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


class Released(TypedDict):
    """Held episodes that take part again."""

    id: str
    released: int


class UndoneCounts(TypedDict):
    """How many of what went back."""

    restored: int
    invalidated: int
    evidence: int
    lineage: int
    held: int


class Undone(TypedDict):
    """A cycle that was undone."""

    id: str
    state: "CycleState"
    undone_at: str
    undone_by: str
    undone: "UndoneCounts"


class Imported(TypedDict):
    """How much was read."""

    episodes: int
    beliefs: int
    cycles: int
    evidence: int
    rows: int
    recomputed: int
    with_secrets: int
