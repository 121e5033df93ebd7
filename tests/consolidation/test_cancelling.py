"""B22: a cancelled cycle stops as if over budget."""

from typing import Any

import pytest
from django.db.models.functions import Now

from memory.consolidation.cycle import begin_attempt, database_now, open_cycle
from memory.consolidation.finish import CycleEnded, cancel_cycle, is_idle_after
from memory.domain.identity import Actor, ActorKind
from memory.llm.call_log import settle_calls
from memory.models import Belief, ClusterJob, Cycle, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.steps import steps_of
from tests.consolidation.test_budget import assert_all_found, say_matters
from tests.consolidation.world import World

pytestmark = pytest.mark.usefixtures("hasty")

LENA = Actor(kind=ActorKind.PERSON, name="lena")


def opened(world: World) -> Cycle:
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def test_a_cycle_that_nobody_has_taken_up_ends_at_once(world: World) -> None:
    """B22: its episodes were never taken, and late messages find nothing to do."""
    said = say_matters(world, 2)
    cycle = opened(world)

    cancelled = cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    run_steps(cycle=cycle)

    assert (cancelled.state, cancelled.state_reason) == ("cancelled", "by person lena")
    assert world.server.log == []
    assert set(world.states(*said)) == {"new"}
    world.check(cancelled)


def test_a_running_cycle_applies_what_is_complete_and_puts_the_rest_back(world: World) -> None:
    """B22: the first job becomes a belief, the others cost nothing until the next cycle."""
    said = say_matters(world, 3)
    cycle = opened(world)
    for number, step in enumerate(steps_of(cycle)):
        if number == 5:  # extract, read, cluster, and both steps of the first job
            cancel_cycle(cycle_id=cycle.pk, actor=LENA)
        step.run(1)

    cycle.refresh_from_db()
    assert (cycle.state, cycle.state_reason, cycle.counts["created"]) == ("cancelled", "by person lena", 1)
    assert world.calls("synthesize") == 1
    assert list(ClusterJob.objects.values_list("state", flat=True)) == ["applied", "deferred", "deferred"]
    world.check(cycle)

    world.cycle()
    assert_all_found(world, said, 3)
    assert world.calls("synthesize") == 3


def test_a_step_under_way_starts_no_further_call(world: World, monkeypatch: pytest.MonkeyPatch, decree: Decree) -> None:
    """B22: what was being asked is kept in the ledger, and the next cycle does not pay it again."""
    decree("budget", calls_in_flight=1)
    decree("consolidation", classify_episodes=1)
    said = say_matters(world, 1)
    cycle = opened(world)

    def settle_and_cancel(**given: Any) -> None:
        settle_calls(**given)
        if world.calls("classify") == 1:
            cancel_cycle(cycle_id=cycle.pk, actor=LENA)

    monkeypatch.setattr("memory.llm.runner.settle_calls", settle_and_cancel)
    run_steps(cycle=cycle)

    cycle.refresh_from_db()
    assert (cycle.state, world.calls("classify")) == ("cancelled", 1)
    world.cycle()
    assert_all_found(world, said, 1)
    assert (world.calls("synthesize"), world.calls("classify")) == (1, 2)


def test_an_attempt_that_takes_over_makes_no_call_either(world: World) -> None:
    """B22, B9: the least time of an attempt is not for a cycle that is to end."""
    said = say_matters(world, 2)
    cycle = opened(world)
    for step in list(steps_of(cycle))[:3]:
        step.run(1)
    cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=Now())

    assert begin_attempt(cycle_id=cycle.pk) == 2
    cycle.refresh_from_db()
    run_steps(cycle=cycle)

    cycle.refresh_from_db()
    assert (cycle.state, world.calls("synthesize")) == ("cancelled", 0)
    assert set(world.states(*said)) == {"new"}


def test_a_wait_for_a_model_server_does_not_outlast_a_cancellation(world: World) -> None:
    say_matters(world, 1)
    cycle = opened(world)
    for step in list(steps_of(cycle))[:3]:
        step.run(1)
    ClusterJob.objects.update(not_before=database_now(plus=600))
    cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    assert not ClusterJob.objects.filter(not_before__gt=Now()).exists()


def test_cancelling_twice_is_cancelling_once(world: World) -> None:
    cycle = opened(world)
    Cycle.objects.filter(pk=cycle.pk).update(state="running", deadline_at=Now())
    cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    again = cancel_cycle(cycle_id=cycle.pk, actor=Actor(kind=ActorKind.PERSON, name="mara"))
    assert again.cancelled_by == "person lena"


def test_what_has_ended_cannot_be_cancelled(world: World) -> None:
    cycle = world.cycle()
    with pytest.raises(CycleEnded, match="has ended as finished"):
        cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    assert Cycle.objects.get().cancelled_by == ""


def test_after_a_cancelled_cycle_no_other_follows_by_itself(world: World) -> None:
    """B22: until idle means until somebody has had enough."""
    say_matters(world, 1)
    cycle = cancel_cycle(cycle_id=opened(world).pk, actor=LENA)
    assert is_idle_after(cycle=cycle)
    assert not Belief.objects.exists()
