"""B9: over budget: no new work, what is complete is applied, the rest goes back, the reason is kept."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models.functions import Now

from memory.consolidation.cycle import TIME_SPENT, open_cycle
from memory.consolidation.model_calls import SERVER_BUSY
from memory.consolidation.schedule import sweep
from memory.models import Belief, ClusterJob, Cycle, Episode, JobVerdict, ModelCall, Trigger, Workspace
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.steps import steps_of
from tests.consolidation.world import World
from tests.model_server_acts import refuse

pytestmark = pytest.mark.usefixtures("hasty")


def say_matters(world: World, count: int) -> list[Episode]:
    """Store so many clusters of three whose founding needs one synthesis and one classification each."""
    return [
        world.say(f"The lock of barn {barn} lasts {n} seconds.", about=f"barn {barn}")
        for barn in range(count)
        for n in (5, 7, 9)
    ]


def assert_all_found(world: World, said: list[Episode], count: int) -> None:
    """Assert what an undisturbed history gives: nothing lost, nothing counted twice."""
    assert list(Belief.objects.values_list("alpha", "beta", "evidence_count")) == [(4.0, 1.0, 3)] * count
    assert set(world.states(*said)) == {"settled"}


def test_without_time_for_a_call_none_is_made(world: World, decree: Decree) -> None:
    """B9: everything waits as it was, and the cycle says why it ended."""
    said = say_matters(world, 2)
    decree("budget", working_seconds=5.0, call_seconds=10.0)

    cycle = world.cycle()

    assert world.server.log == []
    assert (cycle.state, cycle.budget_spent, cycle.state_reason) == ("over_budget", TIME_SPENT, TIME_SPENT)
    assert set(world.states(*said)) == {"new"}
    decree("budget", working_seconds=120.0)
    world.cycle()
    assert_all_found(world, said, 2)


def test_a_deadline_between_jobs_keeps_what_is_complete(world: World) -> None:
    """B9: the first job is applied, the second, half done, goes back and costs nothing twice."""
    said = say_matters(world, 3)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    for number, step in enumerate(steps_of(cycle)):
        if number == 6:  # extract, read, cluster, two steps of the first job and one of the second
            Cycle.objects.filter(pk=cycle.pk).update(deadline_at=Now() + timedelta(seconds=2))
        step.run(1)

    cycle.refresh_from_db()
    assert (cycle.state, cycle.budget_spent) == ("over_budget", TIME_SPENT)
    assert (cycle.counts["created"], cycle.counts["deferred"]) == (1, 2)
    assert sorted(world.states(*said)) == ["new"] * 6 + ["settled"] * 3
    assert set(ClusterJob.objects.filter(state="deferred").values_list("state_reason", flat=True)) == {TIME_SPENT}
    world.check(cycle)
    world.cycle()
    assert_all_found(world, said, 3)
    assert (world.calls("synthesize"), world.calls("classify")) == (3, 3)


def test_a_slow_server_ends_the_cycle_in_time_and_the_next_goes_on(world: World, decree: Decree) -> None:
    """B9: by the clock: each cycle stops near its time, and several get through all the work."""
    said = say_matters(world, 5)
    world.server.latency = 0.3
    decree("budget", working_seconds=2.0, call_seconds=1.0, margin_seconds=0.1)

    cycle = world.cycle()

    assert cycle.state == "over_budget"
    assert cycle.counts["deferred"] >= 1
    assert cycle.counts["created"] + cycle.counts["deferred"] + cycle.counts["failed"] == 5
    decree("budget", working_seconds=120.0)
    world.server.latency = 0.0
    world.cycle()
    assert_all_found(world, said, 5)


@pytest.mark.parametrize("cap", [{"daily_token_cap": 1}, {"daily_cost_cap_usd": Decimal("0.0001")}])
def test_a_days_cap_ends_the_cycle_and_says_so(world: World, cap: dict[str, object]) -> None:
    """B9: the cap stops calls, not the cycle's end; the work waits for another day."""
    said = say_matters(world, 2)
    Workspace.objects.filter(pk=world.workspace.pk).update(**cap)
    ModelCall.objects.create(
        workspace=world.workspace, purpose="classify", model="x", input_hash="x", outcome="ok",
        input_tokens=10, cost_usd=Decimal("0.01"),
    )  # fmt: skip

    cycle = world.cycle()

    assert world.calls("synthesize") == 0
    assert cycle.state == "over_budget"
    assert "of this day" in cycle.budget_spent
    assert set(world.states(*said)) == {"new"}


