"""Fixtures of the whole suite."""

import os
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from django.test import TransactionTestCase

from memory.search.plan import clear_sizes
from tests.emptying import empty_tables


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Bring the suite's database and broker up before the test database is made."""
    from beliefsite.services import ensure_services

    ensure_services()
    if settings.EMBEDDED_DATABASE and os.environ.get("ENGRAM_REAL_TIMEOUTS") != "1":
        _wait_for_no_disk()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Take away fast what tests commit, on the suite's own server, where that is allowed."""
    with pytest.MonkeyPatch.context() as patched:
        if settings.EMBEDDED_DATABASE:
            patched.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty_tables())
        yield


@pytest.fixture(autouse=True)
def no_sizes_of_another_test() -> None:
    """Have each test's recalls ask anew how much there is to search."""
    clear_sizes()


def _wait_for_no_disk() -> None:
    """Let the suite's own server leave it to the system when to write: nothing in it outlives the suite.

    Faults that are timed as in production have a server as in production.
    """
    known = settings.DATABASES["default"]
    with psycopg.connect(
        host=known["HOST"], port=known["PORT"], dbname=known["NAME"], user=known["USER"], autocommit=True
    ) as server:
        for setting in ("fsync", "full_page_writes"):
            server.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        server.execute("SELECT pg_reload_conf()")
