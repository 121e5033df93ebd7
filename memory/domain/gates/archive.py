"""When a belief is put away, and when it comes back (B14)."""

from datetime import timedelta

from memory.domain.gates.decisions import DAY, BeliefFacts, GateDecision, GateName, Reason, as_days
from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy import GatePolicy


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


def returns_from_archive(*, facts: BeliefFacts, archived_for: Reason, policy: GatePolicy) -> GateDecision:
    """Decide whether an archived belief that was just supported comes back under its id (B14).

    Support cures staleness at once, and low confidence only above `return_confidence`, so that a belief does not
    flicker around the threshold that archived it. What a person archived stays.
    """
    reason = _return_reason(facts, archived_for, policy)
    passed = reason in {Reason.FRESH_SUPPORT, Reason.CONFIDENT_AGAIN}
    return GateDecision(gate=GateName.RETURN, passed=passed, reason=reason, facts=_as_numbers(facts))


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


def _as_numbers(facts: BeliefFacts) -> dict[str, float]:
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
