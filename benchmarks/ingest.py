"""How fast are episodes taken in over HTTP, and is every one that was acknowledged there, once?

    python -m benchmarks.ingest [--seconds 15] [--json FILE]

Eight clients send episodes to the web process of the Procfile: in batches of 100, then one by one, each as soon as the
last was answered; first to the server alone, then beside a real worker, which runs cycles over them. In the end one of
the server's processes is killed in the middle of a load; a client that has no answer sends the same again. No line is
like another, so that each has to be in the database once, under the id that its client was told. Exits 1 when a bar is
missed.
"""

import argparse
import http.client
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import Drawn, draw
from benchmarks.recall_stage import Poster, clear, web_server
from benchmarks.stage import prefork_worker, set_up

CLIENTS, BATCH = 8, 100
SLOTS = 2  # of the worker
WARM_UP_SECONDS = 3.0
KILL_SECONDS = 6.0  # of the load in which a process is killed
PATIENCE_SECONDS = 60.0  # of a client that has no answer
TURNS = 20  # of a session


@dataclass(slots=True, kw_only=True)
class Load:
    """What clients saw: the id that stands for each text, how long each answer took, what was refused or sent again."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Return the episodes acknowledged in a second."""
        return len(self.acknowledged) / self.seconds


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load")
    parser.add_argument("--json", type=Path, help="where the figures go")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline")
    return report_bars(bars=measure(seconds=asked.seconds), path=asked.json)


def measure(*, seconds: float) -> list[Bar]:
    """Put the server under each load, first alone, then beside a worker, and look for what it acknowledged."""
    clear()
    workspace_id, key = make_workspace()
    drawn = draw(count=20_000)
    with web_server() as (port, server):
        load = partial(put_under_load, port=port, key=key, drawn=drawn)
        loads = [load(name="warm", size=BATCH, seconds=WARM_UP_SECONDS)]
        bars = []
        for place, company in ((", alone", nullcontext()), (", beside a worker", prefork_worker(slots=SLOTS))):
            with company:
                many = load(name=f"many{place}", size=BATCH, seconds=seconds)
                single = load(name=f"single{place}", size=1, seconds=seconds)
            bars += bars_of_rates(many=many, single=single, place=place)
            loads += [many, single]
        blow = threading.Timer(KILL_SECONDS / 2, kill_one, args=(server.pid,))
        blow.start()
        killed = load(name="killed", size=BATCH, seconds=KILL_SECONDS)
        blow.join()
    calm = sum(one.repeated for one in loads)
    loads.append(killed)
    acknowledged = {text: key for one in loads for text, key in one.acknowledged.items()}
    bars += find_kept(workspace_id=workspace_id, acknowledged=acknowledged)
    clear()
    return [
        *bars,
        Bar(name="lines refused", value=sum(one.refused for one in loads), bar=0),
        Bar(name="requests without an answer, before the kill", value=calm, bar=0),
        Bar(name="requests without an answer, at the kill", value=killed.repeated, bar=1, is_ceiling=False),
    ]


def bars_of_rates(*, many: Load, single: Load, place: str) -> list[Bar]:
    """Hold the rates of both ways to send against what is asked, and print how long an answer took."""
    for name, load in ((f"batches of {BATCH}{place}", many), (f"one by one{place}", single)):
        p99 = statistics.quantiles(load.milliseconds, n=100)[98]
        print(
            f"{name}: {load.rate:,.0f} episodes/s, p50 {statistics.median(load.milliseconds):.0f} ms, p99 {p99:.0f} ms"
        )
    return [
        Bar(name=f"episodes/s in batches of {BATCH}{place}", value=many.rate, bar=1_000.0, is_ceiling=False),
        Bar(name=f"episodes/s one by one{place}", value=single.rate, bar=150.0, is_ceiling=False),
    ]


