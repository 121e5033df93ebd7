"""B13: the evidence of two beliefs that become one."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.domain.evidence import EvidenceRow, Verdict, merge_evidence, weigh_evidence
from memory.domain.policy_beliefs import ConfidencePolicy

START = datetime(2026, 1, 1, tzinfo=UTC)
SPOKEN = (Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL)


def row(number: int, verdict: Verdict, *, weight: float = 1.0, origin: int | None = None) -> EvidenceRow:
    return EvidenceRow(
        episode_id=f"ep_{number:012x}",
        verdict=verdict,
        base_weight=weight,
        origin=f"session {number if origin is None else origin}",
        occurred_at=START + timedelta(hours=number),
    )


histories = st.lists(
    st.tuples(st.sampled_from(SPOKEN), st.sampled_from([0.0, 1.0, 5.0]), st.integers(0, 3)), max_size=15
).map(lambda drawn: [row(n, verdict, weight=weight, origin=o) for n, (verdict, weight, o) in enumerate(drawn)])


def test_each_episode_counts_once() -> None:
    """B13: united by episode."""
    left, right = [row(1, Verdict.SUPPORTS), row(2, Verdict.SUPPORTS)], [row(2, Verdict.SUPPORTS)]
    assert merge_evidence(left=left, right=right) == left


def test_verdicts_that_clash_become_partial() -> None:
    """B13."""
    (united,) = merge_evidence(left=[row(1, Verdict.SUPPORTS)], right=[row(1, Verdict.CONTRADICTS)])
    assert united.verdict is Verdict.PARTIAL


def test_an_echo_clashes_with_nothing() -> None:
    """B13, B4: an echo is kept for the record and says nothing."""
    spoken = row(1, Verdict.CONTRADICTS)
    assert merge_evidence(left=[row(1, Verdict.SUPPORTS, weight=0.0)], right=[spoken]) == [spoken]


def test_a_curators_word_keeps_its_weight() -> None:
    """B13, B4: 5 against 1 on the same episode is still the curator's row."""
    (united,) = merge_evidence(left=[row(1, Verdict.SUPPORTS)], right=[row(1, Verdict.SUPPORTS, weight=5.0)])
    assert united.base_weight == 5.0


@given(histories, st.randoms(use_true_random=False))
def test_merging_what_was_split_keeps_the_evidence(history: list[EvidenceRow], rng: object) -> None:
    """B12, B13: merge(split(x)): whichever child each row went to, or both, α and β are as before."""
    shares = [rng.choice([(True, False), (False, True), (True, True)]) for _ in history]  # type: ignore[attr-defined]
    children = [[row for row, share in zip(history, shares, strict=True) if share[side]] for side in (0, 1)]
    united = merge_evidence(left=children[0], right=children[1])
    assert united == history
    policy = ConfidencePolicy()
    assert weigh_evidence(rows=united, policy=policy) == weigh_evidence(rows=history, policy=policy)


@given(histories, histories)
def test_the_order_of_the_two_does_not_matter(left: list[EvidenceRow], right: list[EvidenceRow]) -> None:
    """B13."""
    said = {(row.episode_id, row.verdict, row.base_weight) for row in merge_evidence(left=left, right=right)}
    assert said == {(row.episode_id, row.verdict, row.base_weight) for row in merge_evidence(left=right, right=left)}
