"""B13: every pair near enough to be one of which the first changed, once, however many changed."""

import numpy as np
import pytest

from benchmarks.pairs import UNSURE, all_pairs, make_beliefs, make_vectors, threshold
from memory.consolidation import gates
from memory.domain.similarity import identity_profile

COUNT = 400


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("block", [7, 64, 1024])
def test_all_pairs_of_what_changed_are_found_once(share: float, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """B13: compared with all pairs in double precision; who changed stands anywhere, and one of them is gone by now."""
    monkeypatch.setattr(gates, "_BLOCK_BELIEFS", block)
    vectors, beliefs = make_vectors(count=COUNT), make_beliefs(count=COUNT)
    drawn = np.random.default_rng(1).random(COUNT) < share
    changed = {belief.id for belief, is_drawn in zip(beliefs, drawn, strict=True) if is_drawn} | {"gone"}
    profile = identity_profile(model="drawn")
    pairs = list(gates.find_near_pairs(changed=changed, beliefs=beliefs, vectors=vectors, profile=profile))
    found = {(int(one.id), int(other.id)) for one, other, _ in pairs}
    expected, possible = (
        {(one, other) for one, other in all_pairs(vectors=vectors, threshold=threshold() + margin) if drawn[one]}
        for margin in (UNSURE, -UNSURE)
    )
    assert expected <= found <= possible
    assert len(pairs) == len(found)
    exact = vectors.astype(np.float64)
    for one, other, similarity in pairs:
        assert similarity == pytest.approx(exact[int(one.id)] @ exact[int(other.id)], abs=1e-5)
    assert bool(expected) == (share > 0.0)


def test_of_nothing_there_are_no_pairs() -> None:
    """B13."""
    nothing = np.zeros((0, 768), dtype=np.float32)
    profile = identity_profile(model="drawn")
    assert not list(gates.find_near_pairs(changed={"gone"}, beliefs=[], vectors=nothing, profile=profile))
