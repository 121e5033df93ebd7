import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from redis import Redis

from beliefsite.embedded import EmbeddedBroker, EmbeddedPostgres, database_settings
from beliefsite.embedded_server import EmbeddedServer


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder, whose servers are stopped in the end whatever the test did."""
    folder = tmp_path / ".data"
    yield folder
    stop_everything(folder)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose database is made, to copy: that is six times faster than making it."""
    folder = tmp_path_factory.mktemp("made-once") / ".data"
    server = EmbeddedPostgres(folder)
    server.start()
    server.stop()
    return folder


@pytest.fixture
def filled_dir(data_dir: Path, made_once: Path) -> Path:
    """A data folder with a database made before, and not running."""
    subprocess.run(["cp", "-a", made_once, data_dir], check=True)  # -a keeps the owners
    return data_dir


def stop_everything(folder: Path) -> None:
    for server in (EmbeddedPostgres(folder), EmbeddedBroker(folder)):
        if server.answers():
            server.start()
            assert server.stop()


def connect(folder: Path) -> psycopg.Connection:
    """Connect as the application does: by what the settings say."""
    settings = database_settings(folder)
    return psycopg.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        user=settings["USER"],
        dbname=settings["NAME"],
        autocommit=True,
    )


def broker_client(folder: Path) -> Redis:
    return Redis(unix_socket_path=str(EmbeddedBroker(folder).layout.socket), decode_responses=True)


def kill_server(server: EmbeddedServer) -> int:
    """Kill the server's main process; return its number."""
    pid = server.facts().pid
    os.kill(pid, signal.SIGKILL)
    return pid


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie nobody reaps does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(happened: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it has not happened in time"
        time.sleep(0.02)
