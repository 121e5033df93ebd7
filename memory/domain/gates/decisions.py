"""What gates may know, and what they say."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from memory.domain.changes import ChangePoint
from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy import GatePolicy

DAY = timedelta(days=1)
LIVE = frozenset({BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED})


class GateName(StrEnum):
    """The gates, in the order in which they are walked."""

    CLOSE = "close"
    REVISE = "revise"
    SPLIT = "split"
    MERGE = "merge"
    ARCHIVE = "archive"
    RETURN = "return"


class Reason(StrEnum):
    """Why a gate opened or stayed shut."""

    # close
    CHANGED = "changed"
    NO_CHANGE = "no_change"
    UNLIKELY_CHANGE = "unlikely_change"
    # challenges
    ANNOUNCED = "announced"
    DISPUTED = "disputed"
    UPHELD = "upheld"
    UNCONFIRMED = "unconfirmed"
    OPEN_CHALLENGE = "open_challenge"
    # revise
    DISPROVED = "disproved"
    STILL_CONFIDENT = "still_confident"
    NEVER_CONFIDENT = "never_confident"
    NOT_DESTABILISED = "not_destabilised"
    TOO_DEEP = "too_deep"
    # revise and split
    TOO_FEW_CONTRADICTIONS = "too_few_contradictions"
    TOO_LITTLE_EVIDENCE = "too_little_evidence"
    ONE_ORIGIN_AGAINST = "one_origin_against"
    # split
    TRUE_IN_PART = "true_in_part"
    TOO_FEW_SUPPORTS = "too_few_supports"
    TOO_FEW_PARTIALS = "too_few_partials"
    ONE_ORIGIN_IN_FAVOUR = "one_origin_in_favour"
    # merge
    SAYS_THE_SAME = "says_the_same"
    NO_TWIN = "no_twin"
    GUARD_FAILED = "guard_failed"
    NOT_CONFIDENT_ENOUGH = "not_confident_enough"
    CHANGED_LATELY = "changed_lately"
    FOUND_DIFFERENT_BEFORE = "found_different_before"
    # archive
    LOW_CONFIDENCE = "low_confidence"
    STALE_AND_WEAK = "stale_and_weak"
    DOUBTFUL = "doubtful"
    BY_PERSON = "by_person"
    UNSUPPORTED = "unsupported"
    NO_GROUND = "no_ground"
    RESTORED_BY_PERSON = "restored_by_person"
    # return
    NOT_ARCHIVED = "not_archived"
    FRESH_SUPPORT = "fresh_support"
    CONFIDENT_AGAIN = "confident_again"
    NOT_CONFIDENT_YET = "not_confident_yet"
    ARCHIVED_BY_PERSON = "archived_by_person"
    # several
    NOT_LIVE = "not_live"
    PINNED = "pinned"
    OPEN_STRUCTURAL_JOB = "open_structural_job"
    CHANGED_THIS_CYCLE = "changed_this_cycle"
    UNDONE_LATELY = "undone_lately"


CHALLENGES = frozenset({Reason.ANNOUNCED, Reason.DISPUTED})  # why a belief is challenged by what was said


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """What a gate decided, and the numbers it decided on."""

    gate: GateName
    passed: bool
    reason: Reason
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinFacts:
    """What the merge gate may know of the belief nearest to another, of the same scope, project and user."""

    similarity: float  # reference scale
    passes_guard: bool
    is_live: bool
    confidence: float
    is_pinned: bool = False
    has_open_structural_job: bool = False
    since_changed: timedelta | None = None
    was_found_different: bool = False
    since_undone: timedelta | None = None  # since a person had their merge undone


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefFacts:
    """What gates may know of a belief; counts leave echoes out."""

    status: BeliefStatus
    confidence: float  # by the workspace's model
    evidence_count: int
    since_reinforced: timedelta  # since creation, if never reinforced
    peak_confidence: float = 0.5
    supporting: int = 0
    contradicting: int = 0
    partial: int = 0
    supporting_origins: int = 0
    contradicting_origins: int = 0
    origins_against: int = 0  # of contradicting and partial rows together
    prediction_error: float = 0.0
    error_threshold: float = 0.0
    is_destabilised: bool = False  # the reconsolidation window is open (B6)
    lineage_depth: int = 0
    since_changed: timedelta | None = None  # since the last change of structure or statement; None: as it was born
    is_pinned: bool = False
    is_additive: bool = False  # the workspace counts by R10a
    is_told: bool = False  # somebody said it plainly (E4)
    is_challenged: bool = False  # by what was said, and nothing has borne out either side yet (C1)
    since_restored_by_person: timedelta | None = None
    has_open_structural_job: bool = False
    was_changed_this_cycle: bool = False
    since_revision_undone: timedelta | None = None  # since a person had it undone (B22)
    since_split_undone: timedelta | None = None
    since_close_undone: timedelta | None = None
    change: ChangePoint | None = None
    twin: TwinFacts | None = None

    @property
    def is_live(self) -> bool:
        """Tell whether the belief is believed or disputed, and not history."""
        return self.status in LIVE


class Gate(Protocol):
    """One rule that may change a belief's structure or status."""

    name: GateName

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return the decision on one belief; never raise for a belief that merely stays as it is."""


Condition = tuple[bool, Reason]


def first_unmet(*conditions: Condition) -> Reason | None:
    """Return the reason that stands with the first condition that does not hold; None where all hold."""
    return next((reason for holds, reason in conditions if not holds), None)


def free_to_change(facts: BeliefFacts) -> tuple[Condition, ...]:
    """List what every structural change asks of a belief: at most one at a time, and one a cycle."""
    return (
        (facts.is_live, Reason.NOT_LIVE),
        (not facts.has_open_structural_job, Reason.OPEN_STRUCTURAL_JOB),
        (not facts.was_changed_this_cycle, Reason.CHANGED_THIS_CYCLE),
    )


def freedom_numbers(facts: BeliefFacts) -> dict[str, float]:
    """Name among the facts what `free_to_change` asks."""
    return {
        "is_live": float(facts.is_live),
        "has_open_structural_job": float(facts.has_open_structural_job),
        "was_changed_this_cycle": float(facts.was_changed_this_cycle),
    }


def not_undone_lately(since: timedelta | None, policy: GatePolicy) -> Condition:
    """Ask that no person had the same change undone within the time for which their word stands (B22)."""
    return since is None or since > policy.undone_days * DAY, Reason.UNDONE_LATELY


def undone_numbers(since: timedelta | None) -> dict[str, float]:
    """Name among the facts when the same change was undone, if it ever was."""
    return {} if since is None else {"days_since_undone": as_days(since)}


def as_days(span: timedelta) -> float:
    """Return a span in days."""
    return span / DAY
