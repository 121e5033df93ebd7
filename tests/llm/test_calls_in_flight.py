"""How many calls a step and a workspace make at once, and what is held meanwhile (B9)."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import psycopg
import pytest
from django.db import OperationalError, connections
from pytest_django import Settings

from memory.llm import runner
from memory.llm.call_log import RetryLater, Settlement, settle_calls
from memory.llm.requests import Request
from memory.llm.types import Completion
from memory.models import ModelCall, Workspace
from tests.llm.steps import Step, batch
from tests.model_server import ModelServer
from tests.model_server_acts import Asked

pytestmark = pytest.mark.django_db


def test_asks_of_a_step_are_in_flight_together(step: Step, server: ModelServer) -> None:
    server.latency = 0.3
    step.ask(*(batch(f"text {n}", key=str(n)) for n in range(4)))
    assert max(call.came_at for call in server.log) < min(call.left_at or 0 for call in server.log)


def test_no_more_are_in_flight_than_the_step_allows(step: Step, server: ModelServer) -> None:
    server.latency = 0.1
    step.ask(*(batch(f"text {n}", key=str(n)) for n in range(4)), max_parallel=1)
    made = sorted(server.log, key=lambda call: call.came_at)
    assert all(after.came_at - before.came_at >= server.latency for before, after in pairwise(made))


def open_calls(workspace: Workspace, count: int) -> None:
    """Leave calls open, as steps of other workers have them."""
    rows = [ModelCall(workspace=workspace, purpose="classify", model="x", input_hash="0" * 64) for _ in range(count)]
    ModelCall.objects.bulk_create(rows)


def test_a_full_workspace_makes_a_step_wait_for_a_place(
    step: Step, server: ModelServer, workspace: Workspace, allow_in_flight: Callable[[int], None]
) -> None:
    """B9: the number of calls in flight per workspace is a setting."""
    allow_in_flight(2)
    open_calls(workspace, 2)
    with pytest.raises(RetryLater):
        step.ask(batch("a"), wait_limit=0.2)
    assert server.log == []


def test_places_of_another_workspace_do_not_count(
    step: Step, stranger: Workspace, allow_in_flight: Callable[[int], None]
) -> None:
    allow_in_flight(2)
    open_calls(stranger, 2)
    assert step.ask(batch("a")) == []


def test_places_of_the_dead_are_free_after_the_call_timeout(
    step: Step, workspace: Workspace, allow_in_flight: Callable[[int], None]
) -> None:
    allow_in_flight(1)
    open_calls(workspace, 1)
    assert step.ask(batch("a"), call_timeout=0.8) == []


def test_a_crowded_workspace_lets_asks_through_one_by_one(
    step: Step, server: ModelServer, workspace: Workspace, allow_in_flight: Callable[[int], None]
) -> None:
    allow_in_flight(2)
    open_calls(workspace, 1)
    server.latency = 0.15
    assert step.ask(*(batch(f"text {n}", key=str(n)) for n in range(3))) == []
    made = sorted(server.log, key=lambda call: call.came_at)
    assert all(after.came_at - before.came_at >= server.latency for before, after in pairwise(made))


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_a_model_thinks(step: Step, server: ModelServer) -> None:
    """No transaction across a call and, where connections are scarce, no connection either."""
    held: list[object] = []
    mine = connections["default"]

    def script(asked: Asked) -> None:
        time.sleep(0.2)
        held.append(mine.connection)

    server.script = script
    step.ask(batch("a"))
    assert held == [None]


@pytest.mark.django_db(transaction=True)
def test_a_kept_connection_that_dies_while_a_model_thinks_costs_no_reply(
    step: Step, server: ModelServer, settings: Settings
) -> None:
    """A server that restarts during a call is found out before the reply is stored."""
    settings.ENGRAM_KEEP_CONNECTIONS = True
    mine = connections["default"]
    mine.close()  # one that other tests used may have come to its age, and be closed for that
    ended: list[int] = []

    def script(asked: Asked) -> None:
        time.sleep(0.2)
        ended.append(mine.connection.info.backend_pid)
        with psycopg.connect(mine.connection.info.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 1000)", ended)

    server.script = script
    assert step.ask(batch("a")) == []
    assert (len(ended), ModelCall.objects.get().outcome) == (1, "ok")
    assert mine.connection.info.backend_pid not in ended


@pytest.mark.django_db(transaction=True)
def test_replies_wait_for_a_database_that_is_away(
    step: Step, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that is paid for outlives a restart of the database: it exists nowhere else yet."""
    refusals = [OperationalError("the database system is starting up")] * 2

    def settle(*, settlements: Sequence[Settlement]) -> None:
        if refusals:
            raise refusals.pop()
        settle_calls(settlements=settlements)

    monkeypatch.setattr(runner, "settle_calls", settle)
    monkeypatch.setattr(runner, "OUTAGE_PAUSE_SECONDS", 0.01)
    assert step.ask(batch("a")) == []
    assert (len(step.answers), len(server.log), ModelCall.objects.get().outcome) == (1, 1, "ok")


def test_an_error_of_our_own_costs_no_reply_beside_it(step: Step, server: ModelServer) -> None:
    """What comes back with a call that broke is settled and handed on all the same."""
    complete = step.model.complete

    def break_on_b(*, request: Request, timeout: float) -> Completion:
        if "b" in [episode.text for episode in request.episodes]:
            raise ZeroDivisionError
        return complete(request=request, timeout=timeout)

    step.model.complete = break_on_b  # type: ignore[method-assign]
    failures = step.ask(batch("a", key="1"), batch("b", key="2"))
    assert [answer.key for answer in step.answers] == ["1"]
    assert [(failure.key, failure.message) for failure in failures] == [("2", "ZeroDivisionError: ")]
