"""B13: the evidence of two beliefs that become one."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta as reference

from memory.domain.evidence import (
    Beta,
    EvidenceError,
    EvidenceRow,
    Verdict,
    WeighedEvidence,
    merge_evidence,
    weigh_evidence,
)
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


START = datetime(2026, 1, 1, tzinfo=UTC)
SPOKEN = (Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL)


def a_row(number: int, verdict: Verdict, *, weight: float = 1.0, origin: int | None = None) -> EvidenceRow:
    return EvidenceRow(
        episode_id=f"ep_{number:012x}",
        verdict=verdict,
        base_weight=weight,
        origin=f"session {number if origin is None else origin}",
        occurred_at=START + timedelta(hours=number),
    )


histories = st.lists(
    st.tuples(st.sampled_from(SPOKEN), st.sampled_from([0.0, 1.0, 5.0]), st.integers(0, 3)), max_size=15
).map(lambda drawn: [a_row(n, verdict, weight=weight, origin=o) for n, (verdict, weight, o) in enumerate(drawn)])


def test_each_episode_counts_once() -> None:
    """B13: united by episode."""
    left, right = [a_row(1, Verdict.SUPPORTS), a_row(2, Verdict.SUPPORTS)], [a_row(2, Verdict.SUPPORTS)]
    assert merge_evidence(left=left, right=right) == left


def test_verdicts_that_clash_become_partial() -> None:
    """B13."""
    (united,) = merge_evidence(left=[a_row(1, Verdict.SUPPORTS)], right=[a_row(1, Verdict.CONTRADICTS)])
    assert united.verdict is Verdict.PARTIAL


def test_an_echo_clashes_with_nothing() -> None:
    """B13, B4: an echo is kept for the record and says nothing."""
    spoken = a_row(1, Verdict.CONTRADICTS)
    assert merge_evidence(left=[a_row(1, Verdict.SUPPORTS, weight=0.0)], right=[spoken]) == [spoken]


def test_a_curators_word_keeps_its_weight() -> None:
    """B13, B4: 5 against 1 on the same episode is still the curator's row."""
    (united,) = merge_evidence(left=[a_row(1, Verdict.SUPPORTS)], right=[a_row(1, Verdict.SUPPORTS, weight=5.0)])
    assert united.base_weight == 5.0


@given(histories, st.randoms(use_true_random=False))
def test_merging_what_was_split_keeps_the_evidence(history: list[EvidenceRow], rng: object) -> None:
    """B12, B13: merge(split(x)): whichever child each row went to, or both, α and β are as before."""
    shares = [rng.choice([(True, False), (False, True), (True, True)]) for _ in history]  # type: ignore[attr-defined]
    children = [[a_row for a_row, share in zip(history, shares, strict=True) if share[side]] for side in (0, 1)]
    united = merge_evidence(left=children[0], right=children[1])
    assert united == history
    policy = ConfidencePolicy()
    assert weigh_evidence(rows=united, policy=policy) == weigh_evidence(rows=history, policy=policy)


@given(histories, histories)
def test_the_order_of_the_two_does_not_matter(left: list[EvidenceRow], right: list[EvidenceRow]) -> None:
    """B13."""
    said = {(a_row.episode_id, a_row.verdict, a_row.base_weight) for a_row in merge_evidence(left=left, right=right)}
    assert said == {
        (a_row.episode_id, a_row.verdict, a_row.base_weight) for a_row in merge_evidence(left=right, right=left)
    }


shapes = st.floats(min_value=0.5, max_value=1e5)


def test_the_uniform_prior_has_an_exact_interval() -> None:
    """B4: Beta(1, 1) is uniform."""
    assert Beta(alpha=1, beta=1).interval() == pytest.approx((0.05, 0.95), abs=1e-14)


def test_ten_supports_have_a_closed_form_interval() -> None:
    """B4: the distribution function of Beta(11, 1) is x¹¹."""
    assert Beta(alpha=11, beta=1).interval() == pytest.approx((0.05 ** (1 / 11), 0.95 ** (1 / 11)), rel=1e-13)


def test_the_mean_is_the_confidence() -> None:
    assert Beta(alpha=11, beta=4).mean == 11 / 15


@pytest.mark.parametrize("shape", [(1e6, 3), (1e6, 1e6), (1, 1e6), (0.5, 0.5), (300.5, 40.25)])
def test_extreme_shapes_agree_with_the_reference(shape: tuple[float, float]) -> None:
    expected = reference(*shape).interval(0.9)

    assert Beta(alpha=shape[0], beta=shape[1]).interval() == pytest.approx(expected, rel=1e-8)


@given(shapes, shapes, st.floats(min_value=0.001, max_value=0.999))
def test_quantile_and_distribution_function_are_inverse(alpha: float, beta: float, probability: float) -> None:
    """A steep curve climbs far between two neighbouring numbers: the quantile is right to the precision of x itself."""
    belief = Beta(alpha=alpha, beta=beta)
    x = belief.quantile(probability=probability)

    assert belief.cdf(x=max(x - 2e-15, 0.0)) - 1e-9 <= probability <= belief.cdf(x=min(x + 2e-15, 1.0)) + 1e-9


@given(shapes, shapes, st.floats(min_value=0, max_value=1))
def test_the_distribution_function_agrees_with_the_reference(alpha: float, beta: float, x: float) -> None:
    assert Beta(alpha=alpha, beta=beta).cdf(x=x) == pytest.approx(reference.cdf(x, alpha, beta), abs=1e-9)


@given(shapes, shapes)
def test_more_support_moves_the_whole_interval_up(alpha: float, beta: float) -> None:
    """B4: confidence and interval are monotone in the evidence."""
    before, after = Beta(alpha=alpha, beta=beta), Beta(alpha=alpha + 1, beta=beta)

    assert after.mean > before.mean
    assert all(new >= old - 1e-12 for new, old in zip(after.interval(), before.interval(), strict=True))


@pytest.mark.parametrize("shape", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_impossible_shapes_are_refused(shape: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Beta(alpha=shape[0], beta=shape[1])
