"""B8.2: leader clustering compares less and holds less than it seems to, and nobody can tell."""

import os
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.clustering import digest_labels
from benchmarks.hard_set import THRESHOLD, HardSet, Labels, Vectors, adjusted_rand_index, make_hard_set
from memory.domain.clustering import (
    Sketch,
    canonical_order,
    centrality,
    cluster,
    length_on_grid,
    put_on_grid,
    rank_clusters,
)
from memory.domain.policy_consolidation import ClusteringPolicy, ConsolidationPolicy

POLICY = ClusteringPolicy()
APPROXIMATE = ClusteringPolicy(exact_limit=1, leader_rows=64)


@pytest.fixture(scope="module")
def hard() -> HardSet:
    return make_hard_set(count=1_500, width=128, seed=3)


def label(vectors: Vectors, *, policy: ClusteringPolicy = POLICY, threshold: float = THRESHOLD) -> Labels:
    return cluster(vectors=vectors, threshold=threshold, policy=policy)


def on_circle(*degrees: float) -> Vectors:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def members(labels: Labels) -> list[NDArray[np.intp]]:
    return [np.flatnonzero(labels == own) for own in np.unique(labels)]


def test_a_hard_set_is_told_apart(hard: HardSet) -> None:
    """B8.2: siblings chained into one component stay apart, noise stays alone."""
    assert adjusted_rand_index(one=label(hard.vectors), other=hard.labels) >= 0.98


def test_leaders_tell_a_hard_set_apart(hard: HardSet) -> None:
    """B8.2: what is too large for the exact way is clustered around running centroids."""
    assert adjusted_rand_index(one=label(hard.vectors, policy=APPROXIMATE), other=hard.labels) >= 0.97


def test_a_large_component_and_many_pairs_fall_back_to_leaders(hard: HardSet) -> None:
    """B8.2: a component over the limit, or over 50 pairs a vector, is not clustered exactly."""
    by_component = label(hard.vectors, policy=ClusteringPolicy(component_limit=20))
    crowd = np.repeat(on_circle(0, 90), 200, axis=0)

    assert adjusted_rand_index(one=by_component, other=hard.labels) >= 0.95
    assert label(crowd).tolist() == [0] * 200 + [1] * 200


