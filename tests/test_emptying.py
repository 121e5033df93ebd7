"""What tests commit is taken away, whatever still goes on."""

import threading
import time

import psycopg
import pytest
from django.db import OperationalError, connection, connections

from memory.models import Workspace
from tests import factories
from tests.emptying import empty_tables

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_is_left() -> None:
    factories.workspace()
    empty_tables()
    assert not Workspace.objects.exists()


def test_who_locks_the_same_tables_in_another_order_goes_first() -> None:
    """The database ends whoever has waited for a second when it finds the circle: that is the one that came first."""
    factories.workspace()
    ended: list[OperationalError | None] = []
    facts = connection.settings_dict
    named = {"host": facts["HOST"], "port": facts["PORT"], "user": facts["USER"], "dbname": facts["NAME"]}
    with psycopg.connect(**named, autocommit=True) as other:
        with other.transaction():
            other.execute("LOCK TABLE memory_workspace IN ROW EXCLUSIVE MODE")
            emptying = threading.Thread(target=_empty, args=[ended])
            emptying.start()
            _wait_until_it_waits(other)
            other.execute("LOCK TABLE auth_user IN ROW EXCLUSIVE MODE")
            assert not ended
        emptying.join(timeout=30)
    assert ended == [None]
    assert not Workspace.objects.exists()


def _empty(ended: list[OperationalError | None]) -> None:
    try:
        empty_tables()
        ended.append(None)
    except OperationalError as error:
        ended.append(error)
    finally:
        connections.close_all()


def _wait_until_it_waits(other: psycopg.Connection) -> None:
    gives_up_at = time.monotonic() + 10
    while time.monotonic() < gives_up_at:
        found = other.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'memory_workspace'::regclass"
        ).fetchone()
        if found == (1,):
            return
        time.sleep(0.02)
    raise TimeoutError("nobody waits for the workspaces")
