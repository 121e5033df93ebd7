"""C1: a change is found by the order of what was said."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.evidence import ChangePoint, EvidenceRow, Verdict, find_change_point
from memory.domain.gates import BeliefFacts, CloseGate, GateDecision
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.domain.policy_beliefs import ConfidencePolicy, GatePolicy

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY, GATE = ConfidencePolicy(), GatePolicy()
MEANING = {"s": Verdict.SUPPORTS, "c": Verdict.CONTRADICTS, "p": Verdict.PARTIAL}


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def rows(verdicts: str, *, origins: str = "", weight: float = 1.0) -> list[EvidenceRow]:
    """Build rows from letters, a day apart, each of an origin of its own unless letters name some."""
    return [
        EvidenceRow(
            episode_id=f"ep_{place:012x}",
            verdict=MEANING[letter],
            base_weight=weight,
            origin=origins[place] if origins else f"session {place}",
            occurred_at=day(place),
        )
        for place, letter in enumerate(verdicts)
    ]


def found(verdicts: str, *, origins: str = "") -> ChangePoint:
    change = find_change_point(rows=rows(verdicts, origins=origins), policy=POLICY)
    assert change is not None
    return change


def log_marginal(supports: float, contradictions: float) -> float:
    """ln B(1 + s, 1 + c), by the definition of the Beta function."""
    return math.lgamma(1 + supports) + math.lgamma(1 + contradictions) - math.lgamma(2 + supports + contradictions)


def factor(verdicts: str, place: int) -> float:
    """Say how much likelier a change at a place is than none, by the definition of the Beta function."""
    before, after = verdicts[:place], verdicts[place:]
    sides = [log_marginal(part.count("s"), part.count("c")) for part in (before, after, verdicts)]
    return math.exp(sides[0] + sides[1] - sides[2])


def test_the_score_is_that_of_two_stretches_against_one_over_all_places() -> None:
    """Five supports, then three contradictions: after five of the seven places more is against than for."""
    said = "sssssccc"
    expected = math.log(sum(factor(said, place) for place in (3, 4, 5, 6, 7)) / 7)

    change = found(said)

    assert change.score == pytest.approx(expected)
    assert change.score_by_origin == pytest.approx(math.log(factor(said, 5)))
    assert (change.at, change.contradicting, change.origins) == (day(5), 3, 3)


@pytest.mark.parametrize(
    ("supports", "needed"),
    [(2, 4), (3, 4), (4, 3), (5, 3), (8, 3)],
)
def test_so_many_clean_contradictions_make_a_change(supports: int, needed: int) -> None:
    """C1: after four supports or more three, after two or three four."""
    assert not decide("s" * supports + "c" * (needed - 1))
    assert decide("s" * supports + "c" * needed)


def decide(verdicts: str, *, origins: str = "") -> bool:
    return decision(verdicts, origins=origins).passed


def decision(verdicts: str, *, origins: str = "") -> GateDecision:
    change = find_change_point(rows=rows(verdicts, origins=origins), policy=POLICY)
    return CloseGate().decide(facts=replace(FACTS, change=change), policy=GATE)


FACTS = BeliefFacts(status=BeliefStatus.ACTIVE, confidence=0.6, evidence_count=8, since_reinforced=timedelta(days=1))


def test_a_dispute_without_an_order_is_no_change() -> None:
    assert not decide("scscscscscsc")


def test_a_word_between_leaves_less_certainty() -> None:
    assert found("sssssscccsc").score < found("ssssssscccc").score


def test_no_change_where_the_new_is_no_more_said_than_the_old() -> None:
    assert find_change_point(rows=rows("sssssss"), policy=POLICY) is None
    assert find_change_point(rows=rows("ccccsssss"), policy=POLICY) is None


def test_a_change_falls_between_different_times_only() -> None:
    """What was said on one day has no order."""
    together = [replace(row, occurred_at=day(0)) for row in rows("sssssccc")]

    assert find_change_point(rows=together, policy=POLICY) is None


def test_a_change_never_falls_inside_an_origin() -> None:
    """A single conversation that changes its mind half-way is one voice."""
    assert find_change_point(rows=rows("sssssccc", origins="aaaaaaaa"), policy=POLICY) is None


def test_a_flood_of_one_origin_closes_nothing() -> None:
    assert decision("ssssss" + "c" * 20, origins="abcdef" + "z" * 20).reason is Reason.ONE_ORIGIN_AGAINST


def test_two_origins_are_enough_where_there_is_little_doubt() -> None:
    """C1: of two origins where the score with one row an origin and verdict reaches 4."""
    many = "s" * 40 + "cccc"
    origins = "".join(chr(1000 + place) for place in range(40))

    assert found(many, origins=origins + "xxyy").score_by_origin >= GATE.close_sure_score
    assert decide(many, origins=origins + "xxyy")
    assert decision("sssssscccc", origins="abcdefxxyy").reason is Reason.ONE_ORIGIN_AGAINST


def test_echoes_count_nothing() -> None:
    silent = [replace(row, base_weight=0.0) for row in rows("sssssccc")]

    assert find_change_point(rows=silent, policy=POLICY) is None


def test_partial_rows_are_half_on_either_side_and_no_contradictions() -> None:
    change = found("sssssspcpc")

    assert change.contradicting == 2


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_pinned": True}, Reason.PINNED),
        ({"status": BeliefStatus.ARCHIVED}, Reason.NOT_LIVE),
        ({"has_open_structural_job": True}, Reason.OPEN_STRUCTURAL_JOB),
        ({"since_restored_by_person": timedelta(days=10)}, Reason.RESTORED_BY_PERSON),
        ({"since_close_undone": timedelta(days=10)}, Reason.UNDONE_LATELY),
        ({"change": None}, Reason.NO_CHANGE),
        ({"change": found("sscc")}, Reason.UNLIKELY_CHANGE),
    ],
)
def test_what_keeps_a_belief_open(facts: dict[str, object], reason: Reason) -> None:
    known = replace(FACTS, change=found("sssssccc"))

    decided = CloseGate().decide(facts=replace(known, **facts), policy=GATE)  # type: ignore[arg-type]

    assert (decided.passed, decided.reason) == (False, reason)


@given(verdicts=st.text(alphabet="scp", min_size=1, max_size=30), seed=st.randoms())
def test_the_order_of_loading_does_not_matter(verdicts: str, seed: object) -> None:
    given_rows = rows(verdicts)
    shuffled = list(given_rows)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]

    assert find_change_point(rows=shuffled, policy=POLICY) == find_change_point(rows=given_rows, policy=POLICY)
