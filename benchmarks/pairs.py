"""How fast are the beliefs found that are near enough to be one, and is any such pair missed?

    python -m benchmarks.pairs [--count 10000] [--rounds 5] [--json FILE]

The hard set of benchmarks/hard_set.py, a tenth of it said again a little differently, so that a thousand pairs lie on
either side of .92. All beliefs have changed, which is the most that a cycle can have to look at. Time is a ratio within
one run: finding the pairs against the upper triangle of the similarity matrix, by turns. The triangle is computed in
strips of whole rows, which takes less than in small blocks. What is found is compared with all pairs in double
precision, but those within a hundred thousandth of the threshold, which single precision cannot tell apart. Exits 1
when a bar is missed.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import django
import numpy as np

from benchmarks.bars import Bar, report_bars
from benchmarks.hard_set import Vectors, make_hard_set

if TYPE_CHECKING:
    from memory.ledger.beliefs import BeliefSource

Places = set[tuple[int, int]]

SAID_AGAIN = 0.1  # of the beliefs
COSINES = (0.86, 0.98)  # between what is said again and what it was
UNSURE = 1e-5  # on either side of the threshold
BLOCK = 1_000


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    django.setup()
    return report_bars(bars=measure(count=asked.count, rounds=asked.rounds), path=asked.json)


def measure(*, count: int, rounds: int) -> list[Bar]:
    """Find the pairs and compute the triangle by turns; compare the times, and what was found with all pairs."""
    vectors = make_vectors(count=count)
    beliefs = make_beliefs(count=count)
    found = find_pairs(beliefs=beliefs, vectors=vectors)
    compute_triangle(vectors=vectors)
    ratios = []
    for _ in range(rounds):
        triangle = seconds_of(lambda: compute_triangle(vectors=vectors))
        ratios.append(seconds_of(lambda: find_pairs(beliefs=beliefs, vectors=vectors)) / triangle)
    sure, possible = (all_pairs(vectors=vectors, threshold=threshold() + margin) for margin in (UNSURE, -UNSURE))
    print(f"{len(found):,} pairs found, of {len(sure):,} or {len(possible) - len(sure):,} more")
    return [
        Bar(name=f"pairs > .92 ÷ triangle gemm, {count:,}", value=statistics.median(ratios), bar=1.5),
        Bar(name="pairs missed", value=len(sure - found), bar=0),
        Bar(name="pairs that are none", value=len(found - possible), bar=0),
    ]


def compute_triangle(*, vectors: Vectors) -> None:
    """Compute the upper triangle of all similarities, strip by strip, and keep nothing."""
    for start in range(0, len(vectors), BLOCK):
        np.matmul(vectors[start : start + BLOCK], vectors[start:].T)


def make_vectors(*, count: int, seed: int = 5) -> Vectors:
    """Draw vectors of which a tenth are others, turned a little; all of length 1."""
    rng = np.random.default_rng(seed)
    again = round(count * SAID_AGAIN)
    drawn = make_hard_set(count=count - again).vectors
    said = drawn[rng.choice(len(drawn), size=again, replace=False)]
    across = rng.standard_normal(said.shape)
    across -= np.sum(across * said, axis=1, keepdims=True) * said
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    cosines = rng.uniform(*COSINES, size=(again, 1))
    turned = cosines * said + np.sqrt(1 - cosines**2) * across
    return np.asarray(np.concatenate([drawn, turned])[rng.permutation(count)], dtype=np.float32)


def make_beliefs(*, count: int) -> list["BeliefSource"]:
    """Make beliefs of one scope whose ids are their places."""
    from memory.ledger.beliefs import BeliefSource

    return [
        BeliefSource(
            id=str(place), statement="", statement_hash="", subject="", context="", language="en", project_id=None,
            user="", status="active",
        )
        for place in range(count)
    ]  # fmt: skip


def find_pairs(*, beliefs: Sequence["BeliefSource"], vectors: Vectors) -> Places:
    """Return the places of the pairs that a cycle finds."""
    from memory.consolidation.gates import find_near_pairs
    from memory.domain.similarity import identity_profile

    changed = {belief.id for belief in beliefs}
    profile = identity_profile(model="drawn")
    pairs = find_near_pairs(changed=changed, beliefs=beliefs, vectors=vectors, profile=profile)
    return {(int(one.id), int(other.id)) for one, other, _ in pairs}


def all_pairs(*, vectors: Vectors, threshold: float) -> Places:
    """Return the places of all pairs above a threshold, either way round, by comparing every one with every other."""
    exact = vectors.astype(np.float64)
    found: Places = set()
    for start in range(0, len(exact), BLOCK):
        above = np.argwhere(exact[start : start + BLOCK] @ exact.T > threshold)
        found |= {(start + row, column) for row, column in above.tolist() if start + row != column}
    return found


def threshold() -> float:
    """Return the similarity that two beliefs must exceed to be one."""
    from django.conf import settings

    return float(settings.POLICY.gate.merge_similarity)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
