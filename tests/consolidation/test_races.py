"""Exactly once under real concurrency: several workers with the same messages, at the same time."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import sweep
from memory.domain.evidence import Verdict
from memory.models import Belief, Cycle, Trigger
from tests.consolidation.inline import run_steps
from tests.consolidation.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unheard")]


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Let no message reach the suite's broker: the threads of a test are all the workers there are."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)


def at_once(count: int, work: Callable[[], object]) -> None:
    """Do the same in several threads, each with a connection of its own, from one moment on."""
    gate, errors = threading.Barrier(count), []

    def run() -> None:
        try:
            gate.wait()
            work()
        except Exception as error:  # noqa: BLE001  (raised below, where pytest sees it)
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.usefixtures("without_closing")
def test_four_workers_with_the_same_messages_count_everything_once(world: World) -> None:
    """B8.5: four times every message at once: the evidence of one run, no call made twice."""
    world.server.latency = 0.02
    world.hold("The kiln of the pottery burns 5 hours.", about="kiln", supports=6)
    for hours in range(6, 11):
        text = f"The kiln of the pottery burns {hours} hours."
        world.say(text, about="kiln", likeness=0.75, verdict=Verdict.CONTRADICTS)
    for barn in range(3):
        world.say_all([f"The lock of barn {barn} lasts {n} seconds." for n in (5, 7, 9)], about=f"barn {barn}")
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)

    def work() -> None:
        for _ in range(40):
            run_steps(cycle=cycle)
            if Cycle.objects.get(pk=cycle.pk).finished_at:
                return

    at_once(4, work)

    cycle.refresh_from_db()
    assert cycle.state == "finished"
    world.check(cycle)
    assert sorted(Belief.objects.values_list("alpha", "beta")) == [(4.0, 1.0)] * 3 + [(7.0, 6.0)]
    assert (world.calls("synthesize"), world.calls("classify")) == (3, 4)


def test_eight_wake_ups_open_one_cycle(world: World) -> None:
    """B7: beat, the twentieth episode and people, all at the same moment."""
    at_once(8, lambda: open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.SCHEDULE))

    assert Cycle.objects.count() == 1


def test_sweepers_take_a_cycle_over_once(world: World) -> None:
    """Two sweepers, or ten, make one new attempt."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=Now() - timedelta(seconds=1))

    at_once(6, sweep)

    cycle.refresh_from_db()
    assert cycle.attempt == 2
