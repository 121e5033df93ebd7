"""What is done to memories by hand, as JSON has it. Written from the API's schema: change that."""

from typing import NotRequired, TypedDict

from engram_client.types.closed_sets import ForgottenStatusEnum, TimeframeEnum
from engram_client.types.read import Belief
from engram_client.types.stored import Testimony


class BeliefIds(TypedDict):
    """Which beliefs the numbers are about, at most 100 of each kind."""

    recomputed: list[str]
    archived: list[str]
    erased: NotRequired[list[str]]


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


class Feedback(TypedDict):
    """How a memory's feedback stands. Nothing else is told: whoever may write need not be allowed to read."""

    id: str
    feedback: float


class Bereft(TypedDict):
    """What it meant for beliefs."""

    recomputed: int
    archived: int
    erased: NotRequired[int]


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


class Part(TypedDict):
    """One of the beliefs that another is split into."""

    statement: str
    subject: NotRequired[str]
    predicate: NotRequired[str]
    context: NotRequired[str]
    timeframe: NotRequired["TimeframeEnum"]
    evidence: list["Testimony"]


class Reshaped(TypedDict):
    """What came of it."""

    made: list["Belief"]
    changed: list["Belief"]


class Resolved(TypedDict):
    """A commitment that was done with."""

    id: str
    resolved_at: str
