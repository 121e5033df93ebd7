from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.gates import GATES, ArchiveGate, BeliefFacts, GateName, returns_from_archive
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
