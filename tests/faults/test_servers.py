"""The broker and the database die in the middle of a cycle of ten clusters, and come back."""

import time
from collections import Counter

import pytest

from memory.models import Belief, CallOutcome, Cycle, ModelCall
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.servers import BROKER, DATABASE, kill_servers, restart_servers
from tests.faults.steps import held_in, name_step, purpose_of
from tests.faults.story import (
    CALLS,
    SHELVES,
    Outcome,
    await_end,
    begin,
    check_whole,
    count_calls,
    read_outcome,
    tell_story,
    tell_ten_matters,
)
from tests.faults.waiting import wait_until
from tests.faults.workforce import Workforce
from tests.model_server_acts import Call

WITHIN_SECONDS = 60.0
OUTAGE_SECONDS = 3.0
STORED_BEFORE = 6  # replies: some clusters are judged, some not, some are not begun


@pytest.mark.parametrize("names", [(BROKER,), (DATABASE,), (DATABASE, BROKER)], ids=" and ".join)
def test_servers_die_in_the_middle_of_ten_clusters(
    world: World, workforce: Workforce, record: FaultRecord, names: tuple[str, ...]
) -> None:
    """B8, B9: done within a minute after all are back, and no stored reply is paid for again."""
    tell_ten_matters(world)
    world.server.latency = 0.5
    workforce.go_home()
    with workforce.another(concurrency=4):
        cycle = begin(world)
        wait_until(lambda: len(_stored(cycle)) >= STORED_BEFORE, what="some replies to be stored")
        stored, struck_at = _stored(cycle), time.time()
        kill_servers(*names)
        time.sleep(OUTAGE_SECONDS)
        restart_servers()
        record.strike(f"{' and '.join(names)} killed and restarted amid ten clusters")
        back_at = time.monotonic()
        ended = await_end(cycle)
    took = time.monotonic() - back_at

    record.recover(f"done in attempt {ended.attempt}; no stored reply paid for again")
    check_whole(ended, beliefs=len(SHELVES))
    assert took < WITHIN_SECONDS
    assert set(Belief.objects.values_list("alpha", "beta")) == {(5.0, 1.0)}
    assert len(stored) < 2 * len(SHELVES)
    assert not [call for call in world.server.log if call.came_at > struck_at and _about(call) in stored]


@pytest.mark.parametrize("names", [(BROKER,), (DATABASE,), (DATABASE, BROKER)], ids=" and ".join)
@pytest.mark.parametrize("step", ["revise", "judge anew"])
def test_servers_die_while_a_belief_is_restructured(
    world: World,
    workforce: Workforce,
    undisturbed: Outcome,
    record: FaultRecord,
    names: tuple[str, ...],
    step: str,
) -> None:
    """B8.6, B9: the reply that came during the outage is stored or asked for again, and each change is made once."""
    tell_story(world)
    workforce.worker()
    with held_in(step, world) as window:
        cycle = begin(world)
        window.await_worker()
        kill_servers(*names)
        window.let_go()
        time.sleep(OUTAGE_SECONDS)
        restart_servers()
        record.strike(f"{' and '.join(names)} killed and restarted, {name_step(step)}")

    check_whole(ended := await_end(cycle))
    record.recover(f"done in attempt {ended.attempt}, each change once")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) - CALLS <= Counter([purpose_of(step)])  # at most the one that came amid the outage


def _stored(cycle: Cycle) -> set[tuple[str, frozenset[str]]]:
    """Read which calls have their reply in the ledger: the purpose, and the texts of the episodes that they saw."""
    calls = ModelCall.objects.filter(cycle=cycle, outcome=CallOutcome.OK).exclude(purpose="embed")
    return {(call.purpose, frozenset(call.episodes.values_list("text", flat=True))) for call in calls}


def _about(call: Call) -> tuple[str, frozenset[str]]:
    return call.purpose, frozenset(call.texts)
