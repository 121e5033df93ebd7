"""A worker is killed at the worst moments; what is believed afterwards is what would have been believed anyway."""

from collections import Counter
from collections.abc import Callable

import pytest

from memory.models import CallOutcome, Cycle, CycleStep, Evidence, GateDecision, Lineage, ModelCall
from tests.consolidation.world import World
from tests.faults.changes import (
    CHANGES,
    FERRY,
    FERRY_IN_SUMMER,
    FERRY_IN_WINTER,
    KILN_FIVE,
    KILN_SIX,
    OVEN,
    OVEN_TWIN,
    OVEN_UNITED,
)
from tests.faults.record import FaultRecord
from tests.faults.steps import held_in, name_step, purpose_of
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.windows import locked, paused_broker
from tests.faults.workforce import Workforce

# α and β: one and the supports, one and the contradictions; half of a PARTIAL counts on either side.
_CHANGED = {
    KILN_FIVE: (4.0, 7.0),
    KILN_SIX: (7.0, 4.0),
    FERRY: (5.0, 3.0),
    FERRY_IN_SUMMER: (6.0, 1.0),
    FERRY_IN_WINTER: (4.0, 1.0),
    OVEN: (6.0, 1.0),
    OVEN_TWIN: (5.0, 1.0),
    OVEN_UNITED: (9.0, 1.0),
}


def test_nothing_goes_wrong(undisturbed: Outcome) -> None:
    """B8: the run that every other is compared with founds one belief, moves two, and changes the shape of four."""
    assert {statement: row[:2] for statement, row in undisturbed.beliefs.items()} == {
        **_CHANGED,
        "The lock of the archive lasts 5 seconds.": (5.5, 2.5),
        "Ana writes her notes with a pencil.": (6.0, 2.0),
        "Ana drinks tea in the morning.": (5.0, 2.0),
    }
    assert undisturbed.episodes["A blackbird sang."] == "pooled"
    assert undisturbed.changes == sorted(CHANGES)


@pytest.mark.parametrize("step", ["synthesize", "classify", "revise", "split", "merge", "judge anew"])
def test_a_child_dies_between_a_reply_and_its_storing(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B8, B9: the call is made again, its first reply counts for nothing."""
    tell_story(world)
    with held_in(step, world) as held:
        worker, cycle = workforce.worker(), begin(world)
        held.await_worker()
        with locked("memory_modelcall") as ledger:
            held.let_go()
            ledger.await_writer()
            worker.kill_children()
            record.strike(f"SIGKILL of a worker's child, {name_step(step)}, its reply not stored yet")
            ledger.forget_writers()

    check_whole(ended := await_end(cycle))
    record.recover("the call was made again, its first reply counts for nothing")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS + Counter([purpose_of(step)])
    assert _outcomes(ended) == {CallOutcome.OK: CALLS.total(), CallOutcome.ABANDONED: 1}


# What applies verdicts writes evidence, as soon as jobs are ready; what ends a cycle's gate writes decisions; a change
# of structure writes lineage.
WRITES: dict[str, type[Evidence] | type[GateDecision] | type[Lineage]] = {
    "memory_evidence": Evidence,
    "memory_gatedecision": GateDecision,
    "memory_lineage": Lineage,
}
STEP_OF = {"memory_evidence": "gate", "memory_gatedecision": "gate", "memory_lineage": name_step("apply")}
THINGS = {"memory_evidence": "evidence", "memory_gatedecision": "decisions", "memory_lineage": "a change"}


@pytest.mark.parametrize("table", WRITES)
def test_a_writers_child_dies_before_its_commit(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, table: str
) -> None:
    """B8.5: nothing of the transaction stays, and no call is made again."""
    tell_story(world)
    worker = workforce.worker()
    with locked(table) as window:
        cycle = begin(world)
        window.await_writer()
        worker.kill_children()
        record.strike(f"SIGKILL of a worker's child, {STEP_OF[table]}, before it commits {THINGS[table]}")
        window.forget_writers()
    assert not WRITES[table].objects.filter(cycle=cycle).exists()

    check_whole(await_end(cycle))
    record.recover("the transaction left nothing; done again, no call made twice")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.parametrize("table", WRITES)
def test_a_writers_child_dies_after_its_commit(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, table: str
) -> None:
    """B8.5: the step runs again and counts nothing again."""
    tell_story(world)
    worker = workforce.worker()
    cycle = _commit_without_an_ack(world, table, then=worker.kill_children)
    record.strike(f"SIGKILL of a worker's child, {STEP_OF[table]}, {THINGS[table]} committed, no message acknowledged")

    check_whole(await_end(cycle))
    record.recover("the step ran again and counted nothing again")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.parametrize("table", WRITES)
def test_a_whole_worker_dies_between_commit_and_ack(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, table: str
) -> None:
    """B8.5: another worker finds the evidence counted and counts none of it again."""
    tell_story(world)
    worker = workforce.worker()
    cycle = _commit_without_an_ack(world, table, then=worker.kill_group)
    record.strike(f"SIGKILL of a whole worker, {STEP_OF[table]}, {THINGS[table]} committed, no message acknowledged")
    assert not worker.is_alive

    workforce.worker()
    check_whole(await_end(cycle))
    record.recover("another worker counted nothing again")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


def _commit_without_an_ack(world: World, table: str, *, then: Callable[[], None]) -> Cycle:
    """Let a step commit what it writes to a table, but send and acknowledge nothing, and do something then."""
    with locked(table) as window:
        cycle = begin(world)
        window.await_writer()
        with paused_broker():
            window.open()
            wait_until(WRITES[table].objects.filter(cycle=cycle).exists, what=f"a commit to {table}", seconds=20)
            then()
    assert not CycleStep.objects.filter(cycle=cycle, name="finish").exists()
    return cycle


def _outcomes(cycle: Cycle) -> Counter[str]:
    """Count the rows of the ledger by what came of the calls."""
    return Counter(ModelCall.objects.filter(cycle=cycle).exclude(purpose="embed").values_list("outcome", flat=True))
