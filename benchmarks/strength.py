"""What does it cost to note that memories were recalled, and are their rows rewritten in place?

    python -m benchmarks.strength [--count 50000] [--rounds 400] [--json FILE]

Ten memories are counted as recalled, as the last statement of a recall's transaction does it, and then rows of ten
others of the same tables are changed by an UPDATE that knows their keys, in the same way: prepared once, with the
settings of a search, in a transaction whose commit waits for no disk. Both take turns. Time runs from what the memories
are to the end of the commit. Then the server's own figures tell how many rows were rewritten in place (HOT): of counts
of memories chosen at random, and of recalls that clients send to the web process of the Procfile at once. Exits 1 when
a bar is missed.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import START, draw, questions
from benchmarks.recall_stage import Scope, clear, fill, recall_at_once, settle, web_server
from benchmarks.stage import set_up

if TYPE_CHECKING:
    from memory.search.prepared import TimedSearch

MIXES = {"10 beliefs": (0, 10), "10 episodes": (10, 0), "5 of each": (5, 5)}  # episodes, beliefs
WARM = 20  # rounds first: statements are prepared, and pages read
CLIENTS, PASSES = 8, 3
TABLES = ("memory_episodeaccess", "memory_beliefaccess")
UPDATES = {
    "beliefs": "UPDATE memory_beliefaccess SET accessed_at = %(now)s::timestamptz, access_count = access_count + 1, "
    "stability = GREATEST(stability, %(stability)s::float8) WHERE belief_id = ANY(%(beliefs)s::text[])",
    "episodes": "UPDATE memory_episodeaccess SET accessed_at = %(now)s::timestamptz, access_count = access_count + 1 "
    "WHERE episode_id = ANY(%(episodes)s::text[])",
}
SEARCH_SECONDS = 60.0  # that a search is given: nothing here is to be cut short


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """The keys of memories."""

    episodes: Sequence[str]
    beliefs: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """Rows of the tables that were changed so far, and how many of them in place."""

    all: int
    in_place: int


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline", ENGRAM_THROTTLE_RECALL_PER_MINUTE="0")
    return report_bars(bars=measure(count=asked.count, rounds=asked.rounds), path=asked.json)


def measure(*, count: int, rounds: int) -> list[Bar]:
    """Fill the database, count what was recalled in every way, and look how the rows were changed."""
    clear()
    [scope] = fill(name="strength", drawn=draw(count=count))
    settle()
    stored = count_all()
    bars = [bar for name, mix in MIXES.items() for bar in measure_mix(name=name, mix=mix, stored=stored, rounds=rounds)]
    bars += [hot_share(name="counts", work=partial(count_often, stored=stored, rounds=rounds))]
    bars += [recall_over_http(scope=scope)]
    clear()
    return bars


def count_all() -> Memories:
    """Count every memory once, so that each has its row; return their keys."""
    from memory.models import Belief, Episode

    stored = Memories(
        episodes=list(Episode.objects.order_by("pk").values_list("pk", flat=True)),
        beliefs=list(Belief.objects.order_by("pk").values_list("pk", flat=True)),
    )
    for start in range(0, len(stored.episodes), 1_000):
        part = slice(start, start + 1_000)
        run_timed(partial(count_recalled, Memories(episodes=stored.episodes[part], beliefs=stored.beliefs[part])))
    return stored


def measure_mix(*, name: str, mix: tuple[int, int], stored: Memories, rounds: int) -> list[Bar]:
    """Count so many episodes and beliefs and update as many others, by turns; compare the medians."""
    rng = np.random.default_rng(13)
    before, times = counted(), dict[str, list[float]](count=[], update=[])
    ways: list[tuple[str, Callable[..., object]]] = [("count", count_recalled), ("update", update_known)]
    for number in range(rounds + WARM):
        for way, write in ways if number % 2 else reversed(ways):
            chosen = choose(rng=rng, mix=mix, stored=stored)
            times[way].append(run_timed(partial(write, chosen)))
    taken = {way: statistics.median(all_times[WARM:]) for way, all_times in times.items()}
    print(f"{name}: counted in {taken['count']:.3f} ms, updated in {taken['update']:.3f} ms")
    missing = before + 2 * (rounds + WARM) * sum(mix) - counted()
    return [
        Bar(name=f"counting ÷ narrow UPDATE: {name}", value=taken["count"] / taken["update"], bar=2.0),
        Bar(name=f"rows that were not changed: {name}", value=abs(missing), bar=0),
    ]


def choose(*, rng: np.random.Generator, mix: tuple[int, int], stored: Memories) -> Memories:
    """Choose so many episodes and beliefs, each once, in no order."""
    episodes, beliefs = (
        [keys[place] for place in rng.choice(len(keys), size=count, replace=False)]
        for keys, count in zip((stored.episodes, stored.beliefs), mix, strict=True)
    )
    return Memories(episodes=episodes, beliefs=beliefs)


def run_timed(write: Callable[..., object]) -> float:
    """Let something be written at the end of a search that is under way; return the milliseconds that it took."""
    from django.conf import settings

    from memory.search.prepared import TimedSearch

    with TimedSearch(effort=settings.POLICY.recall.search_effort) as timed:
        timed.run(lambda: None, seconds=SEARCH_SECONDS)
        began = time.perf_counter()
        write(timed=timed)
        return (time.perf_counter() - began) * 1000


def count_recalled(memories: Memories, *, timed: "TimedSearch") -> None:
    """Count memories as a recall does that has found them."""
    from django.conf import settings
    from django.utils import timezone

    from memory.recall.usage import count_access
    from memory.search.hybrid import BeliefCandidate, EpisodeCandidate

    seen = START + timedelta(days=1)
    count_access(
        episodes=[EpisodeCandidate(key, 0.5, 0.5, 0.5, 0.5, 0.0) for key in memories.episodes],
        beliefs=[BeliefCandidate(key, 0.5, 0.5, 0.5, 0.5, 0.9, START, seen, 1.0) for key in memories.beliefs],
        now=timezone.now(),
        policy=settings.POLICY.strength,
        timed=timed,
    )


def update_known(memories: Memories, *, timed: "TimedSearch") -> None:
    """Change rows whose keys are known."""
    from django.utils import timezone

    from memory.recall.usage import run_deferred_write

    given: dict[str, Any] = {"episodes": memories.episodes, "beliefs": memories.beliefs, "stability": 1.5}
    of_kinds = [UPDATES[kind] for kind in ("episodes", "beliefs") if given[kind]]
    statement = of_kinds[0] if len(of_kinds) == 1 else f"WITH others AS ({of_kinds[0]}) {of_kinds[1]}"
    run_deferred_write(statement=statement, parameters=given | {"now": timezone.now()}, failed="update", timed=timed)


def counted() -> int:
    """Return how often all memories were counted, together."""
    from django.db.models import Sum

    from memory.models import BeliefAccess, EpisodeAccess

    tables = (EpisodeAccess, BeliefAccess)
    return sum(table.objects.aggregate(times=Sum("access_count"))["times"] or 0 for table in tables)


def count_often(*, stored: Memories, rounds: int) -> None:
    """Count memories that are chosen at random."""
    rng = np.random.default_rng(17)
    for _ in range(rounds):
        run_timed(partial(count_recalled, choose(rng=rng, mix=MIXES["5 of each"], stored=stored)))


def recall_over_http(*, scope: Scope) -> Bar:
    """Let clients recall at once, the same again and again; the server's processes tell the figures when they end."""
    asked = questions(drawn=scope.drawn, count=200)

    def recall() -> None:
        with web_server() as (port, _):
            for _ in range(PASSES):
                recall_at_once(port=port, scope=scope, queries=asked, clients=CLIENTS)

    return hot_share(name=f"recalls, {CLIENTS} clients", work=recall)


def hot_share(*, name: str, work: Callable[[], object]) -> Bar:
    """Do something, and hold the share of rows that it changed in place against what is asked."""
    before = read_updates()
    work()
    after = read_updates()
    changed = after.all - before.all
    assert changed, "no row was changed"
    print(f"{name}: {changed:,} rows changed")
    share = 100 * (after.in_place - before.in_place) / changed
    return Bar(name=f"rows rewritten in place, %: {name}", value=share, bar=90.0, is_ceiling=False)


def read_updates() -> Updates:
    """Return the server's figures, this process's own among them."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = ANY(%s)", [list(TABLES)]
        )
        rows = cursor.fetchall()
    return Updates(all=sum(row[0] for row in rows), in_place=sum(row[1] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
