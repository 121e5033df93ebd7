"""R10a: the additive model, row by row."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.evidence import EvidenceRow, Verdict, additive_confidence
from memory.domain.gates import ArchiveGate, BeliefFacts, archive_due_after
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.domain.policy_beliefs import AdditivePolicy, ConfidencePolicy, GatePolicy

START = datetime(2026, 1, 1, tzinfo=UTC)
MEANING = {"s": Verdict.SUPPORTS, "c": Verdict.CONTRADICTS, "p": Verdict.PARTIAL}


def rows(verdicts: str, *, founding: int = 0, origin: str = "") -> list[EvidenceRow]:
    """Build rows from letters, the first few founding ones, each of an origin of its own unless one is given."""
    return [
        EvidenceRow(
            episode_id=f"ep_{place:012x}",
            verdict=MEANING[letter],
            base_weight=1.0,
            origin=origin or f"session {place}",
            occurred_at=START + timedelta(hours=place),
            is_founding=place < founding,
        )
        for place, letter in enumerate(verdicts)
    ]


def confidence(verdicts: str, **given: object) -> float:
    evidence = rows(verdicts, **given)  # type: ignore[arg-type]
    return additive_confidence(rows=evidence, confidence=ConfidencePolicy(), policy=AdditivePolicy())


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [("sss", 0.6), ("ssss", 0.7), ("sssss", 0.8), ("sssc", 0.4), ("sssp", 0.6), ("ssssc", 0.5), ("sss" + "s" * 9, 1.0)],
)
def test_a_belief_begins_at_six_tenths_and_moves_by_steps(verdicts: str, expected: float) -> None:
    """R10a: 0.6 with its three founding rows, +0.1 a support up to 1, −0.2 a contradiction, PARTIAL nothing."""
    assert confidence(verdicts, founding=3) == expected


def test_the_floor_holds_while_contradictions_go_on() -> None:
    """R10a: 0.6 − 0.2 − 0.2 = 0.2, then the floor; a support after them starts from there."""
    assert confidence("ssscccc", founding=3) == 0.1
    assert confidence("sssccccs", founding=3) == 0.2


def test_order_counts() -> None:
    """R10a: replayed in order: at the cap a support is lost, a contradiction is not."""
    assert confidence("sss" + "sssss" + "c", founding=3) == 0.8
    assert confidence("sss" + "c" + "sssss", founding=3) == 0.9


def test_what_one_origin_repeats_weighs_less_here_too() -> None:
    """R10a, B4: 0.6 + 0.1 + 0.05 + 0.0333, rounded to four decimals after each row."""
    assert confidence("sss", origin="one session") == 0.7833


@given(st.text(alphabet="scp", max_size=20))
def test_it_stays_between_floor_and_cap(verdicts: str) -> None:
    """R10a."""
    assert 0.1 <= confidence(verdicts) <= 1.0


def test_low_confidence_archives_only_after_five_contradictions() -> None:
    """R10a, B14: else archiving would always come before revising."""
    low = BeliefFacts(
        status=BeliefStatus.ACTIVE,
        confidence=0.1,
        evidence_count=8,
        since_reinforced=timedelta(),
        is_additive=True,
        contradicting=4,
    )
    decide = ArchiveGate().decide
    assert decide(facts=low, policy=GatePolicy()).reason is Reason.NO_GROUND
    assert archive_due_after(confidence=0.1, evidence_count=8, contradicting=4, policy=GatePolicy()) != timedelta()
    assert archive_due_after(confidence=0.1, evidence_count=8, contradicting=5, policy=GatePolicy()) == timedelta()
