"""Kill the suite's own database and broker, and have them started again as the next process would."""

import os
import signal

import psutil
import pytest
from django.conf import settings
from django.db import connections

from beliefsite import embedded
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


def _pid_of(name: str) -> int:
    """Find a server's process among those in use; whichever is not the database is the broker."""
    found = {DATABASE if facts.name == DATABASE else BROKER: facts.pid for facts in embedded.describe()}
    return found[name]
