"""The servers that this process uses."""

import atexit
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from beliefsite.embedded.broker import EmbeddedBroker
from beliefsite.embedded.errors import EmbeddedServiceError
from beliefsite.embedded.postgres import EmbeddedPostgres
from beliefsite.embedded.server import EmbeddedServer, ServerFacts

logger = logging.getLogger(__name__)

_in_use: dict[Path, EmbeddedServer] = {}
_user_pid = os.getpid()
_guard = threading.Lock()


def ensure(*, data_dir: Path, database: bool, broker: bool) -> None:
    """Start what is wanted and missing, and use it until this process ends. Repeating it restarts what died.

    Raise EmbeddedServiceError if a server cannot be had.
    """
    with _guard:
        _let_go_of_a_parents()
        for server in _wanted(data_dir, database=database, broker=broker):
            _in_use.setdefault(server.layout.folder, server).start()


def release() -> None:
    """Stop using all servers; those that nobody else uses are stopped. Does nothing in a fork of the user."""
    with _guard:
        _let_go_of_a_parents()
        while _in_use:
            _, server = _in_use.popitem()
            try:
                server.stop()
            except (EmbeddedServiceError, OSError) as error:  # such as its folder deleted under us
                logger.warning("embedded server not stopped: %s", error)


def describe() -> list[ServerFacts]:
    """Return what the servers that this process uses say about themselves."""
    with _guard:
        _let_go_of_a_parents()
        return [server.facts() for server in _in_use.values()]


def _wanted(data_dir: Path, *, database: bool, broker: bool) -> Iterator[EmbeddedServer]:
    if database:
        yield EmbeddedPostgres(data_dir)
    if broker:
        yield EmbeddedBroker(data_dir)


def _let_go_of_a_parents() -> None:
    """In a fork, drop what the parent uses: its servers are its own to stop. One that calls `ensure` uses its own."""
    global _user_pid
    if _user_pid != os.getpid():
        _user_pid = os.getpid()
        for server in _in_use.values():
            server.let_go()
        _in_use.clear()


atexit.register(release)
