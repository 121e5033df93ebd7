"""In each step a process dies, or the deadline passes; what is believed afterwards is what would have been anyway."""

from collections import Counter
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least, Now

from memory.models import Cycle
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.steps import STEPS, held_in, name_step, purpose_of
from tests.faults.story import CALLS, Outcome, await_end, begin, check_whole, count_calls, read_outcome, tell_story
from tests.faults.waiting import wait_until
from tests.faults.workforce import Workforce, runs

# The other steps' children die in the tests beside these, at the worst of moments: the gate's, and all that ask.
CHILD_STEPS = ("extract", "cluster", "embed anew", "finish")
HEAD_START_SECONDS = 7.0  # what comes before the last step takes that long, and more on a busy machine


@pytest.mark.parametrize("step", CHILD_STEPS)
def test_a_child_dies_in_a_step(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B8: the message comes back to another child, which does what is missing and nothing else."""
    tell_story(world)
    worker = workforce.worker()
    with held_in(step, world) as window:
        cycle = begin(world)
        window.await_worker()
        worker.kill_children()
        record.strike(f"SIGKILL of a worker's child, {name_step(step)}")
        window.forget()

    check_whole(ended := await_end(cycle))
    record.recover(f"went on in attempt {ended.attempt}, no call made twice")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS


@pytest.mark.parametrize("step", STEPS)
def test_a_parent_dies_and_its_orphan_goes_on(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B8: the orphan may still end its step, nobody hears of it; another worker takes over and counts nothing twice."""
    tell_story(world)
    worker = workforce.worker()
    with held_in(step, world) as window:
        cycle = begin(world)
        window.await_worker()
        orphans = worker.kill_parent()
        record.strike(f"SIGKILL of a worker's parent, {name_step(step)}")
    wait_until(lambda: not any(runs(orphan) for orphan in orphans), what="the orphans to end")

    workforce.worker()
    check_whole(ended := await_end(cycle))
    record.recover(f"went on in attempt {ended.attempt} on another worker")
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) - CALLS <= Counter([purpose_of(step)])  # at most the call that the orphan waited for


@pytest.mark.parametrize("step", STEPS)
def test_the_deadline_passes_in_a_step(
    world: World, workforce: Workforce, undisturbed: Outcome, record: FaultRecord, step: str
) -> None:
    """B9: what is complete is applied, the rest goes back, and the next cycle pays for no stored reply again."""
    tell_story(world)
    workforce.worker()
    with held_in(step, world) as window:
        cycle = _begin_with_little_time(world, head_start=max(HEAD_START_SECONDS, 3 * undisturbed.seconds))
        window.await_worker()
        _leave_time_for_a_call(cycle)
        wait_until(Cycle.objects.filter(pk=cycle.pk, deadline_at__lt=Now()).exists, what="the deadline to pass")
        record.strike(f"deadline in the middle of {name_step(step)}")
    ended = await_end(cycle)
    assert ended.state in ("finished", "over_budget")

    cycles = 1
    if ended.state == "over_budget":
        cycles, ended = 2, await_end(begin(world))
    check_whole(ended, cycles=cycles)
    record.recover(
        "the cycle ended in time, with all its work" if cycles == 1 else "over budget; the next did the rest"
    )
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) - CALLS <= Counter(
        {purpose_of(step): 2}
    )  # a call may time out twice, its reply being held back


def _begin_with_little_time(world: World, *, head_start: float) -> Cycle:
    """Open a cycle whose working time is enough to begin calls with, and ends soon after."""
    budget = settings.POLICY.budget
    seconds = budget.call_seconds + budget.margin_seconds + head_start
    with transaction.atomic():  # its first message is sent on commit
        cycle = begin(world)
        Cycle.objects.filter(pk=cycle.pk).update(deadline_at=F("seen_at") + timedelta(seconds=seconds))
    return cycle


def _leave_time_for_a_call(cycle: Cycle) -> None:
    """Bring the deadline near: a call that is held back would time out again and again until a late one.

    Where the worker is inside of a transaction it has begun no call, and holds the row.
    """
    ends_at = Now() + timedelta(seconds=settings.POLICY.budget.call_seconds)
    with transaction.atomic():
        free = Cycle.objects.select_for_update(skip_locked=True).filter(pk=cycle.pk)
        Cycle.objects.filter(pk__in=[row.pk for row in free]).update(deadline_at=Least(F("deadline_at"), ends_at))
