"""When two beliefs are one (B13)."""

from collections.abc import Iterator
from datetime import timedelta

from memory.domain.gates.decisions import (
    DAY,
    BeliefFacts,
    Condition,
    GateDecision,
    GateName,
    Reason,
    TwinFacts,
    as_days,
    first_unmet,
    free_to_change,
    freedom_numbers,
    not_undone_lately,
    undone_numbers,
)
from memory.domain.policy import GatePolicy


class MergeGate:
    """Merge two beliefs that say the same; no cosine alone does, so the guard must pass and a model agree (B13)."""

    name = GateName.MERGE

    def decide(self, *, facts: BeliefFacts, policy: GatePolicy) -> GateDecision:
        """Return whether a model is to be asked to merge belief and twin, or what keeps them apart."""
        obstacle = first_unmet(*_conditions(facts, policy))
        return GateDecision(
            gate=self.name,
            passed=obstacle is None,
            reason=obstacle or Reason.SAYS_THE_SAME,
            facts=_as_numbers(facts),
        )


def _conditions(facts: BeliefFacts, policy: GatePolicy) -> Iterator[Condition]:
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


def _as_numbers(facts: BeliefFacts) -> dict[str, float]:
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
