"""B22: between the look that no cycle is open and the undoing of another, none opens."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from memory.consolidation.cycle import open_cycle
from memory.consolidation.undo import CannotBeUndone, undo_cycle
from memory.consolidation.undone import quarantine_episodes
from memory.models import Belief, Cycle, Trigger
from tests import factories
from tests.consolidation.test_races import at_once
from tests.consolidation.undoing import LENA

pytestmark = pytest.mark.django_db(transaction=True)

_SOON = 0.3  # what waits for a lock is still waiting then
_LATE = 10.0


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Cycle:
    """Return an ended cycle that founded a belief; messages of new ones reach nobody."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)
    cycle = Cycle.objects.create(
        workspace=factories.workspace(), trigger="person", now=factories.NOW, state="finished",
        finished_at=factories.NOW,
    )  # fmt: skip
    factories.belief(workspace=cycle.workspace, created_in=cycle)
    return cycle


def open_another(cycle: Cycle) -> None:
    open_cycle(workspace_id=cycle.workspace_id, now=factories.NOW, trigger=Trigger.PERSON)


def undo_it(cycle: Cycle) -> None:
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=factories.NOW)


def begin(work: Callable[[Cycle], None], cycle: Cycle) -> tuple[threading.Thread, list[Exception]]:
    """Do something in a thread with a connection of its own; errors are collected."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work(cycle)
        except Exception as error:  # noqa: BLE001  (the test looks at it)
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def test_no_cycle_opens_while_one_is_undone(ended: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    """B22: it waits, and finds what was undone."""
    was_open: list[bool] = []

    def hold_while_another_would_open(**given: Any) -> int:
        opener, _ = begin(open_another, ended)
        opener.join(_SOON)
        was_open.append(not opener.is_alive())
        waiting.append(opener)
        return quarantine_episodes(**given)

    waiting: list[threading.Thread] = []
    monkeypatch.setattr("memory.consolidation.undo.quarantine_episodes", hold_while_another_would_open)
    undo_it(ended)
    waiting[0].join(_LATE)

    assert was_open == [False]
    assert Cycle.objects.open().count() == 1
    assert Belief.objects.get().status == "invalidated"


def test_undoing_waits_for_a_cycle_that_opens(ended: Cycle) -> None:
    """B22: and then refuses."""
    with transaction.atomic():
        open_another(ended)
        undoer, errors = begin(undo_it, ended)
        undoer.join(_SOON)
        assert undoer.is_alive()
    undoer.join(_LATE)

    assert [type(error) for error in errors] == [CannotBeUndone]
    assert Belief.objects.get().status == "active"


def test_a_cycle_is_undone_once_however_many_would(ended: Cycle) -> None:
    """B22: the others are told by whom."""
    told: list[str] = []

    def try_to() -> None:
        try:
            undo_it(ended)
        except CannotBeUndone as error:
            told.append(str(error))

    at_once(4, try_to)

    assert len(told) == 3
    assert all("undone already, by person lena" in each for each in told)
    assert Belief.objects.get().transitions.count() == 1
