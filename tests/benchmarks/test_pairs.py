"""The benchmark of pairs: what is planted is found, and it would show if some were missed."""

from typing import Any

import pytest

from benchmarks import clustering, pairs
from benchmarks.hard_set import make_hard_set
from benchmarks.pairs import all_pairs, find_pairs, make_beliefs, make_vectors, measure, threshold
from memory.consolidation import gates
from memory.domain.policy_consolidation import ClusteringPolicy

COUNT = 400


@pytest.mark.parametrize("block", [64, 1024])
def test_a_cycle_finds_every_pair_both_ways(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """B13: in whatever blocks they are compared."""
    monkeypatch.setattr(gates, "_BLOCK_BELIEFS", block)
    vectors = make_vectors(count=COUNT)
    found = find_pairs(beliefs=make_beliefs(count=COUNT), vectors=vectors)

    assert len(found) > 20
    assert found == all_pairs(vectors=vectors, threshold=threshold())
    assert found == {(other, one) for one, other in found}


def test_pairs_that_are_missed_and_pairs_that_are_none_show(monkeypatch: pytest.MonkeyPatch) -> None:
    really = pairs.find_pairs

    def find(**given: Any) -> pairs.Places:
        return set(sorted(really(**given))[2:]) | {(0, 0)}

    monkeypatch.setattr(pairs, "find_pairs", find)

    ratio, missed, wrong = measure(count=COUNT, rounds=1)

    assert ratio.value > 0
    assert (missed.value, missed.is_met) == (2, False)
    assert (wrong.value, wrong.is_met) == (1, False)


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "POLICY", ClusteringPolicy(block_rows=10))


@pytest.mark.usefixtures("_small_blocks")
def test_strips_of_the_triangle_tell_what_all_of_it_takes() -> None:
    """Strips of 10 rows of 25: 250, 150 and 25 cells, the last of 5 rows."""
    assert clustering.share_of(strips=range(0, 25, 10), count=25) == 1.0
    assert clustering.share_of(strips=[0, 20], count=25) == pytest.approx(275 / 425)


@pytest.mark.usefixtures("_small_blocks")
def test_many_vectors_are_clustered_beside_some_of_their_pairs() -> None:
    assert clustering.large_ratio(vectors=make_hard_set(count=200, width=64).vectors) > 0
