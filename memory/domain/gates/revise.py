"""When a belief that was believed is to be said anew (B15)."""

from memory.domain.gates.decisions import (
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
