"""Group vectors that are alike: the same labels for the same input, whatever the machine does beneath (B8.2).

The exact way is here, what takes its place where there is too much is in leaders.py. Both compare vectors on the grid.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memory.domain.grid import Grid, Order, Vectors, length_on_grid, put_on_grid
from memory.domain.leaders import Labels, lead
from memory.domain.policy import ClusteringPolicy, ConsolidationPolicy


def cluster(*, vectors: Vectors, threshold: float, policy: ClusteringPolicy) -> Labels:
    """Return a label for each of n vectors (n, d), numbered by first appearance; one alone has a label of its own.

    `threshold` is a raw cosine. Vectors come in canonical order, since leaders are chosen in it. Average linkage is cut
    at the threshold inside each connected component, which is exact: no pair across two components reaches it. Where
    that costs too much, ordered leader clustering takes its place; over the exact limit, it looks at sketches first.
    """
    scale = length_on_grid(width=vectors.shape[1])
    least = threshold * scale**2
    if len(vectors) > policy.exact_limit:
        return _number_by_appearance(lead(grid=Grid(vectors), least=least, policy=policy, is_exact=False))
    grid = put_on_grid(vectors)
    pairs = _similar_pairs(grid, least=least, policy=policy)
    if pairs is None:
        return _number_by_appearance(lead(grid=Grid(vectors), least=least, policy=policy, is_exact=True))
    labels = _components(len(grid), *pairs)
    unused = len(grid)
    for members in _groups(labels, at_least=3):  # one alone is its own cluster, and a pair is similar by itself
        if len(members) > policy.component_limit:
            split = lead(grid=Grid(vectors[members]), least=least, policy=policy, is_exact=True)
        else:
            split = _split_component(grid[members], least=least, scale=scale)
        labels[members] = unused + split
        unused += len(members)
    return _number_by_appearance(labels)


def canonical_order(*, keys: Sequence[tuple[datetime, str, str, str]]) -> Order:
    """Return the positions of episodes by (occurred_at, content hash, origin, text): loading order is nothing."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def centrality(*, vectors: Vectors) -> Order:
    """Return the positions of a cluster's members by mean similarity to all of them, most central first."""
    whole = put_on_grid(vectors).astype(np.float64)
    return np.argsort(-(whole @ whole.sum(axis=0)), kind="stable")


def rank_clusters(*, sizes: Sequence[int], days_waited: Sequence[float], policy: ConsolidationPolicy) -> list[int]:
    """Return the positions of the clusters that a cycle takes, by size × (1 + days waited), the first among equals."""
    eligible = [place for place, size in enumerate(sizes) if size >= policy.cluster_min]
    eligible.sort(key=lambda place: -sizes[place] * (1.0 + days_waited[place]))
    return eligible[: policy.clusters]


def _similar_pairs(grid: Vectors, *, least: float, policy: ClusteringPolicy) -> tuple[Labels, Labels] | None:
    """Return the pairs (left < right) of at least this product, or None if there are too many to be worth it."""
    limit = policy.pairs_per_episode * len(grid)
    lefts, rights, found = [], [], 0
    for left, right in _block_hits(grid, least=least, rows=policy.block_rows):
        lefts.append(left)
        rights.append(right)
        found += left.size
        if found > limit:
            return None
    return _joined(lefts), _joined(rights)


def _block_hits(grid: Vectors, *, least: float, rows: int) -> Iterator[tuple[Labels, Labels]]:
    """Yield the similar pairs of each block of the upper triangle."""
    products = np.empty(rows * rows, dtype=np.float32)
    for top in range(0, len(grid), rows):
        upper = grid[top : top + rows]
        for side in range(top, len(grid), rows):
            lower = grid[side : side + rows]
            block = products[: len(upper) * len(lower)].reshape(len(upper), len(lower))
            np.matmul(upper, lower.T, out=block)
            hits = np.flatnonzero(block >= least)
            left, right = hits // len(lower) + top, hits % len(lower) + side
            is_upper = left < right
            yield left[is_upper].astype(np.int32), right[is_upper].astype(np.int32)


def _joined(parts: list[Labels]) -> Labels:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _components(count: int, left: Labels, right: Labels) -> Labels:
    graph = coo_array((np.ones(left.size, dtype=np.int8), (left, right)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


def _groups(labels: Labels, *, at_least: int) -> Iterator[Order]:
    """Yield the positions of each label that at least so many carry, in ascending order."""
    order = np.argsort(labels, kind="stable")
    _, starts = np.unique(labels[order], return_index=True)
    for members in np.split(order, starts[1:]):
        if members.size >= at_least:
            yield members


def _split_component(grid: Vectors, *, least: float, scale: float) -> Labels:
    """Return labels from 0 on for the members of one connected component."""
    similarity = (grid @ grid.T).astype(np.float64)
    distance = scale**2 - similarity[np.triu_indices(len(grid), k=1)]
    tree = linkage(np.maximum(distance, 0.0), method="average")
    return np.asarray(fcluster(tree, scale**2 - least, criterion="distance") - 1, dtype=np.int32)


def _number_by_appearance(labels: NDArray[Any]) -> Labels:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[inverse]
