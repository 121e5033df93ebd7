"""Real prefork workers in process groups of their own, to be killed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from django.conf import settings
from django.db import connection

from tests.faults.waiting import wait_until

QUEUES = "consolidation,llm,maintenance"


class Worker:
    """One Celery worker with its children; all of them share a process group."""

    def __init__(
        self, *, folder: Path, environment: Mapping[str, str], app: str = "beliefsite", concurrency: int = 1
    ) -> None:
        self.log = folder / "worker.log"
        command = [
            *(sys.executable, "-m", "celery", "-A", app, "worker", "-Q", QUEUES, "-c", str(concurrency)),
            *("-l", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=settings.BASE_DIR,
                env=dict(environment),
                start_new_session=True,
            )
        # Children are forked last: a cycle opened now is not swept many times before anybody could take it up.
        wait_until(lambda: len(self.children()) == concurrency, what="a worker to start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @property
    def is_alive(self) -> bool:
        """Tell whether the worker's parent runs."""
        return self._process.poll() is None

    def children(self) -> list[psutil.Process]:
        """List the processes that run tasks."""
        return psutil.Process(self._process.pid).children() if self.is_alive else []

    def kill_children(self) -> None:
        """End every child at once; the parent notices and starts others."""
        killed = self.children()
        assert killed
        for child in killed:
            child.kill()
        wait_until(lambda: not any(runs(child) for child in killed), what="killed children to be gone")

    def kill_parent(self) -> list[psutil.Process]:
        """End the parent alone; return the children that it leaves behind."""
        orphans = self.children()
        self._process.kill()
        self._process.wait()
        return orphans

    def kill_group(self) -> None:
        """End parent and children at once, as a crash of the machine does."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def send_signal(self, number: int) -> None:
        """Send a signal to the worker's parent alone."""
        self._process.send_signal(number)

    def stop(self) -> None:
        """End it gently, else for good."""
        if not self.is_alive:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill_group()


class Beat:
    """One sender of the schedule, with a memory of its own."""

    def __init__(self, *, folder: Path, environment: Mapping[str, str]) -> None:
        memory = f"{tempfile.mkdtemp(dir=folder)}/schedule"
        command = [sys.executable, "-m", "celery", "-A", "beliefsite", "beat", "-s", memory, "--pidfile=", "-l", "INFO"]
        with (folder / "beat.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=settings.BASE_DIR, env=dict(environment), start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once; nothing that it keeps is worth a gentle end."""
        self._process.kill()
        self._process.wait()


class Workforce:
    """At most one worker at a time, kept from test to test as long as nobody kills it."""

    def __init__(self, *, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._worker: Worker | None = None

    def worker(self) -> Worker:
        """Return the worker, a new one where the last was killed."""
        if self._worker is None or not self._worker.is_alive:
            self._worker = self.another()
        return self._worker

    def another(self, *, app: str = "beliefsite", concurrency: int = 1, own: Mapping[str, str] | None = None) -> Worker:
        """Start a worker that the caller ends, perhaps with variables of its own."""
        environment = {**self._environment, **(own or {})}
        return Worker(folder=self._folder, environment=environment, app=app, concurrency=concurrency)

    def beat(self, *, own: Mapping[str, str] | None = None) -> Beat:
        """Start a beat that the caller ends, perhaps with variables of its own."""
        return Beat(folder=self._folder, environment={**self._environment, **(own or {})})

    def go_home(self) -> None:
        """End what still works."""
        if self._worker is not None and self._worker.is_alive:
            self._worker.stop()
        self._worker = None


def runs(process: psutil.Process) -> bool:
    """Tell whether a process lives; one that only waits for its parent to notice does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def worker_environment(*, model_url: str, embedding_model: str, timeouts: Mapping[str, str]) -> dict[str, str]:
    """Name the suite's own database and broker, a scripted model server, and time-outs, for another process."""
    return os.environ | {
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.BROKER_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "ENGRAM_LLM": "openai",
        "ENGRAM_EMBEDDINGS": "openai",
        "OPENAI_BASE_URL": model_url,
        "ENGRAM_EMBEDDING_MODEL": embedding_model,
        "ENGRAM_LOG_FORMAT": "json",
        "ENGRAM_CATCH_UP": "0",  # a test opens its cycle once its story is told
        "ENGRAM_KEEP_CONNECTIONS": "1",  # as with the embedded database: what dies has more to leave behind
        **timeouts,
    }


def database_url() -> str:
    """Spell the test database as a URL; a socket's folder goes where django-environ decodes nothing."""
    given = connection.settings_dict
    password = f":{given['PASSWORD']}" if given.get("PASSWORD") else ""
    if str(given["HOST"]).startswith("/"):
        return f"postgresql://{given['USER']}{password}@/{given['NAME']}?host={given['HOST']}&port={given['PORT']}"
    return f"postgresql://{given['USER']}{password}@{given['HOST']}:{given['PORT']}/{given['NAME']}"
