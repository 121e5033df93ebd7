"""A whole cycle through the broker and real tasks."""

import time

import pytest

from memory.ledger.confidence import find_drift
from memory.models import Cycle, CycleStep, Episode, Workspace
from tests.consolidation.restructuring import child_of, contradict, doubted
from tests.consolidation.world import World
from tests.faults.story import BELIEFS, await_end, begin, read_outcome, tell_story
from workers import tasks

pytestmark = [
    pytest.mark.usefixtures("worker"),
    # What Celery calls, and what its threads leave to the collector, is not ours to mend.
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def test_a_cycle_runs_to_its_end(world: World) -> None:
    """B8, F2: extract, read, cluster, synthesize, classify, gate, restructure, finish, each once."""
    tell_story(world)
    ended = await_end(begin(world))
    assert (ended.state, ended.attempt) == ("finished", 1)
    steps = CycleStep.objects.filter(cycle=ended, finished_at__isnull=False).values_list("name", flat=True)
    assert list(steps) == ["extract", "read", "cluster", "gate", "restructure", "finish"]
    assert find_drift(workspace=world.workspace) == (BELIEFS, [])


def test_a_cycle_without_jobs_goes_straight_to_the_gate(world: World) -> None:
    """B8: nothing alike, nothing to judge; the cycle ends and what it saw waits in the pool."""
    said = [world.say("A blackbird sang.", about="birds"), world.say("The tram was late.", about="trams")]
    ended = await_end(begin(world))
    assert (ended.state, ended.counts["clusters"]) == ("finished", 0)
    assert world.states(*said) == ["pooled", "pooled"]


def test_what_a_gate_decides_is_done_in_the_same_cycle(world: World) -> None:
    """B8.6: gate, restructure, finish: a chord of structural jobs stands between the gate and the end."""
    old = doubted(world)
    contradict(world)
    ended = await_end(begin(world))
    assert (ended.state, ended.attempt, ended.counts["revised"]) == ("finished", 1, 1)
    steps = CycleStep.objects.filter(cycle=ended, finished_at__isnull=False).values_list("name", flat=True)
    assert list(steps) == ["extract", "read", "cluster", "gate", "restructure", "finish"]
    assert child_of(old).status == "active"
    assert find_drift(workspace=world.workspace) == (2, [])


def test_workspaces_do_not_wait_for_each_other(world: World) -> None:
    """B7: one cycle per workspace, as many workspaces as there are."""
    other = World(server=world.server, workspace=_workspace_like(world.workspace))
    other.directions, other.verdicts, other.statements = world.directions, world.verdicts, world.statements
    tell_story(world)
    tell_story(other)
    world.server.embed, world.server.script = world.directions, world.answer
    both = [begin(world), begin(other)]
    assert [await_end(cycle).state for cycle in both] == ["finished", "finished"]
    assert read_outcome(world.workspace) == read_outcome(other.workspace)


def test_a_dispatch_that_comes_again_changes_nothing(world: World) -> None:
    """B8: a second canvas of the same attempt finds every step done or held."""
    tell_story(world)
    cycle = begin(world)
    tasks.start_cycle(cycle_id=cycle.pk, attempt=cycle.attempt)
    ended = await_end(cycle)
    tasks.start_cycle(cycle_id=cycle.pk, attempt=cycle.attempt)
    time.sleep(0.3)  # long enough for a dispatch of nothing to run through
    assert Cycle.objects.get(pk=cycle.pk).finished_at == ended.finished_at
    assert find_drift(workspace=world.workspace) == (BELIEFS, [])
    assert not Episode.objects.filter(state="leased").exists()


def _workspace_like(workspace: Workspace) -> Workspace:
    return Workspace.objects.create(name=f"{workspace.name} too", created_at=workspace.created_at)