def put_under_load(*, port: int, key: str, drawn: Sequence[Drawn], size: int, seconds: float, name: str) -> Load:
    """Let clients send so many episodes at once, for so long."""
    load, guard = Load(), threading.Lock()
    began = time.perf_counter()

    def send(client: int) -> None:
        lines = lines_of(drawn=drawn, client=client, name=name)
        with closing(Poster(port=port, key=key)) as poster:
            while time.perf_counter() - began < seconds:
                batch = [next(lines) for _ in range(size)]
                asked = time.perf_counter()
                answers, repeated = post(poster, batch)
                taken = (time.perf_counter() - asked) * 1000
                with guard:
                    load.milliseconds.append(taken)
                    load.repeated += repeated
                    note_answers(load=load, batch=batch, answers=answers)

    run_at_once(send, clients=CLIENTS)
    load.seconds = time.perf_counter() - began
    return load


def lines_of(*, drawn: Sequence[Drawn], client: int, name: str) -> Iterator[dict[str, str]]:
    """Yield the lines of one client without end, none like another."""
    place = client * len(drawn) // CLIENTS
    number = 0
    while True:
        one = drawn[(place + number) % len(drawn)]
        number += 1
        session = f"{name} {client} {number // TURNS}"
        yield {"text": f"{one.text} ({name} {client}, {number})", "speaker": one.speaker, "session": session}


def post(poster: Poster, batch: Sequence[dict[str, str]]) -> tuple[list[dict[str, Any]], int]:
    """Send lines until they are answered; return the answers, and how often they were sent in vain."""
    body = {"episodes": list(batch)} if len(batch) > 1 else batch[0]
    ends_at, repeated = time.monotonic() + PATIENCE_SECONDS, 0
    while True:
        try:
            status, answer = poster.post("/api/v1/episodes", body)
        except (OSError, http.client.HTTPException):
            if time.monotonic() > ends_at:
                raise
            poster.close()
            repeated += 1
            time.sleep(0.05)
            continue
        return (answer["episodes"] if status == 201 else [{} for _ in batch]), repeated


def note_answers(*, load: Load, batch: Sequence[Mapping[str, str]], answers: Sequence[Mapping[str, Any]]) -> None:
    """Keep the id that was told of each line, and count the lines of which none was."""
    for line, answer in zip(batch, answers, strict=True):
        if "id" in answer:
            load.acknowledged[line["text"]] = answer["id"]
        else:
            load.refused += 1


def run_at_once(work: Callable[[int], None], *, clients: int) -> None:
    """Let each client work in a thread of its own; raise what one of them raised."""
    failed: list[Exception] = []

    def run(client: int) -> None:
        try:
            work(client)
        except Exception as error:  # noqa: BLE001  (raised below, where somebody hears of it)
            failed.append(error)

    threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def kill_one(pid: int) -> None:
    """Kill one of the processes of a server; their parent starts another."""
    psutil.Process(pid).children()[0].kill()


def find_kept(*, workspace_id: int, acknowledged: Mapping[str, str]) -> list[Bar]:
    """Look for every acknowledged text under its id, and for any that is there twice."""
    from memory.models import Episode

    stored = list(Episode.objects.for_workspace(workspace_id).values_list("text", "pk"))
    print(f"{len(acknowledged):,} episodes acknowledged, {len(stored):,} stored")
    lost = acknowledged.items() - set(stored)
    twice = [text for text, times in Counter(text for text, _ in stored).items() if times > 1]
    return [
        Bar(name="acknowledged and not there", value=len(lost), bar=0),
        Bar(name="there more than once", value=len(twice), bar=0),
    ]


def make_workspace() -> tuple[int, str]:
    """Return the id of a new workspace, and a key that may write there."""
    from django.utils import timezone

    from memory.access import create_key, create_workspace
    from memory.models import Permission

    workspace = create_workspace(name="ingest", now=timezone.now())
    _, key = create_key(workspace=workspace, permissions=[Permission.WRITE], now=timezone.now())
    return workspace.pk, key


if __name__ == "__main__":
    sys.exit(main())
