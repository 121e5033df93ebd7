"""Messages that come twice and sweepers that come together change nothing."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from memory.consolidation.schedule import sweep
from memory.models import Cycle
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.steps import held_in, name_step
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.windows import broker
from tests.faults.workforce import Workforce
from workers.tasks import start_cycle

SWEEPERS = 6


def test_every_message_is_delivered_twice(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, patience: dict[str, str]
) -> None:
    """B4, B8: four children race for the copies; no call is made twice and nothing counts twice."""
    tell_story(world)
    workforce.go_home()
    with workforce.another(app="tests.faults.doubling", concurrency=4, own=patience):
        record.strike("every message delivered twice")
        cycle = begin(world)
        start_cycle(cycle_id=cycle.pk, attempt=cycle.attempt)
        ended = await_end(cycle)
        wait_until(lambda: _messages("consolidation", "llm") == 0, what="the last copy to be taken")

    check_whole(ended)
    record.recover("no call made twice, nothing counted twice")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.parametrize("step", ["gate", "apply"])
def test_sweepers_wake_an_abandoned_cycle_once(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B8: of several sweepers at the same moment one begins the next attempt, and sends it once."""
    tell_story(world)
    worker = workforce.worker()
    with held_in(step, world) as window:
        cycle = begin(world)
        window.await_worker()
        worker.kill_group()
        record.strike(f"{SWEEPERS} sweepers at one moment, {name_step(step)}, the worker and all its messages lost")
        window.forget()
    wait_until(Cycle.objects.abandoned().filter(pk=cycle.pk).exists, what="the lease to run out")
    with broker() as client:
        client.flushdb()  # the killed worker's messages never come back

    woken = _sweep_together()

    assert sorted(woken) == [0] * (SWEEPERS - 1) + [1]
    assert Cycle.objects.get(pk=cycle.pk).attempt == cycle.attempt + 1
    assert _messages("consolidation") == 1
    workforce.worker()
    check_whole(await_end(cycle))
    record.recover("one of them began the next attempt, and sent it once")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


def _sweep_together() -> list[int]:
    """Sweep in several threads that begin at one moment; return how many cycles each woke."""
    barrier = Barrier(SWEEPERS)

    def run(_: int) -> int:
        try:
            connection.ensure_connection()
            barrier.wait()
            return sweep()
        finally:
            connection.close()

    with ThreadPoolExecutor(SWEEPERS) as threads:
        return list(threads.map(run, range(SWEEPERS)))


def _messages(*queues: str) -> int:
    """Count the messages that wait in queues."""
    with broker() as client:
        return sum(client.llen(queue) for queue in queues)
