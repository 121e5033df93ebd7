"""When a belief that held holds no longer: the world has changed (C1)."""

from memory.domain.gates.decisions import (
    DAY,
    BeliefFacts,
    GateDecision,
    GateName,
    Reason,
    first_unmet,
    free_to_change,
    freedom_numbers,
    not_undone_lately,
    undone_numbers,
)
from memory.domain.policy import GatePolicy


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
            (_is_likely(facts, policy), Reason.UNLIKELY_CHANGE),
            (_is_borne_out(facts, policy), Reason.TOO_FEW_CONTRADICTIONS),
            (_is_widely_told(facts, policy), Reason.ONE_ORIGIN_AGAINST),
            not_undone_lately(facts.since_close_undone, policy),
        )
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.CHANGED,
            facts=_as_numbers(facts) | freedom_numbers(facts) | undone_numbers(facts.since_close_undone),
        )


def _was_restored_lately(facts: BeliefFacts, policy: GatePolicy) -> bool:
    restored = facts.since_restored_by_person
    return restored is not None and restored <= policy.archive_restored_days * DAY


def _is_likely(facts: BeliefFacts, policy: GatePolicy) -> bool:
    """Ask for more where so few contradict that chance may have put them side by side."""
    if facts.change is None:
        return False
    is_few = facts.change.contradicting <= policy.close_contradictions
    return facts.change.score >= (policy.close_few_score if is_few else policy.close_score)


def _is_borne_out(facts: BeliefFacts, policy: GatePolicy) -> bool:
    return facts.change is not None and facts.change.contradicting >= policy.close_contradictions


def _is_widely_told(facts: BeliefFacts, policy: GatePolicy) -> bool:
    """Ask for three origins, or two that leave little doubt."""
    if facts.change is None:
        return False
    is_sure = facts.change.score_by_origin >= policy.close_sure_score
    return facts.change.origins >= policy.close_origins - int(is_sure)


def _as_numbers(facts: BeliefFacts) -> dict[str, float]:
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
