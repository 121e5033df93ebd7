"""How fast are memories linked, and what does recall take that follows the links?

    python -m benchmarks.linking [--count 100000] [--queries 60] [--json FILE]

Each memory names one of some thousand people, a few of them very often, so that names link as well as time does. All
are linked as the task does it, then recalled over HTTP without and with the graph, in turns. Exits 1 when a recall that
follows links lacks a channel.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.memories import Drawn, draw, questions
from benchmarks.recall_stage import Client, Scope, clear, fill, settle, web_server
from benchmarks.stage import set_up

PEOPLE = 2_000
WARM = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What linking and recall came to; recalls as medians in milliseconds."""

    memories: int
    seconds: float
    edges: int
    names: int
    plain: float
    linked: float
    led: int  # answers with a memory that the graph led to
    degraded: int  # answers that lack a channel


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline", ENGRAM_THROTTLE_RECALL_PER_MINUTE="0")
    figures = measure(count=asked.count, queries=asked.queries)
    each = figures.memories / figures.seconds
    print(f"{figures.memories:,} memories linked in {figures.seconds:.0f} s, {each:,.0f} a second")
    print(f"{figures.edges:,} edges, {figures.names:,} names")
    print(f"recall, p50: {figures.plain:.1f} ms without the graph, {figures.linked:.1f} ms with it")
    print(f"of {asked.queries} answers, {figures.led} have what the graph led to, {figures.degraded} lack a channel")
    if asked.json:
        asked.json.write_text(json.dumps(asdict(figures), indent=2))
    return 1 if figures.degraded else 0


def measure(*, count: int, queries: int) -> Figures:
    """Store memories, link them, and recall."""
    from memory.graph.linking import link_memories
    from memory.models import Edge, Entity

    clear()
    drawn = with_people(drawn=draw(count=count))
    [scope] = fill(name="linked", drawn=drawn)
    settle()
    began = time.monotonic()
    memories = link_memories(workspace_id=scope.workspace_id)
    seconds = time.monotonic() - began
    settle()
    plain, linked, led, degraded = recall(scope=scope, asked=questions(drawn=drawn, count=queries + WARM))
    return Figures(
        memories=memories,
        seconds=seconds,
        edges=Edge.objects.count(),
        names=Entity.objects.count(),
        plain=plain,
        linked=linked,
        led=led,
        degraded=degraded,
    )


def with_people(*, drawn: Sequence[Drawn], seed: int = 11) -> list[Drawn]:
    """Have each memory name somebody, the first of the people most often."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, PEOPLE + 1)
    chosen = rng.choice(PEOPLE, size=len(drawn), p=shares / shares.sum())
    return [
        replace(one, text=f"{one.text} Person{number:04d} agreed.") for one, number in zip(drawn, chosen, strict=True)
    ]


def recall(*, scope: Scope, asked: Sequence[str]) -> tuple[float, float, int, int]:
    """Ask each query without the graph, and with it; return both medians, and how many were led, or lack something."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    led = degraded = 0
    with web_server() as (port, _):
        client = Client(port=port, scope=scope)
        for number, query in enumerate(asked):
            for graph in (False, True):
                began = time.perf_counter()
                status, answer = client.post("/api/v1/recall", {"query": query, "graph": graph})
                taken[graph].append((time.perf_counter() - began) * 1000)
                assert status == 200, answer
                degraded += number >= WARM and bool(answer["degraded"])
            if number >= WARM:
                led += is_led(client=client, query=query)
    plain, linked = (statistics.median(taken[graph][WARM:]) for graph in (False, True))
    return plain, linked, led, degraded


def is_led(*, client: Client, query: str) -> bool:
    """Tell whether the graph says something of any result."""
    _, answer = client.post("/api/v1/recall", {"query": query, "graph": True, "explain": True})
    return any("graph" in result["explain"]["channels"] for result in answer["results"])


if __name__ == "__main__":
    sys.exit(main())
