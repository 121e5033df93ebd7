"""The model server misbehaves while real workers ask it: each fault alone, then all of them."""

from collections.abc import Callable
from itertools import cycle as cycle_through

import pytest
from django.conf import settings

from memory.models import Episode, StructuralJob
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.workforce import Workforce
from tests.model_server_acts import Act, close_socket, garbage, half_reply, refuse, stall, truncated_json, wrong_schema

FAULTS: dict[str, Callable[[], Act]] = {
    "429 with Retry-After": lambda: refuse(429, retry_after=1),
    "500": lambda: refuse(500),
    "time-out": lambda: stall(settings.POLICY.budget.call_seconds + 2),
    "closed connection": close_socket,
    "half a reply": half_reply,
    "truncated JSON": truncated_json,
    "garbage": garbage,
    "wrong schema": wrong_schema,
}
PURPOSES = tuple(CALLS)
OF_ANY_REPLY = ("429 with Retry-After", "500", "time-out", "closed connection", "half a reply")  # vectors, too
MOST_CYCLES = 4


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_model_server_costs_one_call(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, fault: str, purpose: str
) -> None:
    """B9, B11: the call is made once more, and all is as if nothing had happened."""
    tell_story(world)
    workforce.worker()
    world.server.then(FAULTS[fault](), purpose=purpose)
    record.strike(f"model server: {fault}, {purpose}")

    check_whole(await_end(begin(world)))
    record.recover("one call more, the same outcome")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) - CALLS == {purpose: 1}


@pytest.mark.parametrize("fault", OF_ANY_REPLY)
def test_a_fault_of_the_embedding_server_costs_one_call(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, fault: str
) -> None:
    """B9: vectors are asked for once more, and all is as if nothing had happened."""
    tell_story(world)
    workforce.worker()
    embeddings = len(world.server.calls("embed"))
    world.server.then(FAULTS[fault](), purpose="embed")
    record.strike(f"embedding server: {fault}")

    check_whole(await_end(begin(world)))
    record.recover("one call more, the same outcome")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS
    assert {call.did for call in world.server.calls("embed")[embeddings:]} > {"answer"}


def test_all_faults_of_the_model_server_together(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord
) -> None:
    """B11: over as many cycles as it takes nothing is lost and nothing doubled.

    Each once in either kind of call on episodes, and dealt out among the three that change beliefs, so that one of
    those, too, fails as often as a cycle tries it.
    """
    tell_story(world)
    workforce.worker()
    for make, changing in zip(FAULTS.values(), cycle_through(("revise", "split", "merge"))):
        for purpose in ("synthesize", "classify", changing):
            world.server.then(make(), purpose=purpose)
    record.strike("model server: all of these mixed")

    ended, cycles = await_end(begin(world)), 1
    while _is_unfinished(world) and cycles < MOST_CYCLES:
        ended, cycles = await_end(begin(world)), cycles + 1
    record.recover(f"the same outcome after {cycles} cycles")
    check_whole(ended, cycles=cycles)
    assert read_outcome(world.workspace) == undisturbed
    halved = 2  # batches at most: of two replies in turn that made no sense, one call more
    assert (count_calls(world) - CALLS).total() <= 3 * len(FAULTS) + halved


def _is_unfinished(world: World) -> bool:
    """Tell whether the schedule would begin another cycle."""
    pending = Episode.objects.for_workspace(world.workspace.pk).pending()
    return pending.exists() or StructuralJob.objects.for_workspace(world.workspace.pk).carried_over().exists()
