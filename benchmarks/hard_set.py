"""A seeded set of vectors that is hard to cluster, with its true labels, and the measure of agreement."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
Vectors = NDArray[np.float32]
Labels = NDArray[np.int32]

THRESHOLD = 0.70
LEAST_SIZE, GREATEST_SIZE = 3, 60
CHAIN_CLUSTERS = 16
LEANING_ONE_IN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HardSet:
    """Vectors (n, d) of length 1 and the cluster that each was drawn from; noise has a label of its own."""

    vectors: Vectors
    labels: Labels


def make_hard_set(*, count: int = 10_000, width: int = 768, seed: int = 7) -> HardSet:
    """Draw 40 % in clusters of 3–60, 20 % around sibling centres, 40 % noise, in random order.

    Siblings form chains whose consecutive centres have a similarity of .62–.68 and some members that lean over to the
    next centre, so that the chain is one connected component at .70; the first chain has 300 members or more.
    """
    rng = np.random.default_rng(seed)
    parts = _chains(rng, count // 5, width) + _lone_clusters(rng, count * 2 // 5, width)
    parts += [row[None, :] for row in _noise(rng, count - sum(map(len, parts)), parts, width)]
    labels = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    order = rng.permutation(count)
    return HardSet(vectors=np.concatenate(parts)[order].astype(np.float32), labels=labels[order])


def adjusted_rand_index(*, one: Labels, other: Labels) -> float:
    """Return the agreement of two labellings, 1 for the same, about 0 for chance (Hubert and Arabie 1985)."""
    table = np.unique(np.stack([one, other]), axis=1, return_counts=True)[1]
    together = _pairs(table)
    first, second = (_pairs(np.unique(labels, return_counts=True)[1]) for labels in (one, other))
    expected = first * second / max(_pairs(np.array([len(one)])), 1)
    best = (first + second) / 2
    return 1.0 if best == expected else float((together - expected) / (best - expected))


def _pairs(sizes: NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _unit(rows: Rows) -> Rows:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _at(cosine: float | Rows, centre: Rows, rows: Rows) -> Rows:
    """Turn each row so that it has this cosine with the centre."""
    across = _unit(rows - (rows @ centre)[:, None] * centre)
    cosine = np.broadcast_to(np.asarray(cosine), len(rows))[:, None]
    return cosine * centre + np.sqrt(1 - cosine**2) * across


def _around(rng: np.random.Generator, centre: Rows, size: int) -> Rows:
    """Draw members whose similarity to each other is about .70 to .93."""
    return _at(rng.uniform(0.84, 0.965, size), centre, rng.standard_normal((size, centre.size)))


def _lone_clusters(rng: np.random.Generator, count: int, width: int) -> list[Rows]:
    return [_around(rng, _unit(rng.standard_normal(width)), size) for size in _sizes(rng, count)]


def _sizes(rng: np.random.Generator, count: int) -> list[int]:
    sizes: list[int] = []
    while (left := count - sum(sizes)) > 0:
        size = int(rng.integers(LEAST_SIZE, GREATEST_SIZE + 1))
        sizes.append(size if left - size >= LEAST_SIZE else left)
        if sizes[-1] > GREATEST_SIZE:
            sizes[-1:] = [left // 2, left - left // 2]
    return sizes


def _chains(rng: np.random.Generator, count: int, width: int) -> list[Rows]:
    """Draw chains of siblings: the first long, the others of two to four clusters."""
    sizes = sorted(_sizes(rng, count), reverse=True)
    parts: list[Rows] = []
    length = CHAIN_CLUSTERS
    while sizes:
        chain, sizes = sizes[:length], sizes[length:]
        parts += _chain(rng, chain, width)
        length = int(rng.integers(2, 5))
    return parts


def _chain(rng: np.random.Generator, sizes: list[int], width: int) -> list[Rows]:
    centres = [_unit(rng.standard_normal(width))]
    for _ in sizes[1:]:
        centres.append(_at(rng.uniform(0.62, 0.68), centres[-1], rng.standard_normal((1, width)))[0])
    parts = [_around(rng, centre, size) for centre, size in zip(centres, sizes, strict=True)]
    for part, following in zip(parts, centres[1:], strict=False):
        leaning = rng.uniform(0.25, 0.45, (-(-len(part) // LEANING_ONE_IN), 1))  # enough to be linked, not to belong
        part[: len(leaning)] = _unit(part[: len(leaning)] + leaning * following)
    return parts


def _noise(rng: np.random.Generator, count: int, parts: list[Rows], width: int) -> Rows:
    """Draw noise, half of it near misses at .45–.62 of some cluster's centre."""
    rows = _unit(rng.standard_normal((count, width)))
    for place in range(0, count, 2):
        centre = _unit(parts[rng.integers(len(parts))].mean(axis=0))
        rows[place] = _at(rng.uniform(0.45, 0.62), centre, rows[place : place + 1])[0]
    return rows
