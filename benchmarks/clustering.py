"""Does clustering keep its promises on a hard set: speed, agreement, the same labels every time, little memory?

    python -m benchmarks.clustering [--json FILE]

Time is a ratio within one run: clustering 10,000 vectors against the upper triangle of their similarity matrix,
computed with the same block size and threads. Of 100,000 vectors, every fifth strip of the triangle is computed, which
tells what all pairs would take. Exits 1 when a bar is missed.
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.bars import Bar
from benchmarks.hard_set import THRESHOLD, HardSet, Labels, Vectors, adjusted_rand_index, make_hard_set
from memory.domain.clustering import canonical_order, cluster
from memory.domain.policy_consolidation import ClusteringPolicy

POLICY = ClusteringPolicy()
SHUFFLES = 10
ROUNDS = 3
LARGE = 100_000
ONE_STRIP_IN = 5  # of all pairs of so many: all of them would take two minutes


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--digest", type=Path, help=argparse.SUPPRESS)  # a process of our own: print a digest of labels
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)  # a process of our own: print its peak memory
    asked = parser.parse_args()
    if asked.digest or asked.peak:
        print(digest_labels(path=asked.digest) if asked.digest else measure_peak(path=asked.peak))
        return 0
    bars = measure()
    print_table(bars=bars)
    if asked.json:
        asked.json.write_text(json.dumps([{**asdict(bar), "is_met": bar.is_met} for bar in bars], indent=2))
    return 0 if all(bar.is_met for bar in bars) else 1


def measure() -> list[Bar]:
    """Return every figure; the sets are drawn from fixed seeds."""
    hard = make_hard_set()
    labels = cluster(vectors=hard.vectors, threshold=THRESHOLD, policy=POLICY)
    agreement, equal = adjusted_rand_index(one=labels, other=hard.labels), equal_shuffles(hard=hard)
    with tempfile.TemporaryDirectory() as folder:
        digests = [ask_process(option="--digest", folder=folder, vectors=hard.vectors, threads=n) for n in (1, 2)]
        twenty = make_hard_set(count=20_000).vectors
        peak = float(ask_process(option="--peak", folder=folder, vectors=twenty, threads=2))
        large = make_hard_set(count=LARGE).vectors
        large_peak = float(ask_process(option="--peak", folder=folder, vectors=large, threads=2))
    return [
        Bar(name="time ÷ triangle gemm, 10,000", value=time_ratio(vectors=hard.vectors), bar=2.0),
        Bar(name="adjusted Rand index", value=agreement, bar=0.98, is_ceiling=False),
        Bar(name=f"equal labels, of {SHUFFLES} shuffles", value=equal, bar=SHUFFLES, is_ceiling=False),
        Bar(name="labels, 1 and 2 threads", value=len(set(digests)), bar=1),
        Bar(name="peak memory in MB, 20,000", value=peak, bar=512),
        Bar(name="time ÷ all pairs, 100,000", value=large_ratio(vectors=large), bar=0.3),
        Bar(name="peak memory in MB, 100,000", value=large_peak, bar=500),
    ]


def print_table(*, bars: list[Bar]) -> None:
    """Print one line a figure."""
    print(f"{'clustering':<32}{'measured':>10}{'bar':>9}")
    for bar in bars:
        sign, verdict = "≤" if bar.is_ceiling else "≥", "" if bar.is_met else "  MISSED"
        print(f"{bar.name:<32}{bar.value:>10.3f}{sign:>4}{bar.bar:>5g}{verdict}")


def time_ratio(*, vectors: Vectors) -> float:
    """Return the median ratio of clustering to the triangle, the two taking turns so that both meet the same noise."""
    compute_triangle(vectors=vectors)
    ratios = []
    for _ in range(ROUNDS):
        triangle = _seconds(lambda: compute_triangle(vectors=vectors))
        ratios.append(_seconds(lambda: cluster(vectors=vectors, threshold=THRESHOLD, policy=POLICY)) / triangle)
    return statistics.median(ratios)


def large_ratio(*, vectors: Vectors) -> float:
    """Return the ratio of clustering to all pairs, of which some are computed before it, and again after it."""
    strips = range(0, len(vectors), POLICY.block_rows)[::ONE_STRIP_IN]
    before = _seconds(lambda: compute_triangle(vectors=vectors, strips=strips))
    clustering = _seconds(lambda: cluster(vectors=vectors, threshold=THRESHOLD, policy=POLICY))
    after = _seconds(lambda: compute_triangle(vectors=vectors, strips=strips))
    return clustering * share_of(strips=strips, count=len(vectors)) / statistics.mean([before, after])


def share_of(*, strips: Sequence[int], count: int) -> float:
    """Return which share of the triangle the strips are that begin at these rows."""
    rows = POLICY.block_rows
    cells = {top: min(rows, count - top) * (count - top) for top in range(0, count, rows)}
    return sum(cells[top] for top in strips) / sum(cells.values())


def compute_triangle(*, vectors: Vectors, strips: Sequence[int] | None = None) -> None:
    """Compute the upper triangle of all similarities, or some strips of it, block by block, and keep nothing."""
    rows = POLICY.block_rows
    products = np.empty(rows * rows, dtype=np.float32)
    for top in range(0, len(vectors), rows) if strips is None else strips:
        upper = vectors[top : top + rows]
        for side in range(top, len(vectors), rows):
            lower = vectors[side : side + rows]
            np.matmul(upper, lower.T, out=products[: len(upper) * len(lower)].reshape(len(upper), len(lower)))


def equal_shuffles(*, hard: HardSet) -> int:
    """Return how many of the shuffled loads get the very labels of the first one."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    keys = [(start + timedelta(minutes=row // 3), str(row), "", "") for row in range(len(hard.vectors))]
    first = cluster(vectors=hard.vectors[canonical_order(keys=keys)], threshold=THRESHOLD, policy=POLICY)
    rng = np.random.default_rng(11)
    equal = 0
    for _ in range(SHUFFLES):
        loaded = rng.permutation(len(keys))
        order = loaded[canonical_order(keys=[keys[row] for row in loaded])]
        equal += np.array_equal(cluster(vectors=hard.vectors[order], threshold=THRESHOLD, policy=POLICY), first)
    return equal


def ask_process(*, option: str, folder: str, vectors: Vectors, threads: int) -> str:
    """Return what this module prints for the vectors in a fresh process with so many BLAS threads."""
    path = Path(folder) / "vectors.npy"
    np.save(path, vectors)
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    command = [sys.executable, "-m", "benchmarks.clustering", option, str(path)]
    return subprocess.run(command, env=os.environ | limits, check=True, capture_output=True, text=True).stdout.strip()


def digest_labels(*, path: Path) -> str:
    """Return a digest of the labels of the vectors in a file."""
    labels: Labels = cluster(vectors=np.load(path), threshold=THRESHOLD, policy=POLICY)
    return hashlib.sha256(labels.tobytes()).hexdigest()


def measure_peak(*, path: Path) -> float:
    """Return this process's peak memory in MB after clustering, with what a worker holds besides."""
    _load_what_a_worker_holds()
    cluster(vectors=np.load(path), threshold=THRESHOLD, policy=POLICY)
    return _peak_bytes() / 2**20


def _peak_bytes() -> int:
    """Return the peak of this program alone: Linux's ru_maxrss remembers the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _load_what_a_worker_holds() -> None:
    import celery  # noqa: F401  # imported for its weight alone, as are the next two
    import django.contrib.admin  # noqa: F401
    import rest_framework  # noqa: F401

    from memory.llm.offline import StaticEmbedder

    StaticEmbedder()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
