"""Live through a sample life with a real worker, and print what is believed before and after a change in it.

Its user's MEMORY.md is published in `.data/demo`, and printed before and after one more change.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.utils import timezone

import memory
from beliefsite.celery import app
from beliefsite.services import describe_services
from memory.access import create_key, create_workspace
from memory.erasure.erase import remove_workspace
from memory.management.command_line import pluralize
from memory.models import Cycle, Membership, MemoryFile, Permission, Role
from memory.publishing.memory_files import enable_file
from memory.publishing.section import BELIEFS_BEGIN, BELIEFS_END

_WORKSPACE = "demo"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


class Command(BaseCommand):
    help = "Live through a sample life with a real worker; print what is believed before and after a change in it."

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        call_command("migrate", verbosity=0)
        for line in describe_services():
            self.stdout.write(line)
        life = read_life()
        key, file = make_workspace(user=life.user)
        with ExitStack() as running:
            worker = running.enter_context(_worker())
            base_url = running.enter_context(_web())
            self.stdout.write(f"worker     Celery, process {worker.pid}, log in {_log('worker')}")
            bearer = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=base_url, headers=bearer, timeout=30, trust_env=False) as api:
                print_beginning(api=api, life=life, out=self.stdout)
                _live_through(life, life.messages, worker)
                print_report(api=api, life=life, out=self.stdout)
                print_file(file=file, at=life.messages[-1], out=self.stdout)
                print_news(life=life, out=self.stdout)
                _live_through(life, [life.news], worker)
                print_file(file=file, at=life.news, out=self.stdout)
        self.stdout.write(_WHAT_NOW)
        self.stdout.write(f"\nDone in {time.monotonic() - began:.0f} s; the worker and the web process have ended.")


def make_workspace(*, user: str) -> tuple[str, MemoryFile]:
    """Make the demo's workspace anew, so that every run begins with an empty memory; return a key and the user's file.

    The admins of this installation may look into it. What an earlier run published goes with the first cycle.
    """
    now = timezone.now()
    remove_workspace(name=_WORKSPACE)
    workspace = create_workspace(name=_WORKSPACE, now=now)
    for admin in get_user_model().objects.filter(is_superuser=True):
        Membership.objects.create(workspace=workspace, user=admin, role=Role.OWNER)
    _, key = create_key(workspace=workspace, permissions=[Permission.OWNER], now=now, name="demo")
    path = settings.DEMO_DIR.resolve() / "MEMORY.md"
    return key, enable_file(workspace=workspace, path=path, project=None, user=user, now=now)


def _live_through(life: Life, messages: Sequence[Mapping[str, str]], worker: subprocess.Popen[bytes]) -> None:
    """Import messages as they were lived: each at its time, with cycles in between, of which the last has published."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "life.jsonl"
        file.write_text(life.to_lines(messages), encoding="utf-8")
        call_command("import_episodes", str(file), workspace=_WORKSPACE, replay=True)
    cycles = Cycle.objects.filter(workspace__name=_WORKSPACE)
    _until(lambda: not cycles.exclude(counts__has_key="promoted").exists(), worker, "worker")


@contextmanager
def _worker() -> Iterator[subprocess.Popen[bytes]]:
    """Run a Celery worker of our own and yield its process once it answers."""
    name = f"demo-{os.getpid()}@localhost"
    queues = "consolidation,llm,maintenance"
    command = [
        "-m",
        "celery",
        "-A",
        "beliefsite",
        "worker",
        "-n",
        name,
        "-Q",
        queues,
        "-c",
        "2",
        "-l",
        "INFO",
        "--without-mingle",
    ]
    with _process("worker", command) as process:
        _until(lambda: bool(app.control.ping(destination=[name], timeout=0.5)), process, "worker")
        yield process


