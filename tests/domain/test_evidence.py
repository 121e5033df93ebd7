import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain.evidence import EvidenceError, EvidenceRow, Verdict, WeighedEvidence, weigh_evidence
from memory.domain.policy_beliefs import ConfidencePolicy

DAY_ONE = datetime(2026, 1, 1, tzinfo=UTC)
SOME_VERDICT = st.sampled_from([Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL])


def row(number: int, *, verdict: Verdict = Verdict.SUPPORTS, origin: str = "", weight: float = 1.0) -> EvidenceRow:
    """Build the n-th row; without an origin it has one of its own."""
    return EvidenceRow(
        episode_id=f"ep_{number:012x}",
        verdict=verdict,
        base_weight=weight,
        origin=origin or f"session {number}",
        occurred_at=DAY_ONE + timedelta(hours=number),
    )


def weigh(rows: list[EvidenceRow], *, policy: ConfidencePolicy | None = None) -> WeighedEvidence:
    return weigh_evidence(rows=rows, policy=policy or ConfidencePolicy())


def history(*, supports: int, contradicts: int = 0) -> list[EvidenceRow]:
    verdicts = [Verdict.SUPPORTS] * supports + [Verdict.CONTRADICTS] * contradicts
    return [row(number, verdict=verdict) for number, verdict in enumerate(verdicts)]


many_rows = st.lists(
    st.tuples(SOME_VERDICT, st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 5.0])), max_size=25
).map(lambda drawn: [row(n, verdict=v, origin=o, weight=w) for n, (v, o, w) in enumerate(drawn)])


@pytest.mark.parametrize(
    ("supports", "contradicts", "confidence"), [(10, 0, 11 / 12), (10, 3, 11 / 15), (1, 1, 1 / 2), (0, 0, 1 / 2)]
)
def test_distinct_origins_count_one_each(supports: int, contradicts: int, confidence: float) -> None:
    """B4: confidence is α/(α+β) with a prior of (1, 1)."""
    assert weigh(history(supports=supports, contradicts=contradicts)).posterior.mean == confidence


def test_repeats_of_one_origin_add_ever_less() -> None:
    """B4: twenty repeats in one session weigh 1 + ½ + … + 1/20 together."""
    repeats = [row(number, origin="one session") for number in range(20)]

    assert weigh(repeats).posterior.alpha == pytest.approx(1 + 3.5977396571436819, abs=1e-15)


def test_twenty_origins_weigh_twenty() -> None:
    """B4: the same in twenty sessions is twenty confirmations."""
    assert weigh(history(supports=20)).posterior.alpha == 21


def test_without_independence_repeats_weigh_in_full() -> None:
    """B4: a setting turns the independence rule off."""
    repeats = [row(number, origin="one session") for number in range(20)]

    assert weigh(repeats, policy=ConfidencePolicy(independence=False)).posterior.alpha == 21


def test_a_curators_correction_outweighs_an_ordinary_row() -> None:
    """B4: a curator's row alone gives 6/7."""
    assert weigh([row(1, weight=5.0)]).posterior.mean == 6 / 7


def test_a_partial_verdict_goes_half_to_each_side() -> None:
    """B4: PARTIAL adds half its weight to α and half to β."""
    posterior = weigh([row(1, verdict=Verdict.PARTIAL)]).posterior

    assert (posterior.alpha, posterior.beta) == (1.5, 1.5)


def test_the_weightiest_row_of_an_origin_ranks_first() -> None:
    """B4: rank goes by base weight, then time, then episode id."""
    weighed = weigh([row(1, origin="s"), row(2, origin="s", weight=5.0), row(3, origin="s")])

    assert [weighed.weights[f"ep_{number:012x}"] for number in (2, 1, 3)] == [5.0, 1 / 2, 1 / 3]


def test_verdicts_of_one_origin_are_ranked_apart() -> None:
    """B4: an origin's first contradiction weighs in full, however much it supported before."""
    weighed = weigh([row(1, origin="s"), row(2, origin="s", verdict=Verdict.CONTRADICTS)])

    assert (weighed.posterior.alpha, weighed.posterior.beta) == (2.0, 2.0)


def test_an_echo_counts_nowhere() -> None:
    """B4: base weight 0 is kept for the record only."""
    weighed = weigh([row(1, origin="s", weight=0.0), row(2, origin="s")])

    assert weighed.weights["ep_000000000001"] == 0.0
    assert weighed.posterior.alpha == 2.0
    assert weighed.evidence_count == 1
    assert weighed.origins == {Verdict.SUPPORTS: 1}


def test_rows_and_origins_are_counted_per_verdict() -> None:
    """B4: gates ask for rows and for distinct origins."""
    rows = [*history(supports=3), row(7, origin="x", verdict=Verdict.CONTRADICTS)]
    weighed = weigh([*rows, row(8, origin="x", verdict=Verdict.CONTRADICTS)])

    assert weighed.rows == {Verdict.SUPPORTS: 3, Verdict.CONTRADICTS: 2}
    assert weighed.origins == {Verdict.SUPPORTS: 3, Verdict.CONTRADICTS: 1}
    assert weighed.evidence_count == 5


@given(many_rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[EvidenceRow], rng: random.Random) -> None:
    """B4: recomputing from rows in any order gives the same bits."""
    shuffled = rng.sample(rows, len(rows))

    assert weigh(shuffled) == weigh(rows)


@given(many_rows)
def test_confidence_stays_inside_its_bounds(rows: list[EvidenceRow]) -> None:
    assert 0 < weigh(rows).posterior.mean < 1


@given(many_rows, st.sampled_from("abcd"))
def test_a_further_support_never_lowers_confidence(rows: list[EvidenceRow], origin: str) -> None:
    assert weigh([*rows, row(99, origin=origin)]).posterior.mean > weigh(rows).posterior.mean


@given(many_rows, st.sampled_from("abcd"))
def test_a_further_contradiction_always_lowers_confidence(rows: list[EvidenceRow], origin: str) -> None:
    """B4: one contradicting episode alone lowers the belief it contradicts."""
    against = row(99, origin=origin, verdict=Verdict.CONTRADICTS)

    assert weigh([*rows, against]).posterior.mean < weigh(rows).posterior.mean


@pytest.mark.parametrize(
    "bad", [row(1, verdict=Verdict.IRRELEVANT), row(1, weight=-1.0), row(1, weight=float("nan"))], ids=str
)
def test_what_is_no_evidence_is_refused(bad: EvidenceRow) -> None:
    """B4: IRRELEVANT verdicts are not evidence."""
    with pytest.raises(EvidenceError, match=bad.episode_id):
        weigh([bad])
