from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.evidence import (
    EvidenceRow,
    Verdict,
    error_threshold,
    is_destabilised,
    prediction_error,
    weigh_evidence,
)
from memory.domain.policy_beliefs import ConfidencePolicy, DestabilizationPolicy

START = datetime(2026, 1, 1, tzinfo=UTC)
CONFIDENCE, POLICY = ConfidencePolicy(), DestabilizationPolicy()
EIGHTY_DAYS = timedelta(days=80)


def rows(verdicts: str, *, origin: str | None = None, weight: float = 1.0) -> list[EvidenceRow]:
    """Build rows from letters (supports, contradicts, partial), each of an origin of its own unless one is given."""
    meaning = {"s": Verdict.SUPPORTS, "c": Verdict.CONTRADICTS, "p": Verdict.PARTIAL}
    return [
        EvidenceRow(
            episode_id=f"ep_{place:012x}",
            verdict=meaning[letter],
            base_weight=weight,
            origin=origin or f"session {place}",
            occurred_at=START + timedelta(hours=place),
        )
        for place, letter in enumerate(verdicts)
    ]


def error_of(verdicts: str) -> float:
    return prediction_error(rows=rows(verdicts), policy=CONFIDENCE)


def window_is_open(verdicts: str) -> bool:
    error = error_of(verdicts)
    return is_destabilised(error=error, evidence_count=len(verdicts), age=EIGHTY_DAYS, policy=POLICY)


def test_the_fifth_contradiction_opens_the_window() -> None:
    """B6: five supports, 80 days old, then only contradictions from new origins."""
    assert not window_is_open("sssss" + "cccc")
    assert window_is_open("sssss" + "ccccc")


def test_confidence_falls_under_the_revision_mark_at_the_ninth() -> None:
    """B6: in the worked example confidence is 0.4 after the eighth contradiction and 0.375 after the ninth."""
    eighth, ninth = (weigh_evidence(rows=rows("sssss" + "c" * n), policy=CONFIDENCE).posterior.mean for n in (8, 9))

    assert (eighth, ninth) == (0.4, 0.375)


def test_a_contradiction_adds_the_confidence_just_before() -> None:
    """B6: against five supports the first contradiction surprises by 6/7, the next by 6/8."""
    assert error_of("ssssscc") == pytest.approx(6 / 7 + 6 / 8, abs=1e-12)


def test_support_takes_away_what_was_doubtful() -> None:
    """B6: evidence for subtracts weight·(1 − c)."""
    assert error_of("sssssc" + "s") == pytest.approx(6 / 7 - 2 / 8, abs=1e-12)


def test_a_partial_verdict_does_half_of_each() -> None:
    """B6: PARTIAL adds half of c and subtracts half of (1 − c)."""
    assert error_of("sssss" + "p") == pytest.approx(0.5 * 6 / 7 - 0.5 * 1 / 7, abs=1e-12)


def test_a_reinforcement_does_not_reset_the_error() -> None:
    """B6: a contested belief stays revisable."""
    assert window_is_open("sssss" + "cccccc" + "s")


def test_founding_evidence_leaves_no_error() -> None:
    """B6: the error is 0 after a structural change, while confidence remembers."""
    history = rows("sscs")

    assert prediction_error(rows=history, policy=CONFIDENCE, founding={row.episode_id for row in history}) == 0.0


def test_echoes_leave_no_error() -> None:
    """B4: an echo counts in no series."""
    assert prediction_error(rows=rows("ccccc", weight=0.0), policy=CONFIDENCE) == 0.0


def test_one_origin_cannot_destabilise_alone() -> None:
    """B4, B6: the error adds effective weights, so repeats of one session add ever less."""
    calm = rows("sssss")
    storm = [row for row in rows("sssss" + "c" * 8, origin="one session") if row.verdict is Verdict.CONTRADICTS]

    assert prediction_error(rows=[*calm, *storm], policy=CONFIDENCE) < 3.0


def test_the_threshold_is_capped() -> None:
    """B6: θ = min(3, 0.3·ln(1+evidence)·ln(1+age in days))."""
    assert error_threshold(evidence_count=500, age=timedelta(days=900), policy=POLICY) == 3.0


def test_no_error_never_opens_the_window() -> None:
    """B6: a belief of today has a threshold of 0 and still needs an error above 0."""
    assert not is_destabilised(error=0.0, evidence_count=5, age=timedelta(0), policy=POLICY)


@given(st.text(alphabet="scp", max_size=20))
def test_the_error_is_never_negative_and_bounded_by_what_speaks_against(verdicts: str) -> None:
    against = verdicts.count("c") + 0.5 * verdicts.count("p")

    assert 0.0 <= error_of(verdicts) <= against


@given(st.text(alphabet="scp", max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_reading_does_not_matter(verdicts: str, rng: object) -> None:
    history = rows(verdicts)
    shuffled = rng.sample(history, len(history))  # type: ignore[attr-defined]  # hypothesis types it as object

    assert prediction_error(rows=shuffled, policy=CONFIDENCE) == error_of(verdicts)
