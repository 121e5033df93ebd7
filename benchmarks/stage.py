"""What a benchmark of the whole runs on: services under a data folder of its own, a model server, a real worker."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUEUES = "consolidation,llm,maintenance"
START_SECONDS = 120.0
STOP_SECONDS = 30.0
EMBEDDING_MODEL = "scripted"  # no profile ships for it: its cosines are the reference scale


def set_up(**environment: str) -> None:
    """Configure Django for this process and those it starts, bring the services up and the schema up to date.

    The data lie under .data/bench unless ENGRAM_DATA_DIR says otherwise.
    """
    os.environ.setdefault("ENGRAM_DATA_DIR", str(ROOT / ".data" / "bench"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    os.environ.setdefault("ENGRAM_LOG_LEVEL", "WARNING")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ.setdefault("ENGRAM_CATCH_UP", "0")  # a benchmark opens its cycles when it is ready for them
    os.environ.update(environment)
    import django

    django.setup()
    from django.core.management import call_command

    from beliefsite.services import ensure_services

    ensure_services()
    call_command("migrate", verbosity=0)


def scripted_models(*, url: str) -> dict[str, str]:
    """Return the settings under which every model is the server at this address."""
    return {
        "ENGRAM_LLM": "openai",
        "ENGRAM_EMBEDDINGS": "openai",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "",
        "ENGRAM_EMBEDDING_BASE_URL": url,
        "ENGRAM_EMBEDDING_MODEL": EMBEDDING_MODEL,
    }


@contextmanager
def model_server(*, latency: float) -> Iterator[str]:
    """Run the scripted model server in a process of its own; yield its base URL."""
    port = free_port()
    command = [sys.executable, "-m", "tests.model_server", "--port", str(port), "--latency", str(latency)]
    url = f"http://127.0.0.1:{port}/v1"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "beliefsite.settings"}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            wait_until(lambda: _listens(port), what="the model server")
            yield url
        finally:
            process.terminate()


def read_log(*, url: str) -> list[dict[str, Any]]:
    """Return the calls that the model server at this address has had."""
    address = url.removesuffix("/v1") + "/_log"
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310  (an address of our own)
        log: list[dict[str, Any]] = json.load(answer)
    return log


@contextmanager
def prefork_worker(*, slots: int, app_name: str = "beliefsite") -> Iterator[subprocess.Popen[bytes]]:
    """Run one Celery worker with so many children, its log in the data folder; yield its parent once it answers."""
    from beliefsite.celery import app

    name = f"bench-{os.getpid()}@localhost"
    command = [sys.executable, "-m", "celery", "-A", app_name, "worker", "-n", name, "-Q", QUEUES]
    command += ["-c", str(slots), "-l", "WARNING"]
    log = Path(os.environ["ENGRAM_DATA_DIR"]) / "worker.log"
    with log.open("wb") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out) as process:
        try:
            wait_until(lambda: bool(app.control.ping(destination=[name], timeout=0.5)), what="the worker")
            yield process
        finally:
            _end(process)


@contextmanager
def beat() -> Iterator[None]:
    """Run the sender of the schedule, its log and what it remembers in the data folder."""
    folder = Path(os.environ["ENGRAM_DATA_DIR"])
    command = [sys.executable, "-m", "celery", "-A", "beliefsite", "beat", "-s", str(folder / "beat"), "--pidfile="]
    with (folder / "beat.log").open("wb") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out) as sender:
        try:
            yield
        finally:
            _end(sender)


def wait_until(is_so: Callable[[], bool], *, what: str, seconds: float = START_SECONDS, every: float = 0.1) -> None:
    """Return as soon as something is so; raise TimeoutError, naming it, if it does not become so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(every)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port of loopback at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
