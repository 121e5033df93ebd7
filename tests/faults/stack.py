"""The stack as `manage.py up` runs it, on free ports and data of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from django.conf import settings

from tests.faults.waiting import wait_until
from tests.faults.workforce import runs

START_SECONDS = 120.0  # a machine that runs a whole suite beside it is slow to start one
_LOG = "up.log"
_FOREIGN = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A running stack: its first process, its data, and what another process needs to know to join it."""

    process: psutil.Process
    data: Path
    environment: Mapping[str, str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.environment['PORT']}"

    def is_ready(self) -> bool:
        """Ask the web process whether the stack can do its work."""
        self.check_alive()
        try:
            return httpx.get(f"{self.address}/readyz", timeout=10).is_success
        except httpx.TransportError:
            return False

    def check_alive(self) -> None:
        """Fail with what it said if the stack has ended by itself: nobody need wait for it any longer."""
        assert runs(self.process), f"the stack has ended: {(self.data.parent / _LOG).read_text(errors='replace')}"

    def manage(self, *words: str) -> str:
        """Run a command of the project beside the stack; return what it printed."""
        command = [sys.executable, "manage.py", *words]
        environment = dict(self.environment)
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def family(self) -> list[psutil.Process]:
        """List the processes that descend from the first, servers aside."""
        return family(self.process)

    def servers(self) -> list[psutil.Process]:
        """List the servers whose data lie in the stack's folder: they are nobody's children."""
        return [
            process
            for process in psutil.process_iter(["cwd", "cmdline"])
            if process.pid != os.getpid() and runs(process) and self._names(process.info)
        ]

    def broker(self) -> psutil.Process | None:
        """Find the embedded broker, None while there is none."""
        return next((found for found in self.servers() if _is_broker(found)), None)

    def _names(self, info: Mapping[str, object]) -> bool:
        words = info["cmdline"] if isinstance(info["cmdline"], list) else []
        return str(self.data) in " ".join([str(info["cwd"] or ""), *words])


@contextmanager
def running_stack(folder: Path, *, within: Sequence[str] = (), **given: str) -> Iterator[Stack]:
    """Run `manage.py up`, perhaps within another command, until the body ends, and leave nothing of it behind."""
    web, flower, tools = free_ports(3)  # a second stack beside this one must find none of them taken
    # Empty rather than absent: a .env of the person who runs the suite must not lead it elsewhere.
    ports = {"PORT": web, "FLOWER_PORT": flower, "MCP_PORT": tools}
    own = {"ENGRAM_DATA_DIR": str(folder / "data"), "ENGRAM_WORKERS": "1", **ports}
    environment = {**os.environ, **dict.fromkeys(_FOREIGN, ""), **own, **given}
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(
            [*within, sys.executable, "manage.py", "up"],
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    stack = Stack(process=psutil.Process(process.pid), data=folder / "data", environment=environment)
    try:
        yield stack
    finally:
        _end(stack)
        process.wait()


def _end(stack: Stack) -> None:
    """Ask the stack to end, and kill what is left of it."""
    everything = stack.family()
    if runs(stack.process):
        stack.process.terminate()
        psutil.wait_procs(everything, timeout=30)
    for left in {*everything, *stack.servers()}:
        if runs(left):
            left.kill()


def family(process: psutil.Process) -> list[psutil.Process]:
    """List a process with all that it started."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def free_ports(count: int) -> list[str]:
    """Find ports that nobody listens on."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [str(probe.getsockname()[1]) for probe in probes]


def await_ready(stack: Stack) -> None:
    """Wait until the stack says that it can do its work."""
    wait_until(stack.is_ready, what="the stack to be ready", seconds=START_SECONDS, every=0.5)


def _is_broker(process: psutil.Process) -> bool:
    try:
        return "server" in process.name() and "postgres" not in process.name()
    except psutil.NoSuchProcess:
        return False
