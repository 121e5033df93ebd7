"""Kill the suite's own database and broker, have them started again as the next process would, or only nearly."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import psycopg
import pytest
from django.conf import settings
from django.db import connections

from beliefsite import embedded
from beliefsite.embedded import EmbeddedPostgres
from beliefsite.services import ensure_services
from tests.faults.waiting import wait_until
from tests.faults.workforce import runs

DATABASE, BROKER = "PostgreSQL", "broker"


def kill_servers(*names: str) -> None:
    """End servers as a crash does, their children with them; return when none of their processes is left."""
    if not (settings.EMBEDDED_DATABASE and settings.EMBEDDED_BROKER):
        pytest.skip("the servers that the environment names are not ours to kill")
    doomed = [psutil.Process(_pid_of(name)) for name in names]
    everything = [*doomed, *(child for server in doomed for child in server.children(recursive=True))]
    for server in doomed:
        os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not any(runs(process) for process in everything), what="the servers' processes to end")
    connections.close_all()


def restart_servers() -> None:
    """Start what is not running, and return when it answers."""
    ensure_services()
    connections.close_all()


@contextmanager
def recovering_database() -> Iterator[None]:
    """Have the database run, and answer everybody that it is still starting up, until the body ends."""
    kill_servers(DATABASE)
    data = EmbeddedPostgres(settings.DATA_DIR).layout.data
    signal_file, configuration = data / "recovery.signal", data / "postgresql.auto.conf"
    usual, owner = configuration.read_text(), data.stat()
    signal_file.touch()
    os.chown(signal_file, owner.st_uid, owner.st_gid)
    configuration.write_text(f"{usual}restore_command = 'sleep 600'\n")  # it waits for a log that never comes
    keeper = subprocess.Popen(
        [sys.executable, "-m", "beliefsite.embedded", "--database"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "ENGRAM_DATA_DIR": str(settings.DATA_DIR)},
    )
    try:
        wait_until(lambda: "starting up" in _refusal(), what="the database to say that it is starting up")
        yield
    finally:
        keeper.kill()
        keeper.wait()
        _kill_database()
        signal_file.unlink()
        configuration.write_text(usual)
        restart_servers()


def _refusal() -> str:
    """Return why the database lets nobody in."""
    try:
        known = embedded.database_settings(settings.DATA_DIR)
        psycopg.connect(host=known["HOST"], port=known["PORT"], user=known["USER"], dbname="postgres").close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def _kill_database() -> None:
    noted = EmbeddedPostgres(settings.DATA_DIR).layout.data / "postmaster.pid"
    server = psutil.Process(int(noted.read_text().split("\n", 1)[0]))
    everything = [server, *server.children(recursive=True)]
    for process in everything:
        process.kill()
    wait_until(lambda: not any(runs(process) for process in everything), what="the database's processes to end")


def _pid_of(name: str) -> int:
    """Find a server's process among those in use; whichever is not the database is the broker."""
    found = {DATABASE if facts.name == DATABASE else BROKER: facts.pid for facts in embedded.describe()}
    return found[name]
