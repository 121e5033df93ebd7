"""A worker's clock is ten minutes ahead; leases and deadlines run by the database's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings

from memory.models import Cycle
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.steps import held_in
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.windows import broker
from tests.faults.workforce import Workforce

AHEAD_SECONDS = 600.0
SKEW = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).with_name("skewed")), str(settings.BASE_DIR)]),
    "ENGRAM_TEST_CLOCK_AHEAD": str(AHEAD_SECONDS),
}


def test_the_clock_of_a_process_can_run_ahead() -> None:
    """The other tests here stand on this: Python's clocks are ahead, and Django's with them."""
    words = "import time, datetime; from django.utils import timezone; print(time.time(), timezone.now().timestamp())"
    printed = subprocess.run(
        [sys.executable, "-c", words], env=os.environ | SKEW, capture_output=True, text=True, check=True
    ).stdout

    assert [float(reading) - time.time() for reading in printed.split()] == pytest.approx([AHEAD_SECONDS] * 2, abs=30)


@pytest.mark.parametrize("ahead", ["first", "second"])
def test_a_worker_takes_over_from_one_whose_clock_differs(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, ahead: str
) -> None:
    """B8: a lease is no shorter and no longer for a worker that is ten minutes ahead."""
    tell_story(world)
    workforce.go_home()
    skews = [SKEW, {}] if ahead == "first" else [{}, SKEW]
    with workforce.another(own=skews[0]) as first, held_in("gate", world) as window:
        cycle = begin(world)
        window.await_worker()
        first.kill_group()
        record.strike(f"clock of the {ahead} of two workers ten minutes ahead, the first killed amid a cycle")
        window.forget()

    with workforce.another(own=skews[1]):
        assert not Cycle.objects.get(pk=cycle.pk).finished_at
        check_whole(ended := await_end(cycle))
    record.recover(f"went on in attempt {ended.attempt}, no call made twice")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


def test_workers_ten_minutes_apart_share_a_cycle(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, patience: dict[str, str]
) -> None:
    """B8, B9: neither takes the other's jobs for abandoned, or its time for spent."""
    tell_story(world)
    world.server.latency = 0.3
    workforce.go_home()
    record.strike("two workers at once, their clocks ten minutes apart")
    with workforce.another(concurrency=2, own=SKEW | patience), workforce.another(concurrency=2, own=patience):
        check_whole(ended := await_end(begin(world)))
    record.recover(f"ended in attempt {ended.attempt}, no call made twice")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


def test_a_worker_that_is_ahead_still_sweeps(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord
) -> None:
    """B8: to it the beat's messages look ten minutes old; they must not look too old to be done."""
    tell_story(world)
    worker = workforce.worker()
    with held_in("gate", world) as window:
        cycle = begin(world)
        window.await_worker()
        worker.kill_group()
        record.strike("beat's messages ten minutes old by the only worker's clock")
        window.forget()
    with broker() as client:
        client.flushdb()  # the killed worker's messages never come back: nothing but a sweep can help

    workforce.go_home()
    with workforce.another(own=SKEW), workforce.beat():
        wait_until(Cycle.objects.filter(pk=cycle.pk, finished_at__isnull=False).exists, what="the end", seconds=120.0)
    check_whole(ended := Cycle.objects.select_related("workspace").get(pk=cycle.pk))
    record.recover(f"swept all the same, ended in attempt {ended.attempt}")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS
