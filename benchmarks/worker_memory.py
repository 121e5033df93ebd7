"""How much memory does a worker take at most in a cycle that clusters 20,000 episodes?

    python -m benchmarks.worker_memory [--count 20000] [--json FILE]

The episodes lie as densely as the hard set of benchmarks/hard_set.py; most of them wait in the pool, as they would
after months of noise. A real prefork worker runs the whole cycle; what counts is the peak of each of its processes
(VmHWM, so Linux only), with the offline rules and the client of a model server both loaded. Exits 1 over the bar.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.cycle_overhead import run_cycle
from benchmarks.hard_set import Vectors, make_hard_set
from benchmarks.stage import EMBEDDING_MODEL, model_server, prefork_worker, scripted_models, set_up

if TYPE_CHECKING:
    from memory.models import Workspace

BAR_MB = 512
NEW_EPISODES = 2_000  # as many as one cycle leases
BATCH = 1_000
SLOTS = 2


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    peaks = measure(count=asked.count)
    for name, megabytes in peaks.items():
        print(f"{name:<10}{megabytes:>8.0f} MB, bar {BAR_MB} MB{'' if megabytes < BAR_MB else '  MISSED'}")
    is_met = max(peaks.values()) < BAR_MB
    if asked.json:
        figures = {"episodes": asked.count, "peaks_mb": peaks, "bar_mb": BAR_MB, "is_met": is_met}
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0 if is_met else 1


def measure(*, count: int) -> dict[str, float]:
    """Run one cycle over so many episodes; return the peak of the worker's parent and of each child, in MB."""
    with model_server(latency=0.0) as url:
        set_up(**scripted_models(url=url) | {"ENGRAM_LLM": "offline"})
        workspace = _fill_workspace(make_hard_set(count=count).vectors)
        try:
            with prefork_worker(slots=SLOTS) as worker:
                cycle = run_cycle(workspace)
                assert cycle.state == "finished"
                assert cycle.counts["clusters"] >= 10, "the cycle found too few clusters to have looked at all episodes"
                processes = [worker.pid, *(child.pid for child in psutil.Process(worker.pid).children())]
                names = ["parent", *(f"child {number}" for number in range(1, len(processes)))]
                return {name: _peak_mb(pid) for name, pid in zip(names, processes, strict=True)}
        finally:
            workspace.delete()


def _fill_workspace(vectors: Vectors) -> "Workspace":
    """Store an episode for each vector: the last ones new, all before them in the pool."""
    from django.utils import timezone

    from memory.search.vectors import store_episode_vectors
    from tests import factories

    now = timezone.now()
    workspace = factories.workspace(name=f"worker memory {now:%H:%M:%S.%f}", created_at=now)
    for start in range(0, len(vectors), BATCH):
        numbers = range(start, min(start + BATCH, len(vectors)))
        ids = _store_episodes(workspace, numbers, new_from=len(vectors) - NEW_EPISODES)
        of_batch = dict(zip(ids, vectors[start : start + BATCH], strict=True))
        store_episode_vectors(workspace_id=workspace.pk, model=EMBEDDING_MODEL, vectors=of_batch)
    return workspace


def _store_episodes(workspace: "Workspace", numbers: range, *, new_from: int) -> list[str]:
    from memory.models import Episode

    now = workspace.created_at
    episodes = [
        Episode(
            workspace=workspace,
            text=f"Number {number} of many notes says that the quarterly figures of team {number} were checked twice.",
            content_hash=f"{number:064d}",
            origin=f"session:{number // 20}",
            language="en",
            created_at=now,
            occurred_at=now,
            state="new" if number >= new_from else "pooled",
            pooled_at=None if number >= new_from else now,
        )
        for number in numbers
    ]
    return [episode.pk for episode in Episode.objects.bulk_create(episodes)]


def _peak_mb(pid: int) -> float:
    lines = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    assert os.path.exists("/proc/self/status"), "the peak of another process can be read on Linux only"
    sys.exit(main())
