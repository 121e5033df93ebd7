"""The gates: pure rules that decide over a belief's structure and status, each with its reason and its facts.

They run in the order of `GATES`; a further gate is an entry there. `BeliefFacts` is all that a gate may know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from memory.domain.evidence import ChangePoint
from memory.domain.lifecycle import LIVE, BeliefStatus, Reason
from memory.domain.policy_beliefs import GatePolicy

DAY = timedelta(days=1)


class GateName(StrEnum):
    """The gates, in the order in which they are walked."""

    CLOSE = "close"
    REVISE = "revise"
    SPLIT = "split"
    MERGE = "merge"
    ARCHIVE = "archive"
    RETURN = "return"


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


class CloseGate:
    """Close what was so and is so no more, found by the order of what was said; no dispute without an order (C1)."""

    name = GateName.CLOSE

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return whether the belief is closed, or the first condition that keeps it as it is."""
        obstacle = first_unmet(
            *free_to_change(facts),
            (not facts.is_pinned, Reason.PINNED),
            (not _was_restored_lately(facts, policy), Reason.RESTORED_BY_PERSON),
            (facts.change is not None, Reason.NO_CHANGE),
            (_is_likely_change(facts, policy), Reason.UNLIKELY_CHANGE),
            (_is_borne_out_change(facts, policy), Reason.TOO_FEW_CONTRADICTIONS),
            (_is_widely_told_change(facts, policy), Reason.ONE_ORIGIN_AGAINST),
            not_undone_lately(facts.since_close_undone, policy),
        )
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.CHANGED,
            facts=_close_numbers(facts) | freedom_numbers(facts) | undone_numbers(facts.since_close_undone),
        )


def _was_restored_lately(facts: BeliefFacts, policy: GatePolicy) -> bool:
    restored = facts.since_restored_by_person
    return restored is not None and restored <= policy.archive_restored_days * DAY


def _is_likely_change(facts: BeliefFacts, policy: GatePolicy) -> bool:
    """Ask for more where so few contradict that chance may have put them side by side."""
    if facts.change is None:
        return False
    is_few = facts.change.contradicting <= policy.close_contradictions
    return facts.change.score >= (policy.close_few_score if is_few else policy.close_score)


def _is_borne_out_change(facts: BeliefFacts, policy: GatePolicy) -> bool:
    return facts.change is not None and facts.change.contradicting >= policy.close_contradictions


def _is_widely_told_change(facts: BeliefFacts, policy: GatePolicy) -> bool:
    """Ask for three origins, or two that leave little doubt."""
    if facts.change is None:
        return False
    is_sure = facts.change.score_by_origin >= policy.close_sure_score
    return facts.change.origins >= policy.close_origins - int(is_sure)


def _close_numbers(facts: BeliefFacts) -> dict[str, float]:
    numbers = {
        "confidence": facts.confidence,
        "evidence_count": float(facts.evidence_count),
        "is_pinned": float(facts.is_pinned),
    }
    if facts.change is None:
        return numbers
    return numbers | {
        "score": facts.change.score,
        "score_by_origin": facts.change.score_by_origin,
        "contradicting": float(facts.change.contradicting),
        "contradicting_origins": float(facts.change.origins),
    }


