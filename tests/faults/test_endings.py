"""A worker that is asked to end finishes the calls that it has begun, begins none, and wastes none."""

import signal

import pytest

from memory.models import CallOutcome, ModelCall
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.workforce import Workforce

CALL_SECONDS = 2.0
# Celery waits this long for its children whatever they do, so that a deploy takes as long as it says.
SOFT_SHUTDOWN = {"REMAP_SIGTERM": "SIGQUIT"}


@pytest.mark.parametrize("environment", [{}, SOFT_SHUTDOWN], ids=["warm", "soft"])
def test_a_worker_is_ended_during_a_call(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, environment: dict[str, str]
) -> None:
    """B9: the reply is stored, no call is made twice, and another worker makes the rest."""
    tell_story(world)
    workforce.go_home()
    world.server.latency = CALL_SECONDS
    with workforce.another(own=environment) as worker:
        cycle = begin(world)
        wait_until(lambda: bool(count_calls(world)), what="a call")
        record.strike(f"SIGTERM to a worker during a model call, {'soft' if environment else 'warm'} shutdown")
        worker.send_signal(signal.SIGTERM)
        wait_until(lambda: not worker.is_alive, what="the worker to end")
    world.server.latency = 0.0
    begun = count_calls(world)
    assert set(ModelCall.objects.filter(cycle=cycle).values_list("outcome", flat=True)) == {CallOutcome.OK}
    assert begun.total() < CALLS.total()

    workforce.worker()
    ended = await_end(cycle)
    record.recover("the reply stored, no call made twice; the rest by another worker")
    check_whole(ended)
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS
