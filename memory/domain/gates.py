"""The gates that change a belief's status, each with its reason and its facts (B14)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy import GatePolicy

_DAY = timedelta(days=1)
_LIVE = frozenset({BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED})


class GateName(StrEnum):
    """The gates, in the order in which they are walked."""

    ARCHIVE = "archive"
    RETURN = "return"


class Reason(StrEnum):
    """Why a gate opened or stayed shut."""

    LOW_CONFIDENCE = "low_confidence"
    STALE_AND_WEAK = "stale_and_weak"
    DOUBTFUL = "doubtful"
    BY_PERSON = "by_person"
    NO_GROUND = "no_ground"
    PINNED = "pinned"
    RESTORED_BY_PERSON = "restored_by_person"
    OPEN_STRUCTURAL_JOB = "open_structural_job"
    NOT_LIVE = "not_live"
    NOT_ARCHIVED = "not_archived"
    FRESH_SUPPORT = "fresh_support"
    CONFIDENT_AGAIN = "confident_again"
    NOT_CONFIDENT_YET = "not_confident_yet"
    ARCHIVED_BY_PERSON = "archived_by_person"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """What a gate decided, and the numbers it decided on."""

    gate: GateName
    passed: bool
    reason: Reason
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefFacts:
    """What gates may know of a belief."""

    status: BeliefStatus
    confidence: float
    evidence_count: int
    since_reinforced: timedelta  # since creation, if never reinforced
    is_pinned: bool = False
    since_restored_by_person: timedelta | None = None
    has_open_structural_job: bool = False


class Gate(Protocol):
    """One rule that may change a belief's status."""

    name: GateName

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return the decision on one belief; never raise for a belief that merely stays as it is."""


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
            facts=_as_numbers(facts),
        )


GATES: Sequence[Gate] = (ArchiveGate(),)


def returns_from_archive(*, facts: BeliefFacts, archived_for: Reason, policy: GatePolicy) -> GateDecision:
    """Decide whether an archived belief that was just supported comes back under its id (B14).

    Support cures staleness at once, and low confidence only above `return_confidence`, so that a belief does not
    flicker around the threshold that archived it. What a person archived stays.
    """
    reason = _return_reason(facts, archived_for, policy)
    passed = reason in {Reason.FRESH_SUPPORT, Reason.CONFIDENT_AGAIN}
    return GateDecision(gate=GateName.RETURN, passed=passed, reason=reason, facts=_as_numbers(facts))


def archive_due_after(*, confidence: float, evidence_count: int, policy: GatePolicy) -> timedelta | None:
    """Return how long after its last reinforcement time alone archives a belief; None if it never does."""
    if confidence < policy.archive_confidence:
        return timedelta()
    if evidence_count < policy.archive_stale_evidence:
        return policy.archive_stale_days * _DAY
    return policy.archive_doubt_days * _DAY if confidence < policy.archive_doubt_confidence else None


def _archive_exemption(facts: BeliefFacts, policy: GatePolicy) -> Reason | None:
    if facts.status not in _LIVE:
        return Reason.NOT_LIVE
    if facts.is_pinned:
        return Reason.PINNED
    restored = facts.since_restored_by_person
    if restored is not None and restored <= policy.archive_restored_days * _DAY:
        return Reason.RESTORED_BY_PERSON
    return Reason.OPEN_STRUCTURAL_JOB if facts.has_open_structural_job else None


def _archive_ground(facts: BeliefFacts, policy: GatePolicy) -> Reason | None:
    if facts.confidence < policy.archive_confidence:
        return Reason.LOW_CONFIDENCE
    is_weak = facts.evidence_count < policy.archive_stale_evidence
    if is_weak and facts.since_reinforced > policy.archive_stale_days * _DAY:
        return Reason.STALE_AND_WEAK
    is_doubted = facts.confidence < policy.archive_doubt_confidence
    return Reason.DOUBTFUL if is_doubted and facts.since_reinforced > policy.archive_doubt_days * _DAY else None


def _return_reason(facts: BeliefFacts, archived_for: Reason, policy: GatePolicy) -> Reason:
    if facts.status is not BeliefStatus.ARCHIVED:
        return Reason.NOT_ARCHIVED
    if archived_for is Reason.BY_PERSON:
        return Reason.ARCHIVED_BY_PERSON
    # A stale belief that lost its confidence while it lay in the archive would be archived again in the same breath.
    if archived_for is not Reason.LOW_CONFIDENCE and _archive_ground(facts, policy) is None:
        return Reason.FRESH_SUPPORT
    return Reason.CONFIDENT_AGAIN if facts.confidence > policy.return_confidence else Reason.NOT_CONFIDENT_YET


def _as_numbers(facts: BeliefFacts) -> dict[str, float]:
    numbers = {
        "confidence": facts.confidence,
        "evidence_count": float(facts.evidence_count),
        "days_since_reinforced": facts.since_reinforced / _DAY,
        "is_pinned": float(facts.is_pinned),
        "has_open_structural_job": float(facts.has_open_structural_job),
    }
    if facts.since_restored_by_person is not None:
        numbers["days_since_restored_by_person"] = facts.since_restored_by_person / _DAY
    return numbers
