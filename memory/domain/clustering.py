"""Group vectors that are alike: the same labels for the same input, whatever the machine does beneath (B8.2, B23).

`cluster` takes the exact way, average linkage, or beyond its limits ordered leader clustering. Both compare vectors on
a grid of whole numbers. At the end, texts and statements are grouped into the questions that a model is asked (B9).

The grid: vectors are scaled to whole numbers whose length stays under 2¹², so that every partial sum of a scalar
product is a whole number of at most 2²⁴, which float32 holds exactly. A similarity then has the same bits however many
threads computed it, in blocks of whatever shape, at the price of an error of about 10⁻⁴.

Leaders: most leaders of a large set lead nobody, and to compare every vector with all of them in every dimension is
nearly all the work. So what is compared with every leader is a sketch: the signed sums of all coordinates under a few
fixed random signs, which keep a cosine within about (1 − cosine²) ÷ √sums (Johnson and Lindenstrauss 1984; Achlioptas
2003). Only what comes near enough by its sketch is compared in full. Sketches are whole numbers, too.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy_consolidation import ClusteringPolicy, ConsolidationPolicy

Labels = NDArray[np.int32]
Vectors = NDArray[np.float32]


def cluster(*, vectors: Vectors, threshold: float, policy: ClusteringPolicy) -> Labels:
    """Return a label for each of n vectors (n, d), numbered by first appearance; one alone has a label of its own.

    `threshold` is a raw cosine. Vectors come in canonical order, since leaders are chosen in it. Average linkage is cut
    at the threshold inside each connected component, which is exact: no pair across two components reaches it. Where
    that costs too much, ordered leader clustering takes its place; over the exact limit, it looks at sketches first.
    """
    scale = length_on_grid(width=vectors.shape[1])
    least = threshold * scale**2
    if len(vectors) > policy.exact_limit:
        return _number_by_appearance(cluster_by_leaders(grid=Grid(vectors), least=least, policy=policy, is_exact=False))
    grid = put_on_grid(vectors)
    pairs = _similar_pairs(grid, least=least, policy=policy)
    if pairs is None:
        return _number_by_appearance(cluster_by_leaders(grid=Grid(vectors), least=least, policy=policy, is_exact=True))
    labels = _components(len(grid), *pairs)
    unused = len(grid)
    for members in _members_by_label(
        labels, at_least=3
    ):  # one alone is its own cluster, and a pair is similar by itself
        if len(members) > policy.component_limit:
            split = cluster_by_leaders(grid=Grid(vectors[members]), least=least, policy=policy, is_exact=True)
        else:
            split = _split_component(grid[members], least=least, scale=scale)
        labels[members] = unused + split
        unused += len(members)
    return _number_by_appearance(labels)


Order = NDArray[np.intp]


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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(left.size, dtype=np.int8), (left, right)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


def _members_by_label(labels: Labels, *, at_least: int) -> Iterator[Order]:
    """Yield the positions of each label that at least so many carry, in ascending order."""
    order = np.argsort(labels, kind="stable")
    _, starts = np.unique(labels[order], return_index=True)
    for members in np.split(order, starts[1:]):
        if members.size >= at_least:
            yield members


def _split_component(grid: Vectors, *, least: float, scale: float) -> Labels:
    """Return labels from 0 on for the members of one connected component."""
    from scipy.cluster.hierarchy import fcluster, linkage  # takes a fifth of a second, and most processes need it never

    similarity = (grid @ grid.T).astype(np.float64)
    distance = scale**2 - similarity[np.triu_indices(len(grid), k=1)]
    tree = linkage(np.maximum(distance, 0.0), method="average")
    return np.asarray(fcluster(tree, scale**2 - least, criterion="distance") - 1, dtype=np.int32)


def _number_by_appearance(labels: NDArray[Any]) -> Labels:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[inverse]


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


class Grid:
    """Vectors (n, d) that are put on the grid where they are read, so that no second copy of all is held.

    `scale` is the length that all of them have there; a zero vector stays zero.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.scale = length_on_grid(width=vectors.shape[1])
        self._vectors = vectors
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        self._factors = (self.scale / np.where(norms > 0, norms, 1.0)).astype(np.float32)

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, places: slice | Order) -> Vectors:
        """Return some of the vectors as whole numbers."""
        rows: Vectors = self._vectors[places] * self._factors[places, None]
        np.rint(rows, out=rows)
        return rows

    @property
    def width(self) -> int:
        """Return the number of dimensions."""
        return int(self._vectors.shape[1])