class ReviseGate:
    """Revise what was once believed, is so no more, and surprises by it (B15)."""

    name = GateName.REVISE

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return whether the belief is revised, or the first condition that keeps it as it is."""
        obstacle = first_unmet(
            *free_to_change(facts),
            (not facts.is_challenged, Reason.OPEN_CHALLENGE),
            (facts.confidence < policy.revise_confidence, Reason.STILL_CONFIDENT),
            (facts.peak_confidence > policy.revise_peak, Reason.NEVER_CONFIDENT),
            (facts.contradicting >= policy.revise_contradictions, Reason.TOO_FEW_CONTRADICTIONS),
            (facts.evidence_count >= policy.revise_evidence, Reason.TOO_LITTLE_EVIDENCE),
            (facts.contradicting_origins >= policy.revise_origins, Reason.ONE_ORIGIN_AGAINST),
            # The additive model has no expectation that evidence could surprise (R10a).
            (facts.is_additive or facts.is_destabilised, Reason.NOT_DESTABILISED),
            (facts.lineage_depth < policy.revise_depth, Reason.TOO_DEEP),
            not_undone_lately(facts.since_revision_undone, policy),
        )
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.DISPROVED,
            facts={
                "confidence": facts.confidence,
                "peak_confidence": facts.peak_confidence,
                "contradicting": float(facts.contradicting),
                "contradicting_origins": float(facts.contradicting_origins),
                "evidence_count": float(facts.evidence_count),
                "prediction_error": facts.prediction_error,
                "error_threshold": facts.error_threshold,
                "lineage_depth": float(facts.lineage_depth),
            }
            | freedom_numbers(facts)
            | undone_numbers(facts.since_revision_undone),
        )


class SplitGate:
    """Split what is too wide: true half the time, so in no error, but in need of its contexts (B12)."""

    name = GateName.SPLIT

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return whether the belief is split, or the first condition that keeps it whole; PARTIAL speaks against."""
        against = facts.contradicting + facts.partial
        obstacle = first_unmet(
            *free_to_change(facts),
            (against >= policy.split_contradictions, Reason.TOO_FEW_CONTRADICTIONS),
            (facts.supporting >= policy.split_supports, Reason.TOO_FEW_SUPPORTS),
            (facts.partial >= policy.split_partials, Reason.TOO_FEW_PARTIALS),
            (facts.evidence_count >= policy.split_evidence, Reason.TOO_LITTLE_EVIDENCE),
            (facts.origins_against >= policy.split_origins, Reason.ONE_ORIGIN_AGAINST),
            (facts.supporting_origins >= policy.split_origins, Reason.ONE_ORIGIN_IN_FAVOUR),
            not_undone_lately(facts.since_split_undone, policy),
        )
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.TRUE_IN_PART,
            facts={
                "supporting": float(facts.supporting),
                "supporting_origins": float(facts.supporting_origins),
                "against": float(against),
                "origins_against": float(facts.origins_against),
                "partial": float(facts.partial),
                "evidence_count": float(facts.evidence_count),
            }
            | freedom_numbers(facts)
            | undone_numbers(facts.since_split_undone),
        )


class MergeGate:
    """Merge two beliefs that say the same; no cosine alone does, so the guard must pass and a model agree (B13)."""

    name = GateName.MERGE

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return whether a model is to be asked to merge belief and twin, or what keeps them apart."""
        obstacle = first_unmet(*_merge_conditions(facts, policy))
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.SAYS_THE_SAME,
            facts=_merge_numbers(facts),
        )


def _merge_conditions(facts: BeliefFacts, policy: GatePolicy) -> Iterator[Condition]:
    yield from free_to_change(facts)
    yield not facts.is_pinned, Reason.PINNED
    twin = facts.twin
    if twin is None:
        yield False, Reason.NO_TWIN
        return
    yield twin.is_live and twin.similarity > policy.merge_similarity, Reason.NO_TWIN
    yield twin.passes_guard, Reason.GUARD_FAILED
    yield not twin.was_found_different, Reason.FOUND_DIFFERENT_BEFORE
    yield not_undone_lately(twin.since_undone, policy)
    yield not twin.is_pinned, Reason.PINNED
    yield not twin.has_open_structural_job, Reason.OPEN_STRUCTURAL_JOB
    least = min(facts.confidence, twin.confidence)
    yield least > policy.merge_confidence, Reason.NOT_CONFIDENT_ENOUGH
    yield _has_settled(facts.since_changed, policy) and _has_settled(twin.since_changed, policy), Reason.CHANGED_LATELY


def _has_settled(since_changed: timedelta | None, policy: GatePolicy) -> bool:
    return since_changed is None or since_changed > policy.merge_settled_days * DAY


def _merge_numbers(facts: BeliefFacts) -> dict[str, float]:
    numbers = {"confidence": facts.confidence, "is_pinned": float(facts.is_pinned)} | freedom_numbers(facts)
    if facts.since_changed is not None:
        numbers["days_since_changed"] = as_days(facts.since_changed)
    return numbers | (_twin_numbers(facts.twin) if facts.twin else {})


def _twin_numbers(twin: TwinFacts) -> dict[str, float]:
    numbers = {
        "similarity": twin.similarity,
        "passes_guard": float(twin.passes_guard),
        "twin_confidence": twin.confidence,
        "twin_is_live": float(twin.is_live),
        "twin_is_pinned": float(twin.is_pinned),
        "twin_has_open_structural_job": float(twin.has_open_structural_job),
        "twin_was_found_different": float(twin.was_found_different),
    }
    if twin.since_changed is not None:
        numbers["twin_days_since_changed"] = as_days(twin.since_changed)
    return numbers | undone_numbers(twin.since_undone)


class ArchiveGate:
    """Archive what is disbelieved, stale and weak, or long in doubt (B14)."""

    name = GateName.ARCHIVE

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return the ground for archiving, or what keeps the belief."""
        ground = _archive_ground(facts, policy)
        exemption = _archive_exemption(facts, policy)
        return GateDecision(
            gate=self.name,
            passed=ground is not None and exemption is None,
            reason=exemption or ground or Reason.NO_GROUND,
            facts=_archive_numbers(facts),
        )


