"""B12, B13, B15: what each structural gate asks for, bound by bound, and what it says when it stays shut."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory.domain.gates import BeliefFacts, Gate, MergeGate, ReviseGate, SplitGate, TwinFacts
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.domain.policy_beliefs import GatePolicy

POLICY = GatePolicy()
DISPROVED = BeliefFacts(
    status=BeliefStatus.ACTIVE,
    confidence=0.375,
    peak_confidence=6 / 7,
    evidence_count=14,
    since_reinforced=timedelta(days=80),
    supporting=5,
    contradicting=9,
    contradicting_origins=9,
    prediction_error=5.0,
    error_threshold=3.0,
    is_destabilised=True,
    lineage_depth=4,
)
TRUE_IN_PART = BeliefFacts(
    status=BeliefStatus.ACTIVE,
    confidence=0.55,
    evidence_count=6,
    since_reinforced=timedelta(days=1),
    supporting=3,
    contradicting=1,
    partial=2,
    supporting_origins=2,
    contradicting_origins=1,
    origins_against=2,
)
TWIN = TwinFacts(similarity=0.93, passes_guard=True, is_live=True, confidence=0.61)
DOUBLED = BeliefFacts(
    status=BeliefStatus.ACTIVE,
    confidence=0.61,
    evidence_count=4,
    since_reinforced=timedelta(days=1),
    twin=TWIN,
)
BUSY = [
    ({"status": BeliefStatus.ARCHIVED}, Reason.NOT_LIVE),
    ({"has_open_structural_job": True}, Reason.OPEN_STRUCTURAL_JOB),
    ({"was_changed_this_cycle": True}, Reason.CHANGED_THIS_CYCLE),
]


def decide(gate: Gate, facts: BeliefFacts, **changes: Any) -> tuple[bool, Reason]:
    decision = gate.decide(facts=replace(facts, **changes), policy=POLICY)
    return decision.passed, decision.reason


def test_what_was_believed_and_is_disproved_is_revised() -> None:
    """B15: all conditions, each at its bound."""
    at_bounds = {"confidence": 0.399, "peak_confidence": 0.501, "contradicting": 3, "evidence_count": 5}
    assert decide(ReviseGate(), DISPROVED, **at_bounds, contradicting_origins=2) == (True, Reason.DISPROVED)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *BUSY,
        ({"confidence": 0.4}, Reason.STILL_CONFIDENT),
        ({"peak_confidence": 0.5}, Reason.NEVER_CONFIDENT),
        ({"contradicting": 2}, Reason.TOO_FEW_CONTRADICTIONS),
        ({"evidence_count": 4}, Reason.TOO_LITTLE_EVIDENCE),
        ({"contradicting_origins": 1}, Reason.ONE_ORIGIN_AGAINST),
        ({"is_destabilised": False}, Reason.NOT_DESTABILISED),
        ({"lineage_depth": 5}, Reason.TOO_DEEP),
    ],
)
def test_each_condition_alone_keeps_a_belief_from_being_revised(change: dict[str, Any], reason: Reason) -> None:
    """B15: a person can read why a belief was not revised."""
    assert decide(ReviseGate(), DISPROVED, **change) == (False, reason)


def test_a_pinned_belief_may_be_revised_and_split() -> None:
    """D9: a pin protects from archiving and merging, not from being wrong."""
    assert decide(ReviseGate(), DISPROVED, is_pinned=True)[0]
    assert decide(SplitGate(), TRUE_IN_PART, is_pinned=True)[0]


def test_the_additive_model_asks_for_no_destabilisation() -> None:
    """R10a, B15: it has no expectation that evidence could surprise."""
    assert decide(ReviseGate(), DISPROVED, is_destabilised=False, is_additive=True) == (True, Reason.DISPROVED)


def test_a_revision_is_decided_on_numbers_that_can_be_read() -> None:
    """B15, B6: the error and its threshold stand beside each other."""
    facts = ReviseGate().decide(facts=DISPROVED, policy=POLICY).facts
    assert (facts["prediction_error"], facts["error_threshold"]) == (5.0, 3.0)
    assert (facts["confidence"], facts["contradicting_origins"], facts["lineage_depth"]) == (0.375, 9.0, 4.0)


@pytest.mark.parametrize("gate", [ReviseGate(), SplitGate(), MergeGate()], ids=lambda gate: gate.name)
def test_what_keeps_a_belief_from_any_change_stands_among_the_facts(gate: Gate) -> None:
    """B15: a refusal for each of these can be read from its numbers."""
    shut = replace(DISPROVED, status=BeliefStatus.ARCHIVED, has_open_structural_job=True, was_changed_this_cycle=True)
    facts = gate.decide(facts=shut, policy=POLICY).facts
    assert (facts["is_live"], facts["has_open_structural_job"], facts["was_changed_this_cycle"]) == (0.0, 1.0, 1.0)


def test_what_a_twin_is_kept_by_stands_among_the_facts() -> None:
    """B13."""
    twin = TwinFacts(
        similarity=0.95, passes_guard=True, is_live=False, confidence=0.8, is_pinned=True,
        has_open_structural_job=True, was_found_different=True,
    )  # fmt: skip
    facts = MergeGate().decide(facts=replace(DISPROVED, is_pinned=True, twin=twin), policy=POLICY).facts
    assert facts["is_pinned"] == 1.0
    assert (facts["twin_is_live"], facts["twin_is_pinned"]) == (0.0, 1.0)
    assert (facts["twin_has_open_structural_job"], facts["twin_was_found_different"]) == (1.0, 1.0)


def test_what_is_true_in_part_is_split() -> None:
    """B12: one CONTRADICTS and two PARTIAL make three against."""
    assert decide(SplitGate(), TRUE_IN_PART) == (True, Reason.TRUE_IN_PART)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *BUSY,
        ({"contradicting": 0}, Reason.TOO_FEW_CONTRADICTIONS),
        ({"supporting": 2}, Reason.TOO_FEW_SUPPORTS),
        ({"partial": 1, "contradicting": 4}, Reason.TOO_FEW_PARTIALS),
        ({"evidence_count": 4}, Reason.TOO_LITTLE_EVIDENCE),
        ({"origins_against": 1}, Reason.ONE_ORIGIN_AGAINST),
        ({"supporting_origins": 1}, Reason.ONE_ORIGIN_IN_FAVOUR),
    ],
)
def test_each_condition_alone_keeps_a_belief_whole(change: dict[str, Any], reason: Reason) -> None:
    """B12: every condition is asked for, two origins on each side among them."""
    assert decide(SplitGate(), TRUE_IN_PART, **change) == (False, reason)


def test_near_twins_are_merged() -> None:
    """B13: above .92, both above .6, the guard passed; a change of 7 days and an hour ago is long enough."""
    rested = timedelta(days=7, hours=1)
    twin = replace(TWIN, since_changed=rested)
    assert decide(MergeGate(), DOUBLED, twin=twin, since_changed=rested) == (True, Reason.SAYS_THE_SAME)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *BUSY,
        ({"is_pinned": True}, Reason.PINNED),
        ({"twin": None}, Reason.NO_TWIN),
        ({"confidence": 0.6}, Reason.NOT_CONFIDENT_ENOUGH),
        ({"since_changed": timedelta(days=7)}, Reason.CHANGED_LATELY),
    ],
)
def test_each_condition_of_the_belief_keeps_two_apart(change: dict[str, Any], reason: Reason) -> None:
    """B13, D9."""
    assert decide(MergeGate(), DOUBLED, **change) == (False, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"similarity": 0.92}, Reason.NO_TWIN),
        ({"is_live": False}, Reason.NO_TWIN),
        ({"passes_guard": False}, Reason.GUARD_FAILED),
        ({"was_found_different": True}, Reason.FOUND_DIFFERENT_BEFORE),
        ({"is_pinned": True}, Reason.PINNED),
        ({"has_open_structural_job": True}, Reason.OPEN_STRUCTURAL_JOB),
        ({"confidence": 0.6}, Reason.NOT_CONFIDENT_ENOUGH),
        ({"since_changed": timedelta(days=7)}, Reason.CHANGED_LATELY),
    ],
)
def test_each_condition_of_the_twin_keeps_two_apart(change: dict[str, Any], reason: Reason) -> None:
    """B13, D9: similarity alone never merges."""
    assert decide(MergeGate(), DOUBLED, twin=replace(TWIN, **change)) == (False, reason)