def cluster_by_leaders(*, grid: Grid, least: float, policy: ClusteringPolicy, is_exact: bool) -> Labels:
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


_GRID = 2**12


def length_on_grid(*, width: int) -> float:
    """Return the length of vectors of so many dimensions on the grid."""
    rounding = 0.5 * math.sqrt(width)  # how much length rounding to whole numbers may add
    return float(math.floor(_GRID - rounding - 1))


def put_on_grid(vectors: Vectors) -> Vectors:
    """Return all of the vectors as whole numbers of one common length."""
    return Grid(vectors)[:]


_PACKS_IN_SIGHT = 20  # questions with room that a text is tried in: a pool may fill thousands


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingBatch:
    """Statements and texts, by their keys, of which every pair is judged; some pairs may need no verdict."""

    statements: tuple[str, ...]
    texts: tuple[str, ...]


def batch_pairs(
    *, waiting: Mapping[str, Collection[str]], texts: Sequence[str], most_statements: int, most_texts: int
) -> list[JudgingBatch]:
    """Cut what waits for a verdict, texts by statement, into questions; both keep their order.

    Statements that wait for the same texts, mostly, are asked about together: a verdict too many costs less than
    showing a text again.
    """
    return [
        batch
        for group in _group_statements({key: set(those) for key, those in waiting.items() if those}, most_statements)
        for batch in _cut_batches(group, texts, most_texts)
    ]


def gather_pairs(
    *, waiting: Mapping[str, Collection[str]], texts: Sequence[str], most_texts: int
) -> list[JudgingBatch]:
    """Cut what was packed for one question into as few as it takes by now."""
    return list(_cut_batches({key: set(those) for key, those in waiting.items() if those}, texts, most_texts))


def _group_statements(waiting: Mapping[str, set[str]], most: int) -> list[dict[str, set[str]]]:
    groups: list[dict[str, set[str]]] = []
    for key, those in waiting.items():
        fitting = (group for group in groups if len(group) < most and _share_most(group, those))
        group = next(fitting, None)
        if group is None:
            groups.append({key: those})
        else:
            group[key] = those
    return groups


def _share_most(group: Mapping[str, set[str]], those: set[str]) -> bool:
    """Tell whether most texts of either side are the other's, too."""
    shown = set[str]().union(*group.values())
    return 2 * len(shown & those) > max(len(shown), len(those))


def _cut_batches(group: Mapping[str, set[str]], texts: Sequence[str], most: int) -> Iterator[JudgingBatch]:
    shown = [text for text in texts if any(text in those for those in group.values())]
    for start in range(0, len(shown), most):
        part = shown[start : start + most]
        concerned = tuple(key for key, those in group.items() if those.intersection(part))
        yield JudgingBatch(statements=concerned, texts=tuple(part))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedText:
    """A text, whose it is (a question has one text of each voice), and the statements to judge it against."""

    key: str
    voice: str
    statements: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Pack:
    """Texts that share a question, each with its own statements."""

    texts: list[PackedText] = field(default_factory=list)
    statements: set[str] = field(default_factory=set)
    voices: set[str] = field(default_factory=set)

    def add(self, text: PackedText) -> None:
        """Take a text into the question."""
        self.texts.append(text)
        self.statements |= set(text.statements)
        self.voices.add(text.voice)


def pack_texts(*, texts: Sequence[PackedText], most_statements: int, most_texts: int) -> list[Pack]:
    """Gather texts into few questions, in their order, each where it adds fewest statements; long lists are cut."""
    packs: list[Pack] = []
    roomy: list[Pack] = []
    for text in (part for whole in texts for part in _cut_text(whole, most_statements)):
        fitting = [pack for pack in roomy if _has_room(pack, text, most_statements)]
        if fitting:
            pack = min(fitting, key=lambda pack: len(set(text.statements) - pack.statements))
        else:
            pack = Pack()
            packs.append(pack)
            roomy = [*roomy[-_PACKS_IN_SIGHT + 1 :], pack]
        pack.add(text)
        roomy = [each for each in roomy if len(each.texts) < most_texts]
    return packs


def _cut_text(text: PackedText, most: int) -> Iterator[PackedText]:
    for start in range(0, len(text.statements), most):
        yield PackedText(key=text.key, voice=text.voice, statements=text.statements[start : start + most])


def _has_room(pack: Pack, text: PackedText, most: int) -> bool:
    return text.voice not in pack.voices and len(pack.statements.union(text.statements)) <= most
