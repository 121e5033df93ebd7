"""The database backend: a dead connection is replaced before it is used, and a live one is not asked."""

import select

import psycopg
import pytest
from django.db import NotSupportedError, close_old_connections, connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """List what is sent through psycopg's cursors."""
    sent: list[object] = []
    execute = psycopg.Cursor.execute

    def note(self: object, query: object, *args: object, **options: object) -> object:
        sent.append(query)
        return execute(self, query, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(psycopg.Cursor, "execute", note)
    return sent


def test_checking_a_quiet_connection_asks_the_server_nothing(statements: list[object]) -> None:
    connection.ensure_connection()
    statements.clear()

    assert connection.is_usable()

    assert statements == []


def test_a_connection_that_the_server_ended_is_replaced_before_a_request_uses_it() -> None:
    ended = _backend()
    _end(ended)

    close_old_connections()  # as at the beginning of a request

    assert _backend() != ended


def test_a_connection_that_the_server_ended_is_not_usable() -> None:
    _end(_backend())

    assert not connection.is_usable()
    connection.close()


def test_where_the_server_has_said_something_it_is_asked_and_the_connection_kept(statements: list[object]) -> None:
    backend = _backend()
    with connection.cursor() as cursor:
        cursor.execute("LISTEN something")
    with _another() as other:
        other.execute("NOTIFY something")
    _wait_for_a_word()
    statements.clear()

    assert connection.is_usable()

    assert statements == ["SELECT 1"]
    assert _backend() == backend
    with connection.cursor() as cursor:
        cursor.execute("UNLISTEN *")


def test_a_connection_that_was_never_opened_or_is_closed_is_not_usable() -> None:
    connection.close()
    assert not connection.is_usable()

    connection.ensure_connection()
    connection.connection.close()
    assert not connection.is_usable()
    connection.close()


def test_a_connection_in_a_transaction_that_failed_is_not_usable() -> None:
    connection.ensure_connection()
    raw = connection.connection
    raw.autocommit = False
    with pytest.raises(psycopg.errors.DivisionByZero):
        raw.execute("SELECT 1 / 0")

    assert not connection.is_usable()
    connection.close()


def test_a_connection_that_still_waits_for_an_answer_is_not_usable() -> None:
    connection.ensure_connection()
    connection.connection.pgconn.send_query(b"SELECT pg_sleep(1)")

    assert not connection.is_usable()
    connection.close()


def test_a_server_that_is_too_old_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.features, "minimum_database_version", (99,))

    with pytest.raises(NotSupportedError, match="PostgreSQL 99 or later is required"):
        connection.check_database_version_supported()


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(pid)


def _end(backend: int) -> None:
    """End a server process, and return once its end of the socket is closed."""
    with _another() as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])


def _another() -> psycopg.Connection[tuple[object, ...]]:
    connection.ensure_connection()
    return psycopg.connect(connection.connection.info.dsn, autocommit=True)


def _wait_for_a_word() -> None:
    poll = select.poll()
    poll.register(connection.connection.pgconn.socket, select.POLLIN)
    assert poll.poll(5_000), "nothing came"