@contextmanager
def _web() -> Iterator[str]:
    """Serve the API on a free port of loopback and yield its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = ["-m", "gunicorn", "beliefsite.wsgi", "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
    with _process("web", command) as process:
        _until(lambda: _answers(f"{address}/healthz"), process, "web")
        yield address


def _answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=2, trust_env=False).is_success  # a proxy cannot reach it
    except httpx.TransportError:
        return False


@contextmanager
def _process(name: str, arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python process with its output in a log file, and end it gently."""
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore"}
    environment["ENGRAM_CATCH_UP"] = "0"  # other workspaces are not the demo's to work on
    with _log(name).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter, our own arguments)
            [sys.executable, *arguments], stdout=log, stderr=log, cwd=settings.BASE_DIR, env=environment
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until(is_ready: Any, process: subprocess.Popen[bytes], name: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = _log(name).read_text(errors="replace")[-2000:]
            raise CommandError(f"The {name} process does not answer; the end of its log:\n{tail}", returncode=1)
        time.sleep(0.1)


def _log(name: str) -> Path:
    path: Path = settings.DATA_DIR / f"demo-{name}.log"
    return path


_LIFE = Path(memory.__file__).with_name("samples") / "lives" / "retired-bookbinder.json"
_CHANGE_AT = "2026-04-17T09:40:00+01:00"  # her telephone is with another company from now on
_SOURCES = {"user": "human", "assistant": "ai"}
# Told when all of the life is: by then what it speaks against stands in MEMORY.md.
_NEWS = {
    "text": "I no longer need the lamp and the big glass, for my eyes have been operated upon.",
    "role": "user",
    "session": "s21",
    "occurred_at": "2026-06-11T09:20:00+01:00",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What somebody and an assistant said to each other, in the order of time."""

    user: str
    messages: tuple[Mapping[str, str], ...]
    change: Mapping[str, str]  # the message that tells of it
    news: Mapping[str, str]  # a message after all others, which ends what stands in MEMORY.md

    @property
    def changed_at(self) -> datetime:
        """Return when the change was announced."""
        return datetime.fromisoformat(self.change["occurred_at"])

    def to_lines(self, messages: Iterable[Mapping[str, str]]) -> str:
        """Write messages as lines of a file to import."""
        return "".join(f"{json.dumps(self._to_episode(message))}\n" for message in messages)

    def _to_episode(self, message: Mapping[str, str]) -> dict[str, str]:
        told = {name: message[name] for name in ("text", "session", "occurred_at")}
        return {**told, "user": self.user, "source": _SOURCES[message["role"]]}


def read_life() -> Life:
    """Read the life that the demo tells."""
    told = json.loads(_LIFE.read_text(encoding="utf-8"))
    messages = tuple(told["episodes"])
    change = next(message for message in messages if message["occurred_at"] == _CHANGE_AT)
    return Life(user=told["user"], messages=messages, change=change, news=_NEWS)


_QUERY = "Which company is my telephone with?"
_WIDTH = 110  # of what somebody said
_WORDS = {"SUPPORTS": "for", "CONTRADICTS": "against", "PARTIAL": "partly"}
_ENDED = ("challenged", "invalidated", "revised", "split", "merged", "archived")

_WHAT_NOW = """
What now
  make up                     runs the whole stack; its admin shows this workspace, `demo`, with all of its evidence
  README.md, "First episodes" stores your own, makes beliefs of them and recalls them, call by call"""
Card = dict[str, Any]


def print_report(*, api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Print what was believed before and after a change in a life, one recall then and now, and the rest in short."""
    cards = {status: _cards(api, status) for status in ("active", *_ENDED)}
    ended = [card for status in _ENDED for card in cards[status]]
    old, new = _find_change([*cards["active"], *ended], life.changed_at)
    _print_change(api, life, old, new, out)
    _print_recall(api, life, out)
    told = {card["id"] for card in (*old, *new)}
    _print_ended([card for card in ended if card["id"] not in told], out)
    _print_still_believed([card for card in cards["active"] if card["id"] not in told], out)


def print_beginning(*, api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Name the models in use, and say who tells what."""
    models = _get(api, "/api/v1/status")["models"]
    kind = "offline: small models that ship with Engram" if models["offline"] else "served"
    out.write(f"models     {models['llm']}, {models['embeddings']} ({kind})")
    first, last = (life.messages[place]["occurred_at"][:10] for place in (0, -1))
    out.write(f"\n{life.user} and an assistant write each other {len(life.messages)} messages, {first} to {last}.")
    out.flush()  # what follows takes a while


def _get(api: httpx.Client, path: str) -> Any:
    return api.get(path).raise_for_status().json()


def _cards(api: httpx.Client, status: str) -> list[Card]:
    """Read all beliefs of a status with their evidence, newest first and in the same order on every run."""
    found: list[Card] = []
    address: str | None = f"/api/v1/beliefs?status={status}"
    while address:
        page = _get(api, address)
        found += [_get(api, f"/api/v1/beliefs/{belief['id']}") for belief in page["results"]]
        address = page["next"]
    return sorted(sorted(found, key=lambda card: card["statement"]), key=lambda card: card["created_at"], reverse=True)


def _find_change(cards: Sequence[Card], at: datetime) -> tuple[list[Card], list[Card]]:
    """Return the beliefs that the message of a time speaks against, and those that it bears out."""
    return [card for card in cards if _says(card, "CONTRADICTS", at)], [
        card for card in cards if _says(card, "SUPPORTS", at)
    ]


def _says(card: Card, verdict: str, at: datetime) -> bool:
    """Tell whether a message of a time says that of a belief."""
    said = (row for row in card["evidence"] if row["verdict"] == verdict)
    return any(datetime.fromisoformat(row["occurred_at"]) == at for row in said)


def _sentence(row: dict[str, Any]) -> str:
    """Return the sentence of an episode that counts; where none does alone, all of it."""
    sentence: str = row["claim"] or row["text"]
    return sentence


def _print_change(api: httpx.Client, life: Life, old: Sequence[Card], new: Sequence[Card], out: OutputWrapper) -> None:
    morning = life.changed_at.astimezone(UTC).replace(hour=0, minute=0)
    night, day = morning + timedelta(days=1), timedelta(days=1)
    _print_cards(f"Believed on {morning - day:%Y-%m-%d}", _as_of(api, (*new, *old), morning), out)
    out.write(f"\n{life.user} on {morning:%Y-%m-%d}\n  “{shorten(life.change['text'], _WIDTH, placeholder=' …')}”")
    _print_cards(f"Believed on {morning:%Y-%m-%d}, once that was consolidated", _as_of(api, (*new, *old), night), out)
    _print_cards(f"Believed on {life.messages[-1]['occurred_at'][:10]}, when all was told", new, out)


def _as_of(api: httpx.Client, cards: Iterable[Card], at: datetime) -> list[Card]:
    """Read beliefs as they stood at a time, without those that were not there yet."""
    answers = [api.get(f"/api/v1/beliefs/{card['id']}", params={"as_of": at.isoformat()}) for card in cards]
    return [answer.raise_for_status().json() for answer in answers if answer.status_code != httpx.codes.NOT_FOUND]


def _print_cards(title: str, cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print beliefs with each episode's word on them."""
    out.write(f"\n{title}")
    for card in cards:
        low, high = card["interval"]
        out.write(f"  {card['confidence']:.2f}  [{low:.2f}, {high:.2f}]  {_statement(card)}")
        for row in card["evidence"]:
            out.write(f"        {_evidence(row)}")
    if not cards:
        out.write("  nothing of it")


def _statement(card: Card) -> str:
    """Return what a belief states, and of one that is held no longer what was done to it and why."""
    if card["status"] == "active":
        return str(card["statement"])
    return f"{card['statement']}  ({card['status']}: {card['status_reason'].replace('_', ' ')})"


def _evidence(row: dict[str, Any]) -> str:
    said = shorten(_sentence(row), _WIDTH, placeholder=" …")
    reason = f"  ({row['reason']})" if row["reason"] else ""
    return f"{row['occurred_at'][:10]}  {_WORDS[row['verdict']]:<7}  {said}{reason}"


def _print_recall(api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Ask the same of the day before the change and of now, and print the best memory of each kind."""
    before = life.changed_at - timedelta(days=1)
    out.write(f"\nRecall: {_QUERY}")
    for when, body in ((f"as of {before:%Y-%m-%d}", {"as_of": before.isoformat()}), ("now", {})):
        asked = {"query": _QUERY, "limit": 5, "user": life.user, **body}
        found = api.post("/api/v1/recall", json=asked).raise_for_status().json()
        best: dict[str, str] = {}
        for item in found["results"]:
            best.setdefault(item["type"], item["text"])
        out.write(f"  {when}")
        for kind, text in best.items():
            out.write(f"    {kind:<7}  {shorten(text, _WIDTH, placeholder=' …')}")


def _print_ended(cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print beliefs that are held no longer, each with what speaks against it."""
    out.write("\nAlso believed no longer")
    for card in cards:
        out.write(f"  {card['confidence']:.2f}  {_statement(card)}")
        for row in card["evidence"]:
            if row["verdict"] == "CONTRADICTS":
                out.write(f"        {_evidence(row)}")
    if not cards:
        out.write("  nothing")


def _print_still_believed(cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print what more than one conversation bears out, and count the rest."""
    borne_out = [card for card in cards if card["origins"].get("SUPPORTS", 0) > 1]
    out.write("\nAlso believed, from more than one conversation")
    for card in borne_out:
        out.write(f"  {card['confidence']:.2f}  {card['origins']['SUPPORTS']} conversations  {card['statement']}")
    rest = len(cards) - len(borne_out)
    out.write(f"  and {pluralize(rest, 'belief')} from a single conversation")


def print_file(*, file: MemoryFile, at: Mapping[str, str], out: OutputWrapper) -> None:
    """Print what our section of MEMORY.md holds after a message."""
    path = Path(file.path)
    content = path.read_text(encoding="utf-8") if path.exists() else ""
    section = content.partition(BELIEFS_BEGIN)[2].partition(BELIEFS_END)[0]
    out.write(f"\nMEMORY.md on {at['occurred_at'][:10]}, {path}")
    for line in section.split("\n"):
        if line:
            out.write(f"  {line}")
    if not section:
        out.write("  nothing: no belief is trusted enough")


def print_news(*, life: Life, out: OutputWrapper) -> None:
    """Print what is said when all else is told."""
    out.write(f"\n{life.user} writes again on {life.news['occurred_at'][:10]}\n  “{life.news['text']}”")
    out.flush()
