"""Group vectors that are alike: the same labels for the same input, whatever the machine does beneath (B8.2).

Everything rests on one trick. Vectors are put on a grid of whole numbers whose length stays under 2¹², so that every
partial sum of a scalar product is a whole number of at most 2²⁴, which float32 holds exactly. A similarity then has the
same bits however many threads computed it, in blocks of whatever shape, at the price of an error of about 10⁻⁴.
"""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from memory.domain.policy import ClusteringPolicy, ConsolidationPolicy

Vectors = NDArray[np.float32]
Labels = NDArray[np.int32]
Order = NDArray[np.intp]

_GRID = 2**12


def cluster(*, vectors: Vectors, threshold: float, policy: ClusteringPolicy) -> Labels:
    """Return a label for each of n vectors (n, d), numbered by first appearance; one alone has a label of its own.

    `threshold` is a raw cosine. Vectors come in canonical order, since leaders are chosen in it. Average linkage is cut
    at the threshold inside each connected component, which is exact: no pair across two components reaches it. Where
    that costs too much, ordered leader clustering takes its place.
    """
    grid, scale = _put_on_grid(vectors)
    least = threshold * scale**2
    pairs = _similar_pairs(grid, least=least, policy=policy) if len(grid) <= policy.exact_limit else None
    if pairs is None:
        return _number_by_appearance(_lead(grid, least=least, policy=policy))
    labels = _components(len(grid), *pairs)
    unused = len(grid)
    for members in _groups(labels, at_least=3):  # one alone is its own cluster, and a pair is similar by itself
        split = _split_component(grid[members], least=least, scale=scale, policy=policy)
        labels[members] = unused + split
        unused += len(members)
    return _number_by_appearance(labels)


def canonical_order(*, keys: Sequence[tuple[datetime, str, str, str]]) -> Order:
    """Return the positions of episodes by (occurred_at, content hash, origin, text): loading order is nothing."""
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def centrality(*, vectors: Vectors) -> Order:
    """Return the positions of a cluster's members by mean similarity to all of them, most central first."""
    grid, _ = _put_on_grid(vectors)
    whole = grid.astype(np.float64)
    return np.argsort(-(whole @ whole.sum(axis=0)), kind="stable")


def rank_clusters(*, sizes: Sequence[int], days_waited: Sequence[float], policy: ConsolidationPolicy) -> list[int]:
    """Return the positions of the clusters that a cycle takes, by size × (1 + days waited), the first among equals."""
    eligible = [place for place, size in enumerate(sizes) if size >= policy.cluster_min]
    eligible.sort(key=lambda place: -sizes[place] * (1.0 + days_waited[place]))
    return eligible[: policy.clusters]


def _put_on_grid(vectors: Vectors) -> tuple[Vectors, float]:
    """Return the vectors as whole numbers of one common length, and that length; a zero vector stays zero."""
    rounding = 0.5 * math.sqrt(vectors.shape[1])  # how much length rounding to whole numbers may add
    scale = float(math.floor(_GRID - rounding - 1))
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    grid = vectors * (scale / np.where(norms > 0, norms, 1.0)).astype(np.float32)[:, None]
    return np.rint(grid, out=grid), scale


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


def _split_component(grid: Vectors, *, least: float, scale: float, policy: ClusteringPolicy) -> Labels:
    """Return labels from 0 on for the members of one connected component."""
    if len(grid) > policy.component_limit:
        return _lead(grid, least=least, policy=policy)
    similarity = (grid @ grid.T).astype(np.float64)
    distance = scale**2 - similarity[np.triu_indices(len(grid), k=1)]
    tree = linkage(np.maximum(distance, 0.0), method="average")
    return np.asarray(fcluster(tree, scale**2 - least, criterion="distance") - 1, dtype=np.int32)


def _lead(grid: Vectors, *, least: float, policy: ClusteringPolicy) -> Labels:
    """Return labels by ordered leader clustering: join the most similar running centroid, else lead.

    Centroids move at the end of each block; inside a block, those that joined none gather around the first of them.
    Further passes let every vector go to the centroid that has become its nearest.
    """
    leaders = _Leaders(width=grid.shape[1])
    labels = np.empty(len(grid), dtype=np.int32)
    for block in _blocks(len(grid), policy.leader_rows):
        joined = leaders.nearest(grid[block], least=least)
        strangers = np.flatnonzero(joined < 0)
        joined[strangers] = leaders.count + _gather(grid[block][strangers], least=least)
        leaders.absorb(grid[block], joined)
        labels[block] = joined
    for _ in range(policy.leader_passes):
        labels = _reassign(grid, labels, least=least, policy=policy)
    return labels


def _reassign(grid: Vectors, labels: Labels, *, least: float, policy: ClusteringPolicy) -> Labels:
    """Return labels after every vector went to its nearest centroid; a cluster of one draws nobody."""
    followed = np.flatnonzero(np.bincount(labels) > 1)
    place = np.full(labels.max() + 1, -1, dtype=np.int32)
    place[followed] = np.arange(followed.size, dtype=np.int32)
    leaders = _Leaders(width=grid.shape[1])
    for block in _blocks(len(grid), policy.leader_rows):
        places = place[labels[block]]
        leaders.absorb(grid[block][places >= 0], places[places >= 0])
    moved = labels.copy()
    for block in _blocks(len(grid), policy.leader_rows):
        nearest = leaders.nearest(grid[block], least=least)
        moved[block] = np.where(nearest < 0, labels[block], followed[nearest])
    return moved


def _blocks(count: int, rows: int) -> Iterator[slice]:
    return (slice(start, min(start + rows, count)) for start in range(0, count, rows))


def _gather(rows: Vectors, *, least: float) -> Labels:
    """Return labels from 0 on: each row joins the most similar earlier leader, else leads."""
    products = rows @ rows.T
    labels = np.empty(len(rows), dtype=np.int32)
    leading: list[int] = []
    for place in range(len(rows)):
        nearest = int(np.argmax(products[place, leading])) if leading else -1
        if nearest < 0 or products[place, leading[nearest]] < least:
            nearest = len(leading)
            leading.append(place)
        labels[place] = nearest
    return labels


class _Leaders:
    """Running centroids, kept on the grid so that comparing with them is exact, too."""

    def __init__(self, *, width: int) -> None:
        self.count = 0
        self._sums = np.zeros((0, width), dtype=np.float32)
        self._centroids = np.zeros((0, width), dtype=np.float32)

    def nearest(self, rows: Vectors, *, least: float) -> Labels:
        """Return the most similar leader of each row, −1 where none is similar enough."""
        if not self.count:
            return np.full(len(rows), -1, dtype=np.int32)
        products = rows @ self._centroids[: self.count].T
        best = np.argmax(products, axis=1)
        return np.where(products[np.arange(len(rows)), best] >= least, best, -1).astype(np.int32)

    def absorb(self, rows: Vectors, leaders: Labels) -> None:
        """Move each leader's centroid by the rows that joined it; new leaders are numbered on from the last one."""
        self._grow(int(leaders.max(initial=-1)) + 1)
        np.add.at(self._sums, leaders, rows)
        moved = np.unique(leaders)
        self._centroids[moved] = _put_on_grid(self._sums[moved])[0]

    def _grow(self, count: int) -> None:
        self.count = max(self.count, count)
        if self.count > len(self._sums):
            room = max(self.count, 2 * len(self._sums)) - len(self._sums)
            self._sums = np.pad(self._sums, ((0, room), (0, 0)))
            self._centroids = np.pad(self._centroids, ((0, room), (0, 0)))


def _number_by_appearance(labels: NDArray[Any]) -> Labels:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[inverse]
