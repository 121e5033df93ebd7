"""Does recall stand a minute of many clients, and a cycle beside it?

    python -m benchmarks.recall_load [--memories 100000] [--seconds 60] [--json FILE]

16 clients recall at once over so many memories: no error, nothing degraded in 99 of 100 answers, and the memory of the
server's processes stays flat. Then 200 clients: nothing but answers and refusals with 429. Then 16 clients while a real
worker runs a cycle over new episodes: the median at most doubles. Takes some minutes, most of them for loading and
indexing. Exits 1 when a bar is missed.
"""

import argparse
import http.client
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import draw, questions
from benchmarks.recall_stage import Client, Scope, clear, fill, settle, web_server
from benchmarks.stage import prefork_worker, set_up

if TYPE_CHECKING:
    from memory.models import Cycle

CLIENTS, CROWD, CROWD_SECONDS = 16, 200, 20.0
NEW_EPISODES, SLOTS = 2_000, 2
MEMORY_GROWTH = 1.1


@dataclass(slots=True, kw_only=True)
class Load:
    """What clients saw: the status of each call, how long each answer took, and how many lacked something."""

    statuses: Counter[int] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    degraded: int = 0

    @property
    def p50(self) -> float:
        """Return the median."""
        return statistics.median(self.milliseconds)

    @property
    def p99(self) -> float:
        """Return what one in a hundred took at least."""
        return statistics.quantiles(self.milliseconds, n=100)[98]


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline")
    return report_bars(bars=measure(memories=asked.memories, seconds=asked.seconds), path=asked.json)


def measure(*, memories: int, seconds: float) -> list[Bar]:
    """Load, and put the server under each load in turn."""
    clear()
    drawn = draw(count=memories)
    [scope] = fill(name="all", drawn=drawn)
    settle()
    queries = questions(drawn=drawn, count=2_000)
    with web_server() as (port, process):
        put_under_load(port=port, scope=scope, queries=queries, clients=CLIENTS, seconds=seconds / 4)  # warms up
        before = _resident(process.pid)
        many = put_under_load(port=port, scope=scope, queries=queries, clients=CLIENTS, seconds=seconds)
        after = _resident(process.pid)
        crowd = put_under_load(port=port, scope=scope, queries=queries, clients=CROWD, seconds=CROWD_SECONDS)
        beside = _load_beside_a_cycle(port=port, scope=scope, queries=queries)
    answered = len(many.milliseconds)
    print(f"{CLIENTS} clients: {answered:,} answers, p50 {many.p50:.0f} ms, p99 {many.p99:.0f} ms")
    print(f"memory of the server's processes before and after: {before / 1e6:.0f} and {after / 1e6:.0f} MB")
    print(f"{CROWD} clients: {dict(crowd.statuses)}, p50 {crowd.p50:.0f} ms, p99 {crowd.p99:.0f} ms")
    print(f"{CLIENTS} clients beside a cycle: p50 {beside.p50:.0f} ms, p99 {beside.p99:.0f} ms")
    return [
        Bar(name=f"{CLIENTS} clients: errors", value=many.statuses.total() - many.statuses[200], bar=0),
        Bar(
            name=f"{CLIENTS} clients: share not degraded",
            value=1 - many.degraded / answered,
            bar=0.99,
            is_ceiling=False,
        ),
        Bar(name=f"{CLIENTS} clients: memory, end ÷ start", value=after / before, bar=MEMORY_GROWTH),
        Bar(
            name=f"{CROWD} clients: neither answered nor 429",
            value=crowd.statuses.total() - crowd.statuses[200] - crowd.statuses[429],
            bar=0,
        ),
        Bar(name="p50 beside a cycle ÷ p50 alone", value=beside.p50 / many.p50, bar=2.0),
    ]


def put_under_load(
    *,
    port: int,
    scope: Scope,
    queries: Sequence[str],
    clients: int,
    seconds: float,
    until: Callable[[], bool] = lambda: False,
) -> Load:
    """Let so many clients recall for so long, or until something is so; each asks again as soon as it is answered."""
    load, guard = Load(), threading.Lock()
    ends_at = time.monotonic() + seconds

    def ask(start: int) -> None:
        client, place = Client(port=port, scope=scope), start
        while time.monotonic() < ends_at and not until():
            began, place = time.perf_counter(), place + clients
            try:
                status, answer = client.recall(queries[place % len(queries)])
            except (OSError, http.client.HTTPException):
                status, answer, client = 0, None, Client(port=port, scope=scope)
            with guard:
                load.statuses[status] += 1
                if status == 200:
                    load.milliseconds.append((time.perf_counter() - began) * 1000)
                    load.degraded += bool(answer["degraded"])

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load


def _load_beside_a_cycle(*, port: int, scope: Scope, queries: Sequence[str]) -> Load:
    """Let the clients recall for as long as a cycle over new episodes of the same workspace takes."""
    from django.db import connection

    from benchmarks.cycle_overhead import run_cycle
    from memory.models import Episode, Workspace

    workspace = Workspace.objects.get(pk=scope.workspace_id)
    newest = Episode.objects.for_workspace(workspace).order_by("-number").values_list("pk", flat=True)[:NEW_EPISODES]
    Episode.objects.filter(pk__in=list(newest)).update(state="new")
    cycles: list[Cycle] = []

    def run() -> None:
        cycles.append(run_cycle(workspace))
        connection.close()

    with prefork_worker(slots=SLOTS):
        cycle = threading.Thread(target=run)
        cycle.start()
        load = put_under_load(
            port=port, scope=scope, queries=queries, clients=CLIENTS, seconds=300.0, until=lambda: not cycle.is_alive()
        )
        cycle.join()
    assert [one.state for one in cycles] == ["finished"], "the cycle did not end well"
    return load


def _resident(pid: int) -> float:
    """Return the resident memory of a server's processes, in bytes; what they share counts for each."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return float(sum(process.memory_info().rss for process in processes))


if __name__ == "__main__":
    sys.exit(main())
