"""Group more vectors than average linkage can take, in one order, around running centroids (B8.2).

Most leaders of a large set lead nobody: noise. To compare all vectors with all of these in every dimension is nearly
all the work, and to hold a sum and a centroid for each of them most of the memory. So what is compared with every
leader is a sketch: the signed sums of all coordinates under a few fixed random signs, which keep a cosine within about
(1 − cosine²) ÷ √sums (Johnson and Lindenstrauss 1984; Achlioptas 2003). Only what comes near enough by its sketch is
compared in full. Sketches are whole numbers, too: same input, same labels, always.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from memory.domain.grid import Grid, Vectors, length_on_grid, put_on_grid
from memory.domain.policy import ClusteringPolicy

Labels = NDArray[np.int32]
Columns = NDArray[np.intp]

_SEED = 1


class Sketch:
    """What of a vector is compared with every leader: few signed sums of it, or, without a margin, all of it.

    `bound` is the least product of two sketches whose vectors may have a product of `least`.
    """

    def __init__(self, *, width: int, least: float, policy: ClusteringPolicy, is_exact: bool) -> None:
        self.width, self.bound = width, least
        self._signs: Vectors | None = None
        if is_exact or policy.sketch_width >= width:
            return
        self.width = policy.sketch_width
        cosine = least / length_on_grid(width=width) ** 2
        self.bound = (cosine - policy.sketch_margin) * length_on_grid(width=self.width) ** 2
        bits = np.random.PCG64(_SEED).random_raw(width * self.width) & np.uint64(1)  # the same in every NumPy
        self._signs = (2.0 * bits.astype(np.float32) - 1.0).reshape(width, self.width)

    def of(self, rows: Vectors) -> Vectors:
        """Return the sketches of rows on the grid, on the grid; the sums before are exact: below 2¹² √width."""
        return rows if self._signs is None else put_on_grid(rows @ self._signs)


def lead(*, grid: Grid, least: float, policy: ClusteringPolicy, is_exact: bool) -> Labels:
    """Return labels by ordered leader clustering: join the most similar running centroid, else lead.

    Centroids move at the end of each block; inside a block, those that joined none gather around the first of them.
    Further passes let every vector go to the centroid that has become its nearest. `least` is a product on the grid.
    """
    sketch = Sketch(width=grid.width, least=least, policy=policy, is_exact=is_exact)
    leaders = _Leaders(grid, sketch=sketch, policy=policy)
    labels = np.empty(len(grid), dtype=np.int32)
    for block in _blocks(len(grid), policy.leader_rows):
        rows = grid[block]
        joined = leaders.nearest(rows, least=least)
        strangers = np.flatnonzero(joined < 0)
        joined[strangers] = leaders.count + _gather(rows[strangers], least=least)
        leaders.absorb(rows, joined, places=np.arange(block.start, block.stop))
        leaders.move(np.unique(joined))
        labels[block] = joined
    del leaders
    for _ in range(policy.leader_passes):
        labels = _reassign(grid, labels, sketch=sketch, least=least, policy=policy)
    return labels


def _reassign(grid: Grid, labels: Labels, *, sketch: Sketch, least: float, policy: ClusteringPolicy) -> Labels:
    """Return labels after every vector went to its nearest centroid; a cluster of one draws nobody."""
    followed = np.flatnonzero(np.bincount(labels) > 1)
    if not followed.size:
        return labels
    place = np.full(labels.max() + 1, -1, dtype=np.int32)
    place[followed] = np.arange(followed.size, dtype=np.int32)
    leaders = _Leaders(grid, sketch=sketch, policy=policy)
    for block in _blocks(len(grid), policy.leader_rows):
        inside = block.start + np.flatnonzero(place[labels[block]] >= 0)
        leaders.absorb(grid[inside], place[labels[inside]], places=inside)
    leaders.move(np.arange(followed.size))
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
    is_near_another = np.asarray(np.tril(products >= least, k=-1).any(axis=1))
    labels = np.empty(len(rows), dtype=np.int32)
    leading: list[int] = []
    for place, may_join in enumerate(is_near_another.tolist()):
        nearest = int(np.argmax(products[place, leading])) if may_join else -1
        if nearest < 0 or products[place, leading[nearest]] < least:
            nearest = len(leading)
            leading.append(place)
        labels[place] = nearest
    return labels


class _Leaders:
    """Running centroids, put on the grid whenever they are compared, so that comparing is exact, too.

    Kept are the sketch of each, and the sums of those that lead others: one alone is its own sum.
    """

    def __init__(self, grid: Grid, *, sketch: Sketch, policy: ClusteringPolicy) -> None:
        self.count = 0
        self._grid = grid
        self._sketch = sketch
        self._alone: dict[int, int] = {}  # the place of the only member
        self._sums: dict[int, Vectors] = {}
        self._at_once = policy.block_rows  # of centroids in full
        self._height = policy.leader_columns
        self._bands: list[Vectors] = []  # sketches, in bands of one height: growing copies nothing
        self._products = np.empty(policy.leader_rows * self._height, dtype=np.float32)

    def nearest(self, rows: Vectors, *, least: float) -> Labels:
        """Return the most similar leader of each row, −1 where none is similar enough."""
        best = np.full(len(rows), -1, dtype=np.int32)
        most = np.full(len(rows), -np.inf, dtype=np.float32)
        near = self._near(rows)
        for block in _blocks(near.size, self._at_once):
            columns = near[block]
            products = rows @ self._centroids(columns).T
            first = np.argmax(products, axis=1)
            product = products[np.arange(len(rows)), first]
            is_nearer = (product >= least) & (product > most)
            best[is_nearer], most[is_nearer] = columns[first[is_nearer]], product[is_nearer]
        return best

    def absorb(self, rows: Vectors, leaders: Labels, *, places: Columns) -> None:
        """Add rows (m, d) at these places to the sums of the leaders that they joined, new ones among them."""
        for row, leader, place in zip(rows, leaders.tolist(), places.tolist(), strict=True):
            if (total := self._sums.get(leader)) is not None:
                total += row
            elif (only := self._alone.pop(leader, None)) is not None:
                self._sums[leader] = self._grid[only : only + 1][0] + row
            else:
                self._alone[leader] = place
        self.count = max(self.count, int(leaders.max(initial=-1)) + 1)

    def move(self, leaders: Columns | Labels) -> None:
        """Have these leaders compared by what they are the centroids of by now."""
        while len(self._bands) * self._height < self.count:
            self._bands.append(np.zeros((self._height, self._sketch.width), dtype=np.float32))
        for block in _blocks(leaders.size, self._at_once):
            moved = leaders[block]
            sketches = self._sketch.of(self._centroids(moved))
            for band in np.unique(moved // self._height).tolist():
                inside = moved // self._height == band
                self._bands[band][moved[inside] % self._height] = sketches[inside]

    def _near(self, rows: Vectors) -> Columns:
        """Return, in ascending order, the leaders that may be similar enough to any of the rows."""
        sketches = self._sketch.of(rows)
        found = []
        for start, band in zip(range(0, self.count, self._height), self._bands, strict=True):
            used = band[: self.count - start]
            products = self._products[: len(rows) * len(used)].reshape(len(rows), len(used))
            np.matmul(sketches, used.T, out=products)
            found.append(start + np.flatnonzero(products.max(axis=0) >= self._sketch.bound))
        return np.concatenate(found) if found else np.empty(0, dtype=np.intp)

    def _centroids(self, leaders: Columns | Labels) -> Vectors:
        sums = np.empty((leaders.size, self._grid.width), dtype=np.float32)
        known = leaders.tolist()
        alone = [seat for seat, leader in enumerate(known) if leader in self._alone]
        sums[alone] = self._grid[np.array([self._alone[known[seat]] for seat in alone], dtype=np.intp)]
        for seat, leader in enumerate(known):
            if leader in self._sums:
                sums[seat] = self._sums[leader]
        return put_on_grid(sums)
