"""Vectors as whole numbers, so that a similarity has the same bits whatever the machine does beneath (B8.2).

Vectors are put on a grid of whole numbers whose length stays under 2¹², so that every partial sum of a scalar product
is a whole number of at most 2²⁴, which float32 holds exactly. A similarity then has the same bits however many threads
computed it, in blocks of whatever shape, at the price of an error of about 10⁻⁴.
"""

import math

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Order = NDArray[np.intp]

_GRID = 2**12


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


def length_on_grid(*, width: int) -> float:
    """Return the length of vectors of so many dimensions on the grid."""
    rounding = 0.5 * math.sqrt(width)  # how much length rounding to whole numbers may add
    return float(math.floor(_GRID - rounding - 1))


def put_on_grid(vectors: Vectors) -> Vectors:
    """Return all of the vectors as whole numbers of one common length."""
    return Grid(vectors)[:]
