"""How fast are turns of conversations taken in over HTTP, and how long does a scan for signals take?

    python -m benchmarks.turns [--seconds 15] [--json FILE]

Eight clients send turns to the web process of the Procfile: in batches of 100, then one by one, each as soon as the
last was answered. A real worker reads the conversations beside it, by rules, and lags behind: what is due piles up in
the queue. In the middle its processes are killed, and in the end all messages are thrown away. Every turn that was
accepted is in the database, and the turns that the killed were at are read all the same. Exits 1 when a bar is missed.
"""

import argparse
import http.client
import json
import signal
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import Drawn, draw
from benchmarks.recall_stage import clear, web_server
from benchmarks.stage import QUEUES, prefork_worker, set_up, wait_until

if TYPE_CHECKING:
    from memory.models.conversations import TurnQuerySet

CLIENTS, BATCH = 8, 100
SLOTS = 2  # of the worker
WARM_UP_SECONDS = 3.0
READ_SECONDS = 180.0  # in which what the killed were at is read again; a lease and a second message come first
LONGEST = 32 * 1024


@dataclass(slots=True, kw_only=True)
class Load:
    """What clients saw: how many turns were accepted, how long each answer took, and what was no answer."""

    accepted: int = 0
    milliseconds: list[float] = field(default_factory=list)
    failures: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Return the turns accepted in a second."""
        return self.accepted / self.seconds


@dataclass(slots=True, kw_only=True)
class Killed:
    """How many processes of a worker were killed, and the turns that these had taken."""

    processes: int = 0
    turns: list[int] = field(default_factory=list)


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load")
    parser.add_argument("--json", type=Path, help="where the figures go")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline")
    return report_bars(bars=[*measure(seconds=asked.seconds), scan()], path=asked.json)


def measure(*, seconds: float) -> list[Bar]:
    """Put the server under both loads, and count what it kept."""
    from memory.models import Conversation, Turn

    workspace_id, key = _workspace()
    drawn, killed = draw(count=20_000), Killed()
    turns = Turn.objects.filter(workspace=workspace_id)
    with web_server() as (port, _), prefork_worker(slots=SLOTS) as worker:
        warm = put_under_load(port=port, key=key, drawn=drawn, size=BATCH, seconds=WARM_UP_SECONDS, name="warm")
        blow = threading.Timer(seconds / 2, kill_children, kwargs={"of": worker.pid, "turns": turns, "killed": killed})
        blow.start()
        many = put_under_load(port=port, key=key, drawn=drawn, size=BATCH, seconds=seconds, name="many")
        blow.join()
        single = put_under_load(port=port, key=key, drawn=drawn, size=1, seconds=seconds, name="single")
        read = turns.filter(state__in=("extracted", "echo")).count()
        lost = throw_messages_away()  # else what the killed were at would wait behind all of it
        unread = read_again(turns=turns.filter(pk__in=killed.turns))
    kept, dead = turns.count(), turns.dead().count()
    due = Conversation.objects.filter(workspace=workspace_id, due_since__isnull=False).count()
    for name, load in (("batches", many), ("one by one", single)):
        p99 = statistics.quantiles(load.milliseconds, n=100)[98]
        print(f"{name}: {load.rate:,.0f} turns/s, p50 {statistics.median(load.milliseconds):.0f} ms, p99 {p99:.0f} ms")
    print(f"{kept:,} turns kept, {read:,} of them read meanwhile; {due:,} conversations are due in the end")
    print(
        f"{killed.processes} processes killed, which were at {len(killed.turns)} turns; {lost:,} messages thrown away"
    )
    clear()
    accepted = warm.accepted + many.accepted + single.accepted
    return [
        Bar(name=f"turns/s in batches of {BATCH}, {CLIENTS} clients", value=many.rate, bar=1_000.0, is_ceiling=False),
        Bar(name=f"turns/s one by one, {CLIENTS} clients", value=single.rate, bar=150.0, is_ceiling=False),
        Bar(name="accepted and not kept", value=abs(accepted - kept), bar=0),
        Bar(name="turns of killed processes not read", value=unread, bar=0),
        Bar(name="turns that could not be read", value=dead, bar=0),
        Bar(name="answers that were none", value=warm.failures + many.failures + single.failures, bar=0),
    ]


def kill_children(*, of: int, turns: "TurnQuerySet", killed: Killed) -> None:
    """Kill the processes of a worker while they are at some turns, and note both; its parent starts others."""
    from django.db import connection

    wait_until(lambda: turns.filter(state="leased").exists(), what="a turn that is being read")
    killed.turns = list(turns.filter(state="leased").values_list("pk", flat=True))
    children = psutil.Process(of).children()
    for child in children:
        child.send_signal(signal.SIGKILL)
    killed.processes = len(children)
    connection.close()


def throw_messages_away() -> int:
    """Empty the queues of the workers, and return how many messages there were."""
    from beliefsite.celery import app

    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel  # every transport's can purge, which its type does not tell
        return sum(int(channel.queue_purge(queue) or 0) for queue in QUEUES.split(","))


def read_again(*, turns: "TurnQuerySet") -> int:
    """Do what beat's sweep does until some turns are read, for a while; return how many are not."""
    from django.utils import timezone

    from memory.ingest.scheduling import wake_conversations

    ends_by = time.monotonic() + READ_SECONDS
    while (left := turns.exclude(state__in=("extracted", "echo")).count()) and time.monotonic() < ends_by:
        wake_conversations(now=timezone.now())
        time.sleep(1.0)
    return left


