"""Is a backlog drained by itself, to the last episode, and how long does that take?

    python -m benchmarks.backlog [--count 5000] [--poison 20] [--unjudgeable] [--json FILE]

Episodes are posted to the web process of the Procfile, beside a worker and a beat, and nothing more is asked: 200
people who tell the same in other words over several sessions, amid what leads to nothing, and some texts on which a
model chokes (`benchmarks.choking`). Rules and the static vectors of this machine do the work. Time counts from the
first post until nothing waits. In the end all but the poison has been consolidated, and the poison lies in the dead
letters, each text with a reason. With --unjudgeable it is the language model that chokes and not the embedding model:
it is not asked about every text, so that some of the poison goes down. Exits 1 when a bar is missed.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bars import Bar, report_bars
from benchmarks.ingest import make_workspace
from benchmarks.people import UNJUDGEABLE, UNREADABLE, Line, tell
from benchmarks.recall_stage import Poster, clear, web_server
from benchmarks.stage import beat, prefork_worker, set_up

COUNT, POISON, BATCH = 5_000, 20, 100
SLOTS = 2  # of the worker
LIMIT_MINUTES = 15.0
LOOK_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class Drained:
    """What became of the lines: how long it took, and the cycles by what opened them."""

    minutes: float
    cycles: Counter[str]
    left: int  # new, leased or failed, and no dead letter
    dead: dict[str, str]  # the reason of each text among the dead letters
    states: Counter[str]
    beliefs: int
    course: list[tuple[float, int]] = field(default_factory=list)  # seconds, and how many waited


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--poison", type=int, default=POISON)
    parser.add_argument("--unjudgeable", action="store_true", help="poison for the language model")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline", GUNICORN_CMD_ARGS="--config python:benchmarks.choking")
    lines = tell(count=asked.count, poison=asked.poison, mark=UNJUDGEABLE if asked.unjudgeable else UNREADABLE)
    drained = drain(lines=lines)
    print_course(drained=drained)
    return report_bars(bars=bars_of(drained=drained, lines=lines), path=asked.json)


def drain(*, lines: Sequence[Line]) -> Drained:
    """Post all lines, and look on until nothing waits or the time is up."""
    clear()
    workspace_id, key = make_workspace()
    with web_server() as (port, _), prefork_worker(slots=SLOTS, app_name="benchmarks.poisoned"), beat():
        began = time.monotonic()
        post_all(lines=lines, port=port, key=key)
        print(f"{len(lines):,} episodes posted within {time.monotonic() - began:.1f} s")
        course = watch(workspace_id=workspace_id, began=began)
        minutes = (time.monotonic() - began) / 60
    drained = read_outcome(workspace_id=workspace_id, minutes=minutes)
    drained.course = course
    clear()
    return drained


def post_all(*, lines: Sequence[Line], port: int, key: str) -> None:
    """Post lines in batches, one after the other."""
    poster = Poster(port=port, key=key)
    for start in range(0, len(lines), BATCH):
        batch = [{"text": line.text, "session": line.session} for line in lines[start : start + BATCH]]
        status, answer = poster.post("/api/v1/episodes", {"episodes": batch})
        assert status == 201, answer
    poster.close()


def watch(*, workspace_id: int, began: float) -> list[tuple[float, int]]:
    """Count what waits, again and again, until nothing does and no cycle is open; looking is all that is done."""
    from memory.models import Cycle, Episode

    course: list[tuple[float, int]] = []
    while (seconds := time.monotonic() - began) < LIMIT_MINUTES * 60:
        waiting = Episode.objects.for_workspace(workspace_id).pending().count()
        if not course or seconds - course[-1][0] >= 30 or not waiting:
            course.append((seconds, waiting))
        if not waiting and not Cycle.objects.for_workspace(workspace_id).open().exists():
            break
        time.sleep(LOOK_SECONDS)
    return course


def read_outcome(*, workspace_id: int, minutes: float) -> Drained:
    """Read what is stored."""
    from memory.models import Belief, Cycle, Episode

    episodes = Episode.objects.for_workspace(workspace_id)
    cycles = Cycle.objects.for_workspace(workspace_id)
    return Drained(
        minutes=minutes,
        cycles=Counter(cycles.values_list("trigger", flat=True)),
        left=episodes.pending().count(),
        dead=dict(episodes.dead().values_list("text", "state_reason")),
        states=Counter(episodes.values_list("state", flat=True)),
        beliefs=Belief.objects.for_workspace(workspace_id).count(),
    )


def print_course(*, drained: Drained) -> None:
    """Print how the backlog shrank, and what came of it."""
    for seconds, waiting in drained.course:
        print(f"{seconds:>6.0f} s {waiting:>6} wait")
    print(f"cycles {dict(drained.cycles)}, episodes {dict(drained.states)}, {drained.beliefs} beliefs")
    print(f"dead letters {dict(Counter(drained.dead.values()))}")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{drained.minutes:.1f} minutes; {os.cpu_count()} processors, load {load}")


def bars_of(*, drained: Drained, lines: Sequence[Line]) -> list[Bar]:
    """Hold the outcome against what is asked."""
    poison = {line.text for line in lines if line.is_poison}
    missing = len(lines) - sum(drained.states.values())
    return [
        Bar(name="minutes until nothing waits", value=drained.minutes, bar=LIMIT_MINUTES),
        Bar(name="episodes left new, leased or failed", value=drained.left, bar=0),
        Bar(name="poison not in the dead letters", value=len(poison - drained.dead.keys()), bar=0),
        Bar(name="dead letters that are no poison", value=len(drained.dead.keys() - poison), bar=0),
        Bar(name="dead letters without a reason", value=sum(not why for why in drained.dead.values()), bar=0),
        Bar(name="episodes posted and not there", value=missing, bar=0),
    ]


if __name__ == "__main__":
    sys.exit(main())
