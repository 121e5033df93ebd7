"""How fast is recall, and does it find what an exact search finds, however many memories there are?

    python -m benchmarks.recall [--sizes 10000 100000] [--queries 40] [--json FILE]

For each size, a workspace of so many memories, two projects of it (10 % and 1 %), and two further workspaces (a tenth
and a hundredth as large). Every query is put to the API of a real server process, to the hybrid search of both kinds as
plain SQL, and to that as exact SQL, one after the other, so that all three meet the same noise; what counts are medians
and their ratios. Exact SQL compares all vectors of the scope and scores all texts that share a word with the query.
Answers are compared with those of the same recall without any index. Exits 1 when a bar is missed.
"""

import argparse
import json
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from pgvector import HalfVector

from benchmarks.bars import Bar, print_bars
from benchmarks.memories import draw, questions
from benchmarks.recall_sql import HybridSql
from benchmarks.recall_stage import Client, Scope, clear, fill, recall_at_once, settle, web_server
from benchmarks.stage import set_up

SIZES = (10_000, 100_000)
SHARES = (0.1, 0.01)
LIMIT = 10
WARM = 64  # queries first: each of the server's eight threads has a connection, which comes to know its statements
CLIENT_BARS = {1: 10.0, 8: 60.0}  # milliseconds on an idle machine with two processors
CLIENT_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one scope came to: medians in milliseconds, the API's 95th percentile, and how much was found of the exact.

    `agreement` is that share.
    """

    size: int
    scope: str
    memories: int
    api: float
    slow: float
    hybrid: float
    exact: float
    agreement: float
    fewest: int


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_THROTTLE_RECALL_PER_MINUTE="0")
    rows: list[Row] = []
    bars: list[Bar] = []
    for size in asked.sizes:
        measured, crowds = measure(size=size, queries=asked.queries)
        rows += measured
        bars += crowds
    bars = [*bars_of(rows=rows), *bars]
    print_tables(rows=rows, bars=bars)
    if asked.json:
        figures = {
            "rows": [asdict(row) for row in rows],
            "bars": [{**asdict(bar), "is_met": bar.is_met} for bar in bars],
        }
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0 if all(bar.is_met for bar in bars) else 1


def measure(*, size: int, queries: int) -> tuple[list[Row], list[Bar]]:
    """Fill the database with so many memories and a tenth more, and measure each scope, and many clients at once."""
    clear()
    sizes = [size, *(round(share * size) for share in SHARES)]
    drawn = draw(count=sum(sizes))
    scopes = fill(name="all", drawn=drawn[:size], shares=SHARES)
    for share, start, count in zip(SHARES, (size, size + sizes[1]), sizes[1:], strict=True):
        scopes += fill(name=f"workspace of {share:.0%}", drawn=drawn[start : start + count])
    settle()
    with web_server() as (port, _):
        rows = [measure_scope(size=size, scope=scope, queries=queries, port=port) for scope in scopes]
        crowds = measure_clients(scope=scopes[0], port=port) if size == CLIENT_SIZE else []
    return rows, crowds


def measure_scope(*, size: int, scope: Scope, queries: int, port: int) -> Row:
    """Put every query to the API, the hybrid SQL and the exact SQL; the first ones only warm up.

    Whoever asks second finds warm what the first one read: each is first in turn.
    """
    asked = questions(drawn=scope.drawn, count=queries + WARM)
    client, sql = Client(port=port, scope=scope), HybridSql(scope=scope)
    found: list[list[str]] = []

    def recall(query: str, _: HalfVector) -> float:
        began = time.perf_counter()
        status, answer = client.recall(query)
        taken = (time.perf_counter() - began) * 1000
        assert (status, answer["degraded"]) == (200, []), answer
        found.append([result["id"] for result in answer["results"]])
        return taken

    ways: dict[str, Callable[[str, HalfVector], float]] = {
        "api": recall,
        "hybrid": partial(sql.run, is_exact=False),
        "exact": partial(sql.run, is_exact=True),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, query in enumerate(asked):
        vector, order = sql.embed(query), deque(ways)
        order.rotate(number)
        for name in order:
            times[name].append(ways[name](query, vector))
    exact = [answer_exactly(scope=scope, query=query) for query in asked]
    return Row(
        size=size,
        scope=scope.name,
        memories=len(scope.drawn),
        agreement=statistics.fmean(_agreement(one, other) for one, other in zip(found, exact, strict=True)),
        fewest=min(map(len, found)),
        slow=statistics.quantiles(times["api"][WARM:], n=20)[-1],
        **{name: statistics.median(taken[WARM:]) for name, taken in times.items()},
    )


def answer_exactly(*, scope: Scope, query: str) -> list[str]:
    """Return what recall finds if every vector of the scope is compared."""
    from django.conf import settings
    from django.utils import timezone

    from memory.access import Viewer
    from memory.models import Workspace
    from memory.recall.query import RecallQuery, RecallScope
    from memory.recall.recall import find_answer

    policy = settings.POLICY
    patient = replace(policy.recall, exact_vectors=10**9, channel_seconds=60.0)
    settings.POLICY = replace(policy, recall=patient)
    try:
        viewer = Viewer(workspace=Workspace.objects.get(pk=scope.workspace_id))
        own = RecallScope(viewer=viewer, project_id=scope.project_id)
        with find_answer(scope=own, question=RecallQuery(query=query, limit=LIMIT), now=timezone.now()) as answer:
            return [result.id for result in answer.recalled.results]
    finally:
        settings.POLICY = policy


def measure_clients(*, scope: Scope, port: int) -> list[Bar]:
    """Measure one client, and several at once."""
    asked = questions(drawn=scope.drawn, count=240, seed=23)
    bars = []
    for clients, bar in CLIENT_BARS.items():
        recall_at_once(port=port, scope=scope, queries=asked[:WARM], clients=clients)
        taken = recall_at_once(port=port, scope=scope, queries=asked, clients=clients)
        bars.append(
            Bar(name=f"p50 in ms, {CLIENT_SIZE:,}, clients: {clients}", value=statistics.median(taken), bar=bar)
        )
    return bars


def bars_of(*, rows: Sequence[Row]) -> list[Bar]:
    """Hold the rows against what is asked of recall."""
    bars = []
    largest = max(row.size for row in rows)
    for row in rows:
        name = f"{row.size:,}, {row.scope}"
        if row.size == largest:
            bars.append(Bar(name=f"API ÷ hybrid SQL: {name}", value=row.api / row.hybrid, bar=1.5))
        if row.scope == "workspace of 1%" and row.size == largest:
            bars.append(Bar(name=f"API ÷ exact SQL: {name}", value=row.api / row.exact, bar=1.5))
        bars.append(Bar(name=f"found of exact: {name}", value=row.agreement, bar=0.98, is_ceiling=False))
        bars.append(Bar(name=f"fewest results: {name}", value=row.fewest, bar=LIMIT, is_ceiling=False))
    whole = {row.size: row.api for row in rows if row.scope == "all"}
    if len(whole) > 1:
        bars.append(
            Bar(name=f"p50, {max(whole):,} ÷ {min(whole):,}", value=whole[max(whole)] / whole[min(whole)], bar=2.5)
        )
    return bars


def print_tables(*, rows: Sequence[Row], bars: Sequence[Bar]) -> None:
    """Print one line a scope, and one a bar."""
    print(
        f"{'recall, p50 in ms':<34}{'memories':>9}{'API':>8}{'p95':>8}{'hybrid':>8}{'exact':>8}{'found':>7}{'least':>6}"
    )
    for row in rows:
        name = f"{row.size:,}, {row.scope}"
        print(
            f"{name:<34}{row.memories:>9,}{row.api:>8.1f}{row.slow:>8.1f}{row.hybrid:>8.1f}{row.exact:>8.1f}{row.agreement:>7.3f}"
            f"{row.fewest:>6}"
        )
    print()
    print_bars(bars=bars)


def _agreement(found: Sequence[str], exact: Sequence[str]) -> float:
    return len(set(found) & set(exact)) / len(exact) if exact else 1.0


if __name__ == "__main__":
    sys.exit(main())