def returns_from_archive(*, facts: BeliefFacts, archived_for: Reason, policy: GatePolicy) -> GateDecision:
    """Decide whether an archived belief that was just supported comes back under its id (B14).

    Support cures staleness at once, and low confidence only above `return_confidence`, so that a belief does not
    flicker around the threshold that archived it. What a person archived stays.
    """
    reason = _return_reason(facts, archived_for, policy)
    passed = reason in {Reason.FRESH_SUPPORT, Reason.CONFIDENT_AGAIN}
    return GateDecision(gate=GateName.RETURN, passed=passed, reason=reason, facts=_archive_numbers(facts))


def archive_due_after(
    *,
    confidence: float,
    evidence_count: int,
    policy: GatePolicy,
    contradicting: int | None = None,
    is_told: bool = False,
) -> timedelta | None:
    """Return how long after its last reinforcement time alone archives a belief; None if it never does.

    `contradicting` rows are counted by the additive model alone (R10a).
    """
    if confidence < policy.archive_confidence and _has_said_enough(contradicting, policy):
        return timedelta()
    if evidence_count < policy.archive_stale_evidence:
        return _stale_days(is_told=is_told, policy=policy) * DAY
    return policy.archive_doubt_days * DAY if confidence < policy.archive_doubt_confidence else None


def _archive_exemption(facts: BeliefFacts, policy: GatePolicy) -> Reason | None:
    if not facts.is_live:
        return Reason.NOT_LIVE
    if facts.is_pinned:
        return Reason.PINNED
    restored = facts.since_restored_by_person
    if restored is not None and restored <= policy.archive_restored_days * DAY:
        return Reason.RESTORED_BY_PERSON
    if facts.is_challenged:
        return Reason.OPEN_CHALLENGE
    return Reason.OPEN_STRUCTURAL_JOB if facts.has_open_structural_job else None


def _archive_ground(facts: BeliefFacts, policy: GatePolicy) -> Reason | None:
    contradicting = facts.contradicting if facts.is_additive else None
    if facts.confidence < policy.archive_confidence and _has_said_enough(contradicting, policy):
        return Reason.LOW_CONFIDENCE
    is_weak = facts.evidence_count < policy.archive_stale_evidence
    if is_weak and facts.since_reinforced > _stale_days(is_told=facts.is_told, policy=policy) * DAY:
        return Reason.STALE_AND_WEAK
    is_doubted = facts.confidence < policy.archive_doubt_confidence
    return Reason.DOUBTFUL if is_doubted and facts.since_reinforced > policy.archive_doubt_days * DAY else None


def _stale_days(*, is_told: bool, policy: GatePolicy) -> float:
    """Return how many days go by before a weak belief is stale: what was told plainly need not be said every season."""
    return policy.archive_told_days if is_told else policy.archive_stale_days


def _has_said_enough(contradicting: int | None, policy: GatePolicy) -> bool:
    """Say whether the additive model may archive for low confidence: else that would always come before revising."""
    return contradicting is None or contradicting >= policy.archive_additive_contradictions


def _return_reason(facts: BeliefFacts, archived_for: Reason, policy: GatePolicy) -> Reason:
    if facts.status is not BeliefStatus.ARCHIVED:
        return Reason.NOT_ARCHIVED
    if archived_for is Reason.BY_PERSON:
        return Reason.ARCHIVED_BY_PERSON
    # A stale belief that lost its confidence while it lay in the archive would be archived again in the same breath.
    if archived_for is not Reason.LOW_CONFIDENCE and _archive_ground(facts, policy) is None:
        return Reason.FRESH_SUPPORT
    return Reason.CONFIDENT_AGAIN if facts.confidence > policy.return_confidence else Reason.NOT_CONFIDENT_YET


def _archive_numbers(facts: BeliefFacts) -> dict[str, float]:
    numbers = {
        "confidence": facts.confidence,
        "evidence_count": float(facts.evidence_count),
        "contradicting": float(facts.contradicting),
        "days_since_reinforced": as_days(facts.since_reinforced),
        "is_pinned": float(facts.is_pinned),
        "has_open_structural_job": float(facts.has_open_structural_job),
    }
    if facts.since_restored_by_person is not None:
        numbers["days_since_restored_by_person"] = as_days(facts.since_restored_by_person)
    return numbers


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


# Those that cannot act by themselves: what they decide waits for a model's words.
STRUCTURAL_GATES: Mapping[GateName, Gate] = {gate.name: gate for gate in (ReviseGate(), SplitGate(), MergeGate())}
GATES: Sequence[Gate] = (CloseGate(), *STRUCTURAL_GATES.values(), ArchiveGate())
