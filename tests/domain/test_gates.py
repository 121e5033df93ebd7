"""B12, B13, B15: what each structural gate asks for, bound by bound, and what it says when it stays shut."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.gates import (
    GATES,
    ArchiveGate,
    BeliefFacts,
    Gate,
    GateName,
    MergeGate,
    ReviseGate,
    SplitGate,
    TwinFacts,
    returns_from_archive,
)
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.domain.policy_beliefs import GatePolicy

POLICY = GatePolicy()
SOUND = BeliefFacts(status=BeliefStatus.ACTIVE, confidence=0.8, evidence_count=6, since_reinforced=timedelta(days=1))
DISBELIEVED = replace(SOUND, confidence=0.29)
STALE = replace(SOUND, evidence_count=4, since_reinforced=timedelta(days=91))
DOUBTED = replace(SOUND, confidence=0.49, since_reinforced=timedelta(days=181))

GROUNDS = {
    GateName.CLOSE: {Reason.CHANGED},
    GateName.REVISE: {Reason.DISPROVED},
    GateName.SPLIT: {Reason.TRUE_IN_PART},
    GateName.MERGE: {Reason.SAYS_THE_SAME},
    GateName.ARCHIVE: {Reason.LOW_CONFIDENCE, Reason.STALE_AND_WEAK, Reason.DOUBTFUL},
}

any_facts = st.builds(
    BeliefFacts,
    status=st.sampled_from(BeliefStatus),
    confidence=st.floats(0, 1),
    evidence_count=st.integers(0, 50),
    since_reinforced=st.timedeltas(timedelta(0), timedelta(days=400)),
    is_pinned=st.booleans(),
    since_restored_by_person=st.none() | st.timedeltas(timedelta(0), timedelta(days=400)),
    has_open_structural_job=st.booleans(),
    peak_confidence=st.floats(0, 1),
    supporting=st.integers(0, 8),
    contradicting=st.integers(0, 8),
    partial=st.integers(0, 4),
    supporting_origins=st.integers(0, 4),
    contradicting_origins=st.integers(0, 4),
    origins_against=st.integers(0, 4),
    is_destabilised=st.booleans(),
)


def decide(facts: BeliefFacts) -> tuple[bool, Reason]:
    decision = ArchiveGate().decide(facts=facts, policy=POLICY)
    return decision.passed, decision.reason


@pytest.mark.parametrize(
    ("facts", "reason"),
    [(DISBELIEVED, Reason.LOW_CONFIDENCE), (STALE, Reason.STALE_AND_WEAK), (DOUBTED, Reason.DOUBTFUL)],
)
def test_each_ground_archives(facts: BeliefFacts, reason: Reason) -> None:
    """B14: low confidence, or stale and weak, or long in doubt."""
    assert decide(facts) == (True, reason)


@pytest.mark.parametrize(
    "facts",
    [
        SOUND,
        replace(SOUND, confidence=0.3),
        replace(STALE, since_reinforced=timedelta(days=90)),
        replace(STALE, evidence_count=5),
        replace(DOUBTED, since_reinforced=timedelta(days=180)),
        replace(DOUBTED, confidence=0.5),
    ],
)
def test_at_its_boundary_a_belief_is_kept(facts: BeliefFacts) -> None:
    """B14: every bound is strict."""
    assert decide(facts) == (False, Reason.NO_GROUND)


@pytest.mark.parametrize("facts", [DISBELIEVED, STALE, DOUBTED])
@pytest.mark.parametrize(
    ("exempt", "reason"),
    [
        ({"is_pinned": True}, Reason.PINNED),
        ({"since_restored_by_person": timedelta(days=90)}, Reason.RESTORED_BY_PERSON),
        ({"has_open_structural_job": True}, Reason.OPEN_STRUCTURAL_JOB),
        ({"status": BeliefStatus.ARCHIVED}, Reason.NOT_LIVE),
    ],
)
def test_each_exemption_keeps_the_belief_and_is_named(
    facts: BeliefFacts, exempt: dict[str, object], reason: Reason
) -> None:
    """B14, B8.5: pinned, restored by a person, or waiting for a structural change."""
    assert decide(replace(facts, **exempt)) == (False, reason)  # type: ignore[arg-type]  # fields of BeliefFacts


def test_the_protection_of_a_restored_belief_ends() -> None:
    """B14: after 90 days."""
    assert decide(replace(DISBELIEVED, since_restored_by_person=timedelta(days=91))) == (True, Reason.LOW_CONFIDENCE)


@given(any_facts)
def test_every_decision_carries_its_reason_and_numbers(facts: BeliefFacts) -> None:
    """Passed or not, a gate says why and on what."""
    for gate in GATES:
        decision = gate.decide(facts=facts, policy=POLICY)

        assert decision.passed == (decision.reason in GROUNDS[decision.gate])
        assert set(decision.facts) & {"confidence", "evidence_count"}


def test_gates_are_walked_in_their_order() -> None:
    """B8.5, C1: close, revise, split, merge, archive."""
    assert [gate.name for gate in GATES] == ["close", "revise", "split", "merge", "archive"]


ARCHIVED = replace(SOUND, status=BeliefStatus.ARCHIVED, since_reinforced=timedelta(0))


@pytest.mark.parametrize(
    ("facts", "archived_for", "expected"),
    [
        (replace(ARCHIVED, confidence=0.6), Reason.STALE_AND_WEAK, (True, Reason.FRESH_SUPPORT)),
        (replace(ARCHIVED, confidence=0.45), Reason.DOUBTFUL, (True, Reason.FRESH_SUPPORT)),
        (replace(ARCHIVED, confidence=0.2), Reason.STALE_AND_WEAK, (False, Reason.NOT_CONFIDENT_YET)),
        (replace(ARCHIVED, confidence=0.5), Reason.LOW_CONFIDENCE, (False, Reason.NOT_CONFIDENT_YET)),
        (replace(ARCHIVED, confidence=0.51), Reason.LOW_CONFIDENCE, (True, Reason.CONFIDENT_AGAIN)),
        (replace(ARCHIVED, confidence=0.99), Reason.BY_PERSON, (False, Reason.ARCHIVED_BY_PERSON)),
        (SOUND, Reason.LOW_CONFIDENCE, (False, Reason.NOT_ARCHIVED)),
    ],
)
def test_support_brings_back_what_its_ground_allows(
    facts: BeliefFacts, archived_for: Reason, expected: tuple[bool, Reason]
) -> None:
    """B14: a stale belief at once, a disbelieved one above 0.5, one that a person archived never by itself."""
    decision = returns_from_archive(facts=facts, archived_for=archived_for, policy=POLICY)

    assert (decision.passed, decision.reason) == expected


@given(any_facts, st.sampled_from([Reason.LOW_CONFIDENCE, Reason.STALE_AND_WEAK, Reason.DOUBTFUL]))
def test_what_returns_is_not_archived_again_at_once(facts: BeliefFacts, archived_for: Reason) -> None:
    """B14: no flicker between return and archive."""
    supported = replace(facts, status=BeliefStatus.ARCHIVED, since_reinforced=timedelta(0))
    if returns_from_archive(facts=supported, archived_for=archived_for, policy=POLICY).passed:
        assert not decide(replace(supported, status=BeliefStatus.ACTIVE))[0]


STRUCTURAL = GatePolicy()
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


def decide_on(gate: Gate, facts: BeliefFacts, **changes: Any) -> tuple[bool, Reason]:
    decision = gate.decide(facts=replace(facts, **changes), policy=STRUCTURAL)
    return decision.passed, decision.reason


def test_what_was_believed_and_is_disproved_is_revised() -> None:
    """B15: all conditions, each at its bound."""
    at_bounds = {"confidence": 0.399, "peak_confidence": 0.501, "contradicting": 3, "evidence_count": 5}
    assert decide_on(ReviseGate(), DISPROVED, **at_bounds, contradicting_origins=2) == (True, Reason.DISPROVED)


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
    assert decide_on(ReviseGate(), DISPROVED, **change) == (False, reason)


def test_a_pinned_belief_may_be_revised_and_split() -> None:
    """D9: a pin protects from archiving and merging, not from being wrong."""
    assert decide_on(ReviseGate(), DISPROVED, is_pinned=True)[0]
    assert decide_on(SplitGate(), TRUE_IN_PART, is_pinned=True)[0]


def test_the_additive_model_asks_for_no_destabilisation() -> None:
    """R10a, B15: it has no expectation that evidence could surprise."""
    assert decide_on(ReviseGate(), DISPROVED, is_destabilised=False, is_additive=True) == (
        True,
        Reason.DISPROVED,
    )


def test_a_revision_is_decided_on_numbers_that_can_be_read() -> None:
    """B15, B6: the error and its threshold stand beside each other."""
    facts = ReviseGate().decide(facts=DISPROVED, policy=STRUCTURAL).facts
    assert (facts["prediction_error"], facts["error_threshold"]) == (5.0, 3.0)
    assert (facts["confidence"], facts["contradicting_origins"], facts["lineage_depth"]) == (0.375, 9.0, 4.0)


@pytest.mark.parametrize("gate", [ReviseGate(), SplitGate(), MergeGate()], ids=lambda gate: gate.name)
def test_what_keeps_a_belief_from_any_change_stands_among_the_facts(gate: Gate) -> None:
    """B15: a refusal for each of these can be read from its numbers."""
    shut = replace(DISPROVED, status=BeliefStatus.ARCHIVED, has_open_structural_job=True, was_changed_this_cycle=True)
    facts = gate.decide(facts=shut, policy=STRUCTURAL).facts
    assert (facts["is_live"], facts["has_open_structural_job"], facts["was_changed_this_cycle"]) == (0.0, 1.0, 1.0)


def test_what_a_twin_is_kept_by_stands_among_the_facts() -> None:
    """B13."""
    twin = TwinFacts(
        similarity=0.95, passes_guard=True, is_live=False, confidence=0.8, is_pinned=True,
        has_open_structural_job=True, was_found_different=True,
    )  # fmt: skip
    facts = MergeGate().decide(facts=replace(DISPROVED, is_pinned=True, twin=twin), policy=STRUCTURAL).facts
    assert facts["is_pinned"] == 1.0
    assert (facts["twin_is_live"], facts["twin_is_pinned"]) == (0.0, 1.0)
    assert (facts["twin_has_open_structural_job"], facts["twin_was_found_different"]) == (1.0, 1.0)


def test_what_is_true_in_part_is_split() -> None:
    """B12: one CONTRADICTS and two PARTIAL make three against."""
    assert decide_on(SplitGate(), TRUE_IN_PART) == (True, Reason.TRUE_IN_PART)


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
    assert decide_on(SplitGate(), TRUE_IN_PART, **change) == (False, reason)


def test_near_twins_are_merged() -> None:
    """B13: above .92, both above .6, the guard passed; a change of 7 days and an hour ago is long enough."""
    rested = timedelta(days=7, hours=1)
    twin = replace(TWIN, since_changed=rested)
    assert decide_on(MergeGate(), DOUBLED, twin=twin, since_changed=rested) == (True, Reason.SAYS_THE_SAME)


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
    assert decide_on(MergeGate(), DOUBLED, **change) == (False, reason)


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
    assert decide_on(MergeGate(), DOUBLED, twin=replace(TWIN, **change)) == (False, reason)
