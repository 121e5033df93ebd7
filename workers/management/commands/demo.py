"""Live through a sample life with a real worker, and print what is believed before and after a change in it."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from beliefsite.celery import app
from beliefsite.services import describe_services
from memory.access import create_key, create_workspace, remove_workspace
from memory.models import Membership, Permission, Role
from workers.demo_life import Life, read_life
from workers.demo_report import print_beginning, print_report

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
        key, life = _fresh_workspace(), read_life()
        with ExitStack() as running:
            worker = running.enter_context(_worker())
            base_url = running.enter_context(_web())
            self.stdout.write(f"worker     Celery, process {worker}, log in {_log('worker')}")
            bearer = {"Authorization": f"Bearer {key}"}
            with httpx.Client(base_url=base_url, headers=bearer, timeout=30, trust_env=False) as api:
                print_beginning(api=api, life=life, out=self.stdout)
                _live_through(life)
                print_report(api=api, life=life, out=self.stdout)
        self.stdout.write(f"\nDone in {time.monotonic() - began:.0f} s; the worker and the web process have ended.")


def _fresh_workspace() -> str:
    """Make the demo's workspace anew and return a key to it, so that every run begins with an empty memory.

    The admins of this installation may look into it.
    """
    now = timezone.now()
    remove_workspace(name=_WORKSPACE)
    workspace = create_workspace(name=_WORKSPACE, now=now)
    for admin in get_user_model().objects.filter(is_superuser=True):
        Membership.objects.create(workspace=workspace, user=admin, role=Role.OWNER)
    _, key = create_key(workspace=workspace, permissions=[Permission.OWNER], now=now, name="demo")
    return key


def _live_through(life: Life) -> None:
    """Import a life as it was lived: each message at its time, with cycles in between."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "life.jsonl"
        file.write_text(life.to_lines(), encoding="utf-8")
        call_command("import_episodes", str(file), workspace=_WORKSPACE, replay=True)


@contextmanager
def _worker() -> Iterator[int]:
    """Run a Celery worker of our own and yield its process id once it answers."""
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
        yield process.pid


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
            raise CommandError(f"The {name} process did not come up; the end of its log:\n{tail}", returncode=1)
        time.sleep(0.1)


def _log(name: str) -> Path:
    path: Path = settings.DATA_DIR / f"demo-{name}.log"
    return path
