"""Beat dies, or there are two: rows decide what is due, and who asks does not matter."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

import pytest
from django.utils import timezone

from memory.models import Cycle, Heartbeat, Workspace
from tests import factories
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.steps import STEPS, held_in, name_step
from tests.faults.story import CALLS, Outcome, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.windows import broker
from tests.faults.workforce import Workforce
from tests.model_server import ModelServer

TICK_SECONDS = 1.0
TICKS = {"ENGRAM_CONSOLIDATION_EVERY_HOURS": str(TICK_SECONDS / 3600)}
SWEEPS_AFTERWARDS = 3


@pytest.fixture
def ticking(workforce: Workforce) -> Iterator[None]:
    """Let beats of the test tick, and leave no tick behind: it would open a cycle amid another test's story."""
    yield
    workforce.go_home()
    with broker() as client:
        client.flushdb()


def test_beat_dies_with_the_worker(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord
) -> None:
    """B8: whatever beat comes next finds in the rows what was left unfinished; its memory is not needed."""
    tell_story(world)
    worker = workforce.worker()
    with workforce.beat() as beat, held_in("gate", world) as window:
        cycle = begin(world)
        window.await_worker()
        worker.kill_group()
        beat.kill()
        record.strike("SIGKILL of beat and worker amid a cycle, all messages lost")
        window.forget()
    with broker() as client:
        client.flushdb()

    workforce.worker()
    with workforce.beat():
        ended = _await_end_by_others(world.workspace)
    record.recover(f"the next beat's sweep began attempt {ended.attempt}")
    check_whole(ended)
    assert ended.pk == cycle.pk
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.parametrize("step", STEPS)
def test_a_cycle_needs_no_beat(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B8: beat starts what is due and sweeps; a cycle that is under way goes its way without it."""
    tell_story(world)
    workforce.worker()
    with workforce.beat() as beat, held_in(step, world) as window:
        begin(world)
        window.await_worker()
        beat.kill()
        record.strike(f"SIGKILL of beat, {name_step(step)}")

    ended = _await_end_by_others(world.workspace)
    record.recover("the cycle ended without it")
    check_whole(ended)
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.usefixtures("ticking")
def test_two_beats_start_one_cycle(
    world: World, server: ModelServer, workforce: Workforce, undisturbed: Outcome, record: FaultRecord
) -> None:
    """B7: both tick and both sweep, every second or so; there is one cycle, and then nothing is due."""
    today = World(server=server, workspace=factories.workspace(), now=timezone.now())
    tell_story(today)
    workforce.worker()
    record.strike("two beats at once")
    with workforce.beat(own=TICKS), workforce.beat(own=TICKS):
        ended = _await_end_by_others(today.workspace)
        record.recover("one cycle, begun and swept by both")
        _await_sweeps(SWEEPS_AFTERWARDS)

    check_whole(ended)
    assert read_outcome(today.workspace) == undisturbed
    assert count_calls(today) == CALLS


def test_a_worker_that_starts_takes_up_what_is_overdue(
    server: ModelServer, workforce: Workforce, undisturbed: Outcome, record: FaultRecord
) -> None:
    """B7: no beat has ticked yet, and none need."""
    workforce.go_home()
    today = World(server=server, workspace=factories.workspace(), now=timezone.now())
    tell_story(today)
    record.strike("nothing ran when the episodes came")
    with workforce.another(own={"ENGRAM_CATCH_UP": "1"}):
        ended = _await_end_by_others(today.workspace)
    record.recover("the first worker to start opened the cycle")

    check_whole(ended)
    assert ended.trigger == "schedule"
    assert read_outcome(today.workspace) == undisturbed
    assert count_calls(today) == CALLS


def _await_end_by_others(workspace: Workspace) -> Cycle:
    """Wait for the end of a workspace's first cycle, without sweeping ourselves."""
    cycles = Cycle.objects.filter(workspace=workspace)
    wait_until(cycles.filter(finished_at__isnull=False).exists, what="the cycle to end", seconds=120.0)
    first: Cycle = cycles.select_related("workspace").earliest("opened_at")
    return first


def _await_sweeps(count: int) -> None:
    """Wait until so many sweeps have left their sign of life: by then as many ticks have been sent, or more."""
    for _ in range(count):
        wait_until(partial(_has_swept_since, _last_sweep()), what="a sweep")


def _has_swept_since(moment: datetime | None) -> bool:
    return _last_sweep() != moment


def _last_sweep() -> datetime | None:
    seen: datetime | None = Heartbeat.objects.filter(name="sweep").values_list("seen_at", flat=True).first()
    return seen