@pytest.mark.parametrize("policy", [POLICY, APPROXIMATE], ids=["exact", "leaders"])
def test_the_order_of_loading_does_not_matter(hard: HardSet, policy: ClusteringPolicy) -> None:
    """B8.2: sorted into canonical order, any shuffle gets the same labels."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    keys = [(start + timedelta(hours=row // 4), f"{row:05}", "", "") for row in range(len(hard.vectors))]
    loaded = np.random.default_rng(1).permutation(len(keys))
    order = loaded[canonical_order(keys=[keys[row] for row in loaded])]

    assert np.array_equal(label(hard.vectors[order], policy=policy), label(hard.vectors, policy=policy))


@pytest.mark.parametrize("rows", [17, 256, 4_096])
def test_the_shape_of_blocks_does_not_matter(hard: HardSet, rows: int) -> None:
    """B8.2: a similarity has the same bits wherever in a block it was computed."""
    assert np.array_equal(label(hard.vectors, policy=ClusteringPolicy(block_rows=rows)), label(hard.vectors))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_number_of_threads_does_not_matter(hard: HardSet, threads: str, tmp_path: Path) -> None:
    """B8.2: same input, same labels, always."""
    path = tmp_path / "vectors.npy"
    np.save(path, hard.vectors)
    command = [sys.executable, "-m", "benchmarks.clustering", "--digest", str(path)]
    env = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}

    answer = subprocess.run(command, env=env, check=True, capture_output=True, text=True)

    assert answer.stdout.strip() == digest_labels(path=path)


def test_similarities_are_exact_whatever_the_order_of_summing(hard: HardSet) -> None:
    """B8.2: a clustering of mirrored coordinates is the same, though every sum runs the other way round."""
    mirrored = np.ascontiguousarray(hard.vectors[:, ::-1])

    assert np.array_equal(label(mirrored), label(hard.vectors))


def test_average_linkage_cuts_a_chain() -> None:
    """B8.2: 0° and 40° are alike, 40° and 80° are alike, all three together are not."""
    assert label(on_circle(0, 40, 80)).tolist() in ([0, 0, 1], [0, 1, 1])


def test_labels_are_numbered_by_first_appearance() -> None:
    assert label(on_circle(0, 180, 5, 90, 185)).tolist() == [0, 1, 0, 2, 1]


def test_few_vectors_and_empty_ones_are_no_trouble() -> None:
    """B23: an empty store, a singleton, and a vector without direction."""
    assert label(np.empty((0, 768), dtype=np.float32)).tolist() == []
    assert label(np.ones((1, 768), dtype=np.float32)).tolist() == [0]
    assert label(np.zeros((3, 768), dtype=np.float32)).tolist() == [0, 1, 2]


@settings(deadline=None)
@given(st.lists(st.integers(0, 359), min_size=1, max_size=30), st.floats(0.3, 0.99))
def test_clusters_are_alike_inside_and_unlike_each_other_on_average(degrees: list[int], threshold: float) -> None:
    """B8.2: what average linkage joins is at least as similar as the threshold, what it leaves apart is less."""
    vectors = on_circle(*degrees)
    clusters = [vectors[places].astype(np.float64) for places in members(label(vectors, threshold=threshold))]
    inside = [(one @ one.T)[np.triu_indices(len(one), k=1)].mean() for one in clusters if len(one) > 1]
    across = [(one @ other.T).mean() for one, other in combinations(clusters, 2)]

    assert all(similarity >= threshold - 1e-3 for similarity in inside)
    assert all(similarity <= threshold + 1e-3 for similarity in across)


def test_canonical_order_goes_by_time_first() -> None:
    """B8.2: then by content hash, origin and text."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    keys = [(day + timedelta(1), "a", "", ""), (day, "b", "", ""), (day, "a", "z", ""), (day, "a", "b", "t")]

    assert canonical_order(keys=keys).tolist() == [3, 2, 1, 0]


def test_the_most_central_member_comes_first() -> None:
    """B8.3: by mean similarity to the members."""
    assert centrality(vectors=on_circle(0, 50, 20, 90)).tolist() == [1, 2, 0, 3]


def test_members_equally_central_keep_their_order() -> None:
    assert centrality(vectors=on_circle(10, 10, 10)).tolist() == [0, 1, 2]


def test_a_cycle_takes_the_largest_and_longest_waiting_clusters() -> None:
    """B8.2: size × (1 + days waited), none under three, at most ten."""
    policy = ConsolidationPolicy()

    assert rank_clusters(sizes=[3, 2, 10, 4], days_waited=[9.0, 99.0, 0.0, 1.5], policy=policy) == [0, 2, 3]
    assert len(rank_clusters(sizes=[5] * 30, days_waited=[0.0] * 30, policy=policy)) == 10


def test_the_index_of_agreement_knows_worked_cases() -> None:
    """Hubert and Arabie: 1 for the same partition under other names, 0 for what chance gives."""
    one = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    other = np.array([5, 5, 4, 4, 3, 3], dtype=np.int32)

    assert adjusted_rand_index(one=one, other=one + 7) == 1.0
    assert adjusted_rand_index(one=one, other=other) == pytest.approx((2 - 6 * 3 / 15) / ((6 + 3) / 2 - 6 * 3 / 15))
    assert adjusted_rand_index(one=one, other=np.zeros(6, dtype=np.int32)) == 0.0


@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_index_of_agreement_is_symmetric(drawn: list[int], rng: random.Random) -> None:
    one = np.array(drawn, dtype=np.int32)
    other = np.array(rng.sample(drawn, len(drawn)), dtype=np.int32)

    assert adjusted_rand_index(one=one, other=other) == adjusted_rand_index(one=other, other=one) <= 1.0


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
