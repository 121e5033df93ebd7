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
_inherited: list[EmbeddedServer] = []
_guard = threading.Lock()


def ensure(*, data_dir: Path, database: bool, broker: bool) -> None:
    """Start what is wanted and missing, and use it until this process ends. Repeating it restarts what died.

    Raise EmbeddedServiceError if a server cannot be had.
    """
    with _guard:
        for server in _wanted(data_dir, database=database, broker=broker):
            _in_use.setdefault(server.layout.folder, server).start()


def release() -> None:
    """Stop using all servers; those that nobody else uses are stopped. A fork stops only what it ensured itself."""
    with _guard:
        while _inherited:
            _inherited.pop().let_go()
        while _in_use:
            _, server = _in_use.popitem()
            try:
                server.stop()
            except (EmbeddedServiceError, OSError) as error:  # such as its folder deleted under us
                logger.warning("embedded server not stopped: %s", error)


def describe() -> list[ServerFacts]:
    """Return what the servers that this process uses say about themselves."""
    with _guard:
        return [server.facts() for server in _in_use.values()]


def _wanted(data_dir: Path, *, database: bool, broker: bool) -> Iterator[EmbeddedServer]:
    if database:
        yield EmbeddedPostgres(data_dir)
    if broker:
        yield EmbeddedBroker(data_dir)


def _inherit() -> None:
    """In a fork: what the parent uses is the parent's to stop, but goes on while the fork lives."""
    global _guard
    _guard = threading.Lock()  # another thread of the parent may have held it
    _inherited.extend(_in_use.values())
    _in_use.clear()


os.register_at_fork(after_in_child=_inherit)
atexit.register(release)
