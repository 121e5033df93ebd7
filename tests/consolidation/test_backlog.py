"""B7: a backlog is drained cycle after cycle, by itself, as long as each gets something out of the way."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memory.consolidation.cycle import open_cycle
from memory.consolidation.finish import cancel_cycle
from memory.consolidation.schedule import (
    describe_backlog,
    open_backlog_cycles,
    open_next_cycle,
    open_overdue_cycles,
    read_backlog,
)
from memory.domain.identity import Actor, ActorKind
from memory.models import ClusterJob, Cycle, Episode, Trigger, Workspace, WorkspacePause
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.test_budget import say_matters
from tests.consolidation.world import World
from tests.model_server_acts import garbage, refuse

pytestmark = pytest.mark.usefixtures("hasty")

_MANY = 40


@pytest.fixture
def small(decree: Decree) -> None:
    """Let a cycle take up four episodes and one cluster."""
    decree("consolidation", lease_episodes=4, clusters=1)


def drain(world: World) -> list[Cycle]:
    """Run the cycles that open by themselves until none does; fail if that has no end."""
    cycles: list[Cycle] = []
    while opened := open_backlog_cycles(now=world.now):
        [key] = opened
        cycle = Cycle.objects.get(pk=key)
        run_steps(cycle=cycle)
        cycle.refresh_from_db()
        world.check(cycle)
        cycles.append(cycle)
        assert len(cycles) < _MANY, "the backlog spins"
    return cycles


@pytest.mark.usefixtures("small")
def test_a_cycle_that_left_episodes_is_followed_until_nothing_waits(world: World) -> None:
    """B7: with nobody asking, and the last one is followed by none."""
    said = say_matters(world, 5)
    first = world.cycle()
    assert first.has_backlog

    cycles = drain(world)

    assert set(world.states(*said)) == {"settled"}
    assert {cycle.trigger for cycle in cycles} == {"backlog"}
    assert len(cycles) >= 3
    assert not Cycle.objects.filter(has_backlog=True).exists()


@pytest.mark.usefixtures("small")
def test_the_next_follows_at_once_and_only_one_does(world: World) -> None:
    """B7: whoever closed the cycle opens it, and the sweeper finds nothing left to open."""
    say_matters(world, 3)
    first = world.cycle()

    [following] = open_next_cycle(cycle_id=first.pk, now=world.now)

    assert Cycle.objects.get(pk=following).trigger == "backlog"
    assert open_backlog_cycles(now=world.now) == open_next_cycle(cycle_id=first.pk, now=world.now) == []


def test_a_cycle_that_left_nothing_is_followed_by_none(world: World) -> None:
    """B7: what is in the pool waits for company, not for cycles."""
    say_matters(world, 2)
    world.say("A blackbird sang.", about="birds")

    assert not world.cycle().has_backlog
    assert drain(world) == []


def test_what_came_while_a_cycle_ran_is_left_by_it_too(world: World) -> None:
    """B7: as few as it may be: nobody would start a cycle for it before the schedule does."""
    say_matters(world, 1)
    late: list[Episode] = []

    def arrive() -> None:
        late.extend([world.say("A blackbird sang.", about="birds")] if not late else [])

    world.before_gate = arrive
    world.cycle()

    assert len(drain(world)) == 1
    assert world.states(*late) == ["pooled"]


def test_a_cycle_that_took_up_nothing_opens_no_other(world: World) -> None:
    """B7: it cannot spin, whatever came meanwhile."""
    world.before_gate = lambda: world.say("A blackbird sang.", about="birds")

    assert not world.cycle().has_backlog


def test_a_cycle_that_got_nothing_done_opens_no_other(world: World) -> None:
    """B7, B9: the workspace rests, and the sweeper comes back when it has."""
    say_matters(world, 2)
    world.trouble.broken["synthesize"] = refuse(500)

    assert not world.cycle().has_backlog
    assert drain(world) == []
    assert Episode.objects.for_workspace(world.workspace).pending().exists()


def test_a_cycle_that_moved_nothing_opens_no_other_without_a_rest_either(world: World, decree: Decree) -> None:
    """B7: where a server refuses all that it is given, and takes our own word no better."""
    decree("budget", call_attempts=1)
    for number in range(3):
        world.say(f"A line {number} that poisons the model.", about=f"poison {number}")
    world.trouble.broken["embed"] = refuse(400)
    cycle = world.cycle()
    WorkspacePause.objects.all().delete()

    assert not cycle.has_backlog
    assert not Episode.objects.filter(failures__gt=0).exists()


@pytest.mark.usefixtures("small")
def test_a_cancelled_cycle_opens_no_other(world: World) -> None:
    """B7, B22: whoever cancelled it did not mean the next."""
    say_matters(world, 3)
    world.cycle()
    [key] = open_backlog_cycles(now=world.now)

    cancel_cycle(cycle_id=key, actor=Actor(kind=ActorKind.COMMAND, name="test"))

    assert not Cycle.objects.get(pk=key).has_backlog
    assert drain(world) == []


@pytest.mark.usefixtures("small")
def test_a_workspace_that_rests_or_is_held_waits(world: World) -> None:
    """B7, B9: and goes on where it was once that is over."""
    say_matters(world, 3)
    world.cycle()
    workspace = Workspace.objects.filter(pk=world.workspace.pk)

    workspace.update(next_cycle_held_until=timezone.now() + timedelta(minutes=5))
    assert drain(world) == []
    workspace.update(next_cycle_held_until=None, beliefs_enabled=False)
    assert drain(world) == []
    workspace.update(beliefs_enabled=True)
    assert drain(world)


@pytest.mark.usefixtures("small")
def test_a_cap_of_the_day_ends_the_draining(world: World) -> None:
    """B7, B9: it rests until the cap does."""
    say_matters(world, 4)
    Workspace.objects.filter(pk=world.workspace.pk).update(daily_token_cap=1)

    assert not world.cycle().has_backlog
    assert drain(world) == []


@pytest.mark.usefixtures("small")
def test_a_cycle_that_somebody_starts_takes_the_backlogs_place(world: World) -> None:
    """B7: one cycle a workspace; the mark goes with the cycle that follows, whoever opened it."""
    say_matters(world, 3)
    world.cycle()

    open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)

    assert not Cycle.objects.filter(has_backlog=True).exists()
    assert open_backlog_cycles(now=world.now) == []


def test_clusters_of_the_pool_that_found_no_room_are_a_backlog_too(world: World, decree: Decree) -> None:
    """B7, B8.2: nothing is pending, and yet a further cycle has something to do."""
    decree("consolidation", cluster_min=4)
    said = say_matters(world, 2)
    world.cycle()
    decree("consolidation", cluster_min=3, clusters=1)
    world.say("A blackbird sang.", about="birds")

    first = world.cycle()

    assert not Episode.objects.for_workspace(world.workspace).pending().exists()
    assert ClusterJob.objects.filter(cycle=first, state="deferred").count() == 1
    assert len(drain(world)) == 1
    assert set(world.states(*said)) == {"settled"}


def test_poison_alone_is_followed_into_the_dead_letters(world: World) -> None:
    """B7, B11: texts that no vector can be had of, and nothing else left to show that the server is well."""
    bad = [world.say(f"Line {number} poisons the model.", about=f"poison {number}") for number in range(40)]
    world.trouble.refused_word = "poisons"

    world.cycle()
    cycles = drain(world)

    assert len(cycles) == 2
    dead = dict(Episode.objects.dead().values_list("pk", "state_reason"))
    assert dead == dict.fromkeys((letter.pk for letter in bad), "embedding: bad_request")


def test_poison_among_others_is_followed_into_the_dead_letters_alone(world: World) -> None:
    """B7, B11: the others are consolidated meanwhile."""
    world.hold("The shop opens at 8 on weekdays.", about="shop", supports=6)
    said = [world.say(f"The shop opens at {hour}.", about="shop", likeness=0.8, verdict="PARTIAL") for hour in (9, 10)]
    bad = world.say("The shop opens at 7 on weekdays.", about="shop", likeness=0.85)
    world.server.script = lambda asked: (
        garbage() if any("at 7" in episode["text"] for episode in asked.episodes) else world.answer(asked)
    )

    world.cycle()
    WorkspacePause.objects.all().delete()
    while Episode.objects.pending().exists():
        world.cycle()
        WorkspacePause.objects.all().delete()

    assert Episode.objects.dead().get() == bad
    assert set(world.states(*said)) == {"settled"}


@pytest.mark.usefixtures("small")
def test_a_cycle_counts_what_it_took_out_of_the_way(world: World) -> None:
    """B20: not what it gave back, and not what came meanwhile."""
    say_matters(world, 2)
    world.before_gate = lambda: world.say("A blackbird sang.", about="birds", created_at=timezone.now())

    cycle = world.cycle()

    left = Episode.objects.for_workspace(world.workspace).pending().count()
    assert cycle.counts["done"] == 6 + 1 - left > 0


@pytest.mark.usefixtures("small")
def test_the_backlog_is_shown_with_its_pace_and_its_end(world: World) -> None:
    """B20: by the cycles that ended lately, and only while one is to follow."""
    say_matters(world, 3)
    assert read_backlog(workspace_id=world.workspace.pk, now=world.now).per_minute is None
    cycle = world.cycle()
    assert cycle.finished_at
    Cycle.objects.filter(pk=cycle.pk).update(opened_at=cycle.finished_at - timedelta(minutes=2), counts={"done": 3})

    found = read_backlog(workspace_id=world.workspace.pk, now=world.now)

    waiting = Episode.objects.for_workspace(world.workspace).pending().count()
    assert (found.waiting, found.per_minute) == (waiting, 1.5)
    assert found.done_at == world.now + timedelta(minutes=waiting / 1.5)
    assert describe_backlog(found).startswith(f"{waiting} wait, 1.5 a minute lately, done about")
    Cycle.objects.update(has_backlog=False)
    assert read_backlog(workspace_id=world.workspace.pk, now=world.now).done_at is None


def test_an_empty_backlog_says_so(world: World) -> None:
    """B20: and knows of no pace."""
    found = read_backlog(workspace_id=world.workspace.pk, now=world.now)

    assert (found.waiting, found.per_minute, found.done_at) == (0, None, None)
    assert describe_backlog(found) == "nothing waits"


@pytest.mark.parametrize(("hours", "opens"), [(None, True), (5, True), (3, False)])
def test_a_service_that_starts_opens_what_is_overdue(world: World, hours: int | None, opens: bool) -> None:
    """B7: where something waits and the schedule's time has passed, as it does while nothing runs."""
    factories.episode(workspace=world.workspace)
    if hours:
        opened = timezone.now() - timedelta(hours=hours)
        Cycle.objects.create(
            workspace=world.workspace, trigger="schedule", now=opened, opened_at=opened, state="finished",
            finished_at=opened,
        )  # fmt: skip

    assert bool(open_overdue_cycles(now=world.now)) == opens
    assert open_overdue_cycles(now=world.now) == []


@pytest.mark.parametrize("reason", ["nothing waits", "held", "rests", "no beliefs"])
def test_a_service_that_starts_opens_nothing_where_nothing_may_start(world: World, reason: str) -> None:
    """B7, B9, B22: as everything that starts by itself."""
    workspace = Workspace.objects.filter(pk=world.workspace.pk)
    if reason != "nothing waits":
        factories.episode(workspace=world.workspace)
    if reason == "held":
        workspace.update(next_cycle_held_until=timezone.now() + timedelta(minutes=5))
    if reason == "no beliefs":
        workspace.update(beliefs_enabled=False)
    if reason == "rests":
        world.trouble.broken["embed"] = refuse(500)
        world.cycle()
        Cycle.objects.update(opened_at=timezone.now() - timedelta(days=1))
        assert WorkspacePause.objects.exists()

    assert open_overdue_cycles(now=world.now) == []