def put_under_load(*, port: int, key: str, drawn: Sequence[Drawn], size: int, seconds: float, name: str) -> Load:
    """Let clients send so many turns at once, for so long."""
    load, guard = Load(), threading.Lock()
    began = time.perf_counter()

    def send(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        place = client * len(drawn) // CLIENTS
        while time.perf_counter() - began < seconds:
            lines = [
                _turn(drawn[(place + n) % len(drawn)], f"{name} {client} {(place + n) // 20}") for n in range(size)
            ]
            place += size
            status, took = _post(connection, key, {"turns": lines} if size > 1 else lines[0])
            with guard:
                load.milliseconds.append(took)
                load.accepted += size if status == 202 else 0
                load.failures += status != 202

    threads = [threading.Thread(target=send, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - began
    return load


def _turn(drawn: Drawn, session: str) -> dict[str, str]:
    return {"session": session, "role": "user", "speaker": drawn.speaker, "content": drawn.text}


def _post(connection: http.client.HTTPConnection, key: str, body: Any) -> tuple[int, float]:
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v1/turns", json.dumps(body).encode(), headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status, (time.perf_counter() - began) * 1000


def scan() -> Bar:
    """Scan turns of every length for signals; return the 99th percentile."""
    from django.conf import settings

    from memory.language.explicit_requests import scan_signal

    texts = [one.text for one in draw(count=2_000)]
    whole = "\n".join(texts)
    texts += [whole[place : place + LONGEST] for place in range(0, len(whole) - LONGEST, 4_000)]
    taken = []
    for text in texts:
        began = time.perf_counter()
        scan_signal(text=text, cues=settings.SIGNAL_CUES, policy=settings.POLICY.turns)
        taken.append((time.perf_counter() - began) * 1000)
    longest = taken[2_000:]
    print(f"scan: p50 {statistics.median(taken):.3f} ms; of 32 KiB p50 {statistics.median(longest):.3f} ms")
    return Bar(name="scan for signals, p99 in ms", value=statistics.quantiles(taken, n=100)[98], bar=1.0)


def _workspace() -> tuple[int, str]:
    from django.utils import timezone

    from memory.access import create_key, create_workspace
    from memory.models import Permission

    clear()
    workspace = create_workspace(name="turns", now=timezone.now())
    _, key = create_key(workspace=workspace, permissions=[Permission.WRITE], now=timezone.now())
    return workspace.pk, key


if __name__ == "__main__":
    sys.exit(main())
