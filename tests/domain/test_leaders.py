"""B8.2: leader clustering compares less and holds less than it seems to, and nobody can tell."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.hard_set import THRESHOLD, Labels, Vectors, adjusted_rand_index, make_hard_set
from memory.domain.clustering import Sketch, cluster, length_on_grid, put_on_grid
from memory.domain.policy_consolidation import ClusteringPolicy

WIDTH = 384
LEAST = THRESHOLD * length_on_grid(width=WIDTH) ** 2
SMALL = ClusteringPolicy(leader_rows=64, leader_columns=50, block_rows=30)  # so that every block has an end
SKETCHED = replace(SMALL, exact_limit=1)
CROWDED = replace(SMALL, pairs_per_episode=1)


def draw(*, seed: int, count: int = 2_500, width: int = WIDTH) -> Vectors:
    return make_hard_set(count=count, width=width, seed=seed).vectors


def draw_noise(*, count: int, width: int) -> Vectors:
    return np.random.default_rng(5).standard_normal((count, width), dtype=np.float32)


def lead_plainly(vectors: Vectors, *, policy: ClusteringPolicy) -> Labels:
    """Compare every vector with every leader in full, and keep everything."""
    grid, rows = put_on_grid(vectors), policy.leader_rows
    labels, sums, count = np.empty(len(grid), dtype=np.int64), np.zeros_like(grid), 0
    for start in range(0, len(grid), rows):
        block = slice(start, start + rows)
        labels[block] = nearest_of(grid[block], sums[:count])
        leading: list[int] = []
        for place in start + np.flatnonzero(labels[block] < 0):
            similar = grid[place] @ grid[leading].T
            is_led = bool(leading) and similar.max() >= LEAST
            labels[place] = count + (int(similar.argmax()) if is_led else len(leading))
            leading += [] if is_led else [int(place)]
        count += len(leading)
        np.add.at(sums, labels[block], grid[block])
    for _ in range(policy.leader_passes):
        sums = np.zeros_like(grid)
        np.add.at(sums, labels, grid)
        sums[np.flatnonzero(np.bincount(labels, minlength=len(sums)) < 2)] = 0
        nearest = nearest_of(grid, sums[:count])
        labels = np.where(nearest < 0, labels, nearest)
    _, first = np.unique(labels, return_index=True)
    appearing = labels[np.sort(first)].tolist()
    return np.array([appearing.index(label) for label in labels], dtype=np.int32)


def nearest_of(rows: Vectors, sums: Vectors) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if not len(sums):
        return np.full(len(rows), -1)
    products = rows @ put_on_grid(sums).T
    return np.where(products.max(axis=1) >= LEAST, products.argmax(axis=1), -1)


@pytest.mark.parametrize("policy", [CROWDED, SKETCHED], ids=["in full", "by sketches"])
@pytest.mark.parametrize("seed", [3, 4])
def test_labels_are_those_of_comparing_everything(policy: ClusteringPolicy, seed: int) -> None:
    """B8.2: neither what is left out of comparing nor what is not kept shows."""
    vectors = draw(seed=seed)

    labels = cluster(vectors=vectors, threshold=THRESHOLD, policy=policy)

    assert np.array_equal(labels, lead_plainly(vectors, policy=policy))


def test_the_hard_set_is_told_apart_by_sketches() -> None:
    """B8.2: at the width of real vectors, as well as the exact way must."""
    hard = make_hard_set(count=4_000)
    labels = cluster(vectors=hard.vectors, threshold=THRESHOLD, policy=ClusteringPolicy(exact_limit=1))

    assert adjusted_rand_index(one=labels, other=hard.labels) >= 0.98


def test_a_sketch_tells_noise_from_what_may_be_similar() -> None:
    """B8.2: pairs at a cosine of .70 pass, of two vectors without relation hardly one in a million does."""
    noise = draw_noise(count=2_000, width=WIDTH)
    ones, across = noise[:1_000] / np.linalg.norm(noise[:1_000], axis=1)[:, None], noise[1_000:]
    across = across - (across * ones).sum(axis=1)[:, None] * ones
    others = 0.7 * ones + np.sqrt(0.51) * across / np.linalg.norm(across, axis=1)[:, None]
    sketch = Sketch(width=WIDTH, least=LEAST, policy=SKETCHED, is_exact=False)
    products = sketch.of(put_on_grid(ones)) @ sketch.of(put_on_grid(others)).T

    assert (products.diagonal() >= sketch.bound).all()
    assert np.count_nonzero(products >= sketch.bound) <= 1_000 + 1


def test_the_sketch_of_narrow_vectors_is_all_of_them() -> None:
    sketch = Sketch(width=64, least=9.0, policy=SKETCHED, is_exact=False)
    rows = put_on_grid(draw_noise(count=3, width=64))

    assert sketch.bound == 9.0
    assert np.array_equal(sketch.of(rows), rows)


def test_where_all_is_noise_everybody_is_alone() -> None:
    """B23: no leader leads anybody."""
    labels = cluster(vectors=draw_noise(count=300, width=WIDTH), threshold=THRESHOLD, policy=SKETCHED)

    assert labels.tolist() == list(range(300))


def test_leaders_that_lead_nobody_cost_little_memory() -> None:
    """B8.2: beside the vectors, no second copy of them: noise leads as many clusters as it has vectors."""
    vectors = draw_noise(count=6_000, width=768)
    policy = replace(SKETCHED, leader_columns=512)
    tracemalloc.start()
    try:
        cluster(vectors=vectors, threshold=THRESHOLD, policy=policy)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < vectors.nbytes / 2


def test_of_two_leaders_equally_similar_the_first_is_joined() -> None:
    """B8.2: also where they are compared apart from each other."""
    mirrored = np.array([(1.0, 0.02), (0.02, 1.0), (1.0, 1.0)], dtype=np.float32)  # cosines of .04, and .72 twice
    policy = replace(SKETCHED, leader_rows=1, leader_columns=1, block_rows=1)

    assert cluster(vectors=mirrored, threshold=THRESHOLD, policy=policy).tolist() == [0, 1, 0]
