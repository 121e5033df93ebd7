"""Align two sequences by a longest common subsequence."""

from collections.abc import Sequence


def align(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of a longest common subsequence."""
    rows, columns = len(left), len(right)
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        row, below, word = table[i], table[i + 1], left[i]
        for j in range(columns - 1, -1, -1):
            row[j] = below[j + 1] + 1 if word == right[j] else max(below[j], row[j + 1])
    return _trace(left, right, table)


def _trace(left: Sequence[str], right: Sequence[str], table: list[list[int]]) -> list[tuple[int, int]]:
    i = j = 0
    pairs = []
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
