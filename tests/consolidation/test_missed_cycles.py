"""B7, B22: while somebody holds a workspace nothing waits but people; what was not opened is opened by the sweeper."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import open_cycle_for_new_episodes, open_due_cycles, open_missed_cycles
from memory.ledger.transactions import lock_workspace
from memory.models import Cycle, Episode, Trigger, Workspace
from tests import factories
from workers import tasks

pytestmark = pytest.mark.django_db(transaction=True)

_SOON = 0.3  # what waits for a lock is still waiting then
_LATE = 10.0


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Store a workspace in which twenty episodes wait; messages of new cycles reach nobody."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)
    stored = factories.workspace()
    for _ in range(20):
        factories.episode(workspace=stored, created_at=timezone.now())
    return stored


@contextmanager
def held(workspace: Workspace) -> Iterator[None]:
    """Have another connection hold the workspace, as undoing and rebuilding do."""
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock_workspace(workspace.pk)
            holds.set()
            done.wait(_LATE)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(_LATE)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def impatient() -> Iterator[None]:
    """Let a statement that waits for a lock fail."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '300ms'")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


@pytest.mark.usefixtures("impatient")
def test_nothing_that_starts_by_itself_waits_for_a_held_workspace(workspace: Workspace) -> None:
    """B7: neither the twentieth episode, nor the schedule, nor the sweeper."""
    with held(workspace):
        assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=timezone.now()) is None
        assert open_due_cycles(now=timezone.now()) == open_missed_cycles(now=timezone.now()) == []

    assert not Cycle.objects.exists()


def test_a_person_waits_until_the_workspace_is_free(workspace: Workspace) -> None:
    """B7, B22: and then has the cycle."""

    def start() -> None:
        open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
        connection.close()

    with held(workspace):
        person = threading.Thread(target=start)
        person.start()
        person.join(_SOON)
        assert person.is_alive()
    person.join(_LATE)

    assert Cycle.objects.get().trigger == "person"


def test_the_sweeper_opens_what_was_missed(workspace: Workspace) -> None:
    """B7: not the schedule, which may be four hours away."""
    with held(workspace):
        open_cycle_for_new_episodes(workspace_id=workspace.pk, now=timezone.now())

    tasks.sweep()
    tasks.sweep()

    assert Cycle.objects.get().trigger == "episodes"


@pytest.mark.parametrize(("minutes", "opens"), [(-1, True), (1, False)])
def test_what_a_cycle_left_behind_was_not_missed(workspace: Workspace, minutes: int, opens: bool) -> None:
    """B7, B22: a cancelled cycle gives all back, and must not begin anew at once."""
    ended(workspace, at=timezone.now() + timedelta(minutes=minutes))

    assert bool(open_missed_cycles(now=timezone.now())) == opens


@pytest.mark.parametrize("is_open", [True, False])
def test_the_sweeper_reads_a_backlog_no_further_than_the_twentieth(workspace: Workspace, is_open: bool) -> None:
    """B7: it looks every 10 seconds, at all workspaces."""
    Episode.objects.bulk_create(
        [
            Episode(
                workspace=workspace, text=f"Backlog {n}.", origin=f"o{n}", content_hash=f"{n:064}",
                created_at=timezone.now(), occurred_at=factories.NOW,
            )
            for n in range(1_000)
        ]
    )  # fmt: skip
    if is_open:
        open_cycle(workspace_id=workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_episode")
    with CaptureQueriesContext(connection) as asked:
        opened = open_missed_cycles(now=timezone.now())
    assert bool(opened) is not is_open
    looks = [query["sql"] for query in asked if query["sql"].startswith("SELECT") and "memory_episode" in query["sql"]]
    assert 0 < max(map(read_rows, looks)) <= 100


def read_rows(statement: str) -> int:
    """Run a statement once more and return how many rows of a table it reads at most, as the database counts them."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        [[plan]] = cursor.fetchone()
    most, nodes = 0, [plan["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if "Relation Name" in node:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            most = max(most, read * node["Actual Loops"])
    return int(most)


def test_nineteen_are_not_enough(workspace: Workspace) -> None:
    workspace.episodes.all()[0].delete()

    assert open_missed_cycles(now=timezone.now()) == []


def ended(workspace: Workspace, *, at: datetime) -> None:
    Cycle.objects.create(workspace=workspace, now=at, trigger=Trigger.PERSON, state="cancelled", finished_at=at)
