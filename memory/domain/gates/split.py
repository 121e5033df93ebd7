"""When a belief is true in one part and false in another (B12)."""

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
