"""Hold open the short windows between two acts of a step, from outside: no hook in the product."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray
from redis import Redis

from tests.faults.waiting import PATIENCE_SECONDS, wait_until
from tests.model_server import ModelServer
from tests.model_server_acts import Act, Asked

_PAUSE_MS = 30_000


class LockedTable:
    """A table that everybody may read and nobody may write, until it is opened again."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._locker = connection.copy()
        self._locker.set_autocommit(False)
        self._execute(f"LOCK TABLE {table} IN SHARE MODE")

    def await_writer(self) -> None:
        """Return as soon as somebody waits to write."""
        wait_until(lambda: bool(self._waiting()), what=f"a writer of {self._table}")

    def forget_writers(self) -> None:
        """Cut off who waits: what a killed process asked for last would else be done once the table is open."""
        for pid in self._waiting():
            self._execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    def open(self) -> None:
        """Let writers go on; opening twice does nothing."""
        if self._locker.connection is not None:
            self._locker.rollback()
            self._locker.close()

    def _waiting(self) -> list[int]:
        sql = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
        return [row[0] for row in self._execute(sql, [self._table])]

    def _execute(self, sql: str, parameters: list[Any] | None = None) -> list[Any]:
        with self._locker.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def locked(table: str) -> Iterator[LockedTable]:
    """Hold every writer of a table; it is open again after the body, if not before."""
    window = LockedTable(table)
    try:
        yield window
    finally:
        window.open()


@contextmanager
def paused_broker() -> Iterator[None]:
    """Let nobody write to the broker: no message is sent, none acknowledged."""
    with broker() as client:
        client.client_pause(_PAUSE_MS, all=False)
        try:
            yield
        finally:
            client.client_unpause()


def broker() -> Redis:
    """Open a client of the suite's broker."""
    return Redis.from_url(settings.BROKER_URL.replace("redis+socket:", "unix:"))


class _Held:
    """A request that has come in and is not answered before the test says so; those after the answer pass."""

    def __init__(self) -> None:
        self._came, self._may_leave = threading.Event(), threading.Event()

    def await_call(self) -> None:
        """Return as soon as the call has come in."""
        assert self._came.wait(PATIENCE_SECONDS), "the call that was to be held has not come"

    def let_go(self) -> None:
        """Let the reply leave."""
        self._may_leave.set()

    def _hold(self) -> None:
        self._came.set()
        self._may_leave.wait(PATIENCE_SECONDS)


class HeldReply(_Held):
    """The replies of a purpose, perhaps about one belief alone."""

    def __init__(self, server: ModelServer, *, purpose: str, about: str = "") -> None:
        super().__init__()
        self._purpose, self._about, self._script = purpose, about, server.script
        server.script = self._answer

    def _answer(self, asked: Asked) -> Act | dict[str, Any] | None:
        beliefs = [item["belief"] for item in asked.items if "belief" in item]
        if asked.purpose == self._purpose and self._about in ("", *beliefs):
            self._hold()
        return self._script(asked)


class HeldVectors(_Held):
    """The vectors of one text."""

    def __init__(self, server: ModelServer, *, text: str) -> None:
        super().__init__()
        self._text, self._embed = text, server.embed
        server.embed = self._answer

    def _answer(self, texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
        if self._text in texts:
            self._hold()
        return self._embed(texts, dimensions)