def test_a_short_retry_after_is_waited_for(world: World) -> None:
    """B11: at most five seconds inside a step; the cycle ends as if nothing had happened."""
    said = say_matters(world, 1)
    world.server.then(refuse(429, retry_after=0.05), purpose="synthesize")

    cycle = world.cycle()

    assert cycle.attempt == 1
    assert_all_found(world, said, 1)
    first, second = world.server.calls("synthesize")
    assert second.came_at - first.came_at >= 0.05


def test_a_long_retry_after_gives_the_lease_back(world: World, woken: list[tuple[str, int]]) -> None:
    """B11: the job waits in its row, the sweeper sends it again when it is over, without a new attempt."""
    said = say_matters(world, 1)
    world.server.then(refuse(429, retry_after=30), purpose="synthesize")
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    run_steps(cycle=cycle)

    job = ClusterJob.objects.get()
    assert (job.state, job.lease_owner, job.claims) == ("queued", "", 0)
    assert job.not_before is not None
    cycle.refresh_from_db()
    assert cycle.state == "running"
    assert cycle.leased_until > job.not_before

    run_steps(cycle=cycle)  # a message that comes too early
    assert (sweep(), world.calls("synthesize")) == (0, 1)

    ClusterJob.objects.update(not_before=Now() - timedelta(seconds=1))
    assert sweep() == 1
    assert woken == [(cycle.pk, 1), (cycle.pk, 1)]
    run_steps(cycle=cycle)
    cycle.refresh_from_db()
    assert (cycle.state, cycle.attempt) == ("finished", 1)
    assert_all_found(world, said, 1)


@pytest.mark.parametrize("purpose", ["synthesize", "classify"])
def test_a_wait_that_outlasts_the_budget_ends_the_cycle(world: World, purpose: str) -> None:
    """B9: a retry never outlives the budget; the next cycle tries again."""
    said = say_matters(world, 1)
    world.server.then(refuse(429, retry_after=3600), purpose=purpose)

    cycle = world.cycle()

    assert (cycle.state, cycle.budget_spent) == ("over_budget", SERVER_BUSY)
    assert set(world.states(*said)) == {"new"}
    world.cycle()
    assert_all_found(world, said, 1)


def test_a_long_wait_for_vectors_ends_the_cycle_with_its_episodes_pending(world: World) -> None:
    """B9, B11: nothing is pooled without a vector; the next cycle finds everything."""
    said = say_matters(world, 1)
    world.server.then(refuse(429, retry_after=3600), purpose="embed")

    world.cycle()

    assert set(world.states(*said)) == {"failed"}
    world.cycle()
    assert_all_found(world, said, 1)


def test_a_server_that_always_asks_to_wait_does_not_keep_a_cycle_open(world: World) -> None:
    """B9: waiting is paid for in working time, so that the workspace gets on."""
    said = say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(429, retry_after=50)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)

    for _ in range(4):
        run_steps(cycle=cycle)
        let_pass(cycle, seconds=50)
        sweep()

    cycle.refresh_from_db()
    assert (cycle.state, cycle.budget_spent) == ("over_budget", SERVER_BUSY)
    assert world.calls("synthesize") == 3
    assert set(world.states(*said)) == {"new"}


def let_pass(cycle: Cycle, *, seconds: float) -> None:
    """Move every moment in the cycle's rows into the past."""
    span = timedelta(seconds=seconds)
    for row in Cycle.objects.filter(pk=cycle.pk):
        moments = {name: getattr(row, name) - span for name in ("seen_at", "leased_until", "deadline_at")}
        Cycle.objects.filter(pk=cycle.pk).update(**moments)
    for job in ClusterJob.objects.filter(cycle=cycle, not_before__isnull=False):
        assert job.not_before
        ClusterJob.objects.filter(pk=job.pk).update(not_before=job.not_before - span)


def test_verdicts_that_came_before_the_deadline_are_kept(world: World) -> None:
    """B9: stored as they come; the next cycle asks only what is missing."""
    world.hold("The lock of barn 0 lasts 1 second.", about="barn 0", likeness=0.9)
    world.hold("The lock of barn 0 is red.", about="barn 0", likeness=0.89)
    said = say_matters(world, 1)
    world.spoilt.add("The lock of barn 0 is red.")

    world.cycle()

    assert set(world.states(*said)) == {"failed"}
    assert JobVerdict.objects.count() == 3
    world.spoilt.clear()
    asked = world.calls("classify")
    world.cycle()
    assert world.calls("classify") == asked + 1
    assert set(world.states(*said)) == {"settled"}
