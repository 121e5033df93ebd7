"""B9: a workspace rests after cycles that got nothing done, by the class of what went wrong."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from memory.consolidation.cycle import end_pause, find_pause, open_cycle
from memory.consolidation.schedule import open_cycle_for_new_episodes, open_cycles_after_pause, open_due_cycles
from memory.models import Belief, Cycle, ModelCall, Trigger, Workspace, WorkspacePause
from tests.consolidation.conftest import Decree
from tests.consolidation.test_budget import assert_all_found, say_matters
from tests.consolidation.world import World
from tests.model_server_acts import garbage, refuse

pytestmark = pytest.mark.usefixtures("hasty")


def rest_of(world: World) -> tuple[str, int, float]:
    """Return why the workspace rests, after how many failures in a row, and for how many minutes."""
    pause = WorkspacePause.objects.get(workspace=world.workspace)
    clock = WorkspacePause.objects.annotate(clock=Now()).get(pk=pause.pk).clock
    return pause.reason, pause.failures, round((pause.until - clock).total_seconds() / 60, 1)


def let_rest(world: World) -> None:
    """Let the pause be over."""
    WorkspacePause.objects.filter(workspace=world.workspace).update(until=Now() - timedelta(seconds=1))


def starts_by_itself(world: World) -> bool:
    """Tell whether any wake-up that is nobody's wish opens a cycle, and take it back."""
    workspace = Workspace.objects.get(pk=world.workspace.pk)
    opened = open_cycle_for_new_episodes(workspace_id=workspace.pk, now=world.now) is not None
    opened |= bool(open_due_cycles(now=world.now)) | bool(open_cycles_after_pause(now=world.now))
    Cycle.objects.open().delete()
    return opened


def test_each_cycle_that_gets_nothing_done_doubles_the_rest(world: World) -> None:
    """B9: two minutes, four, eight; cycles that a person starts fail no cheaper."""
    say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(500)
    rests = []
    for _ in range(3):
        world.cycle()
        rests.append(rest_of(world))
    assert rests == [("failures", 1, 2.0), ("failures", 2, 4.0), ("failures", 3, 8.0)]


def test_the_rest_has_a_longest(world: World) -> None:
    """B9: four hours, as the schedule would have it."""
    say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(500)
    world.cycle()
    WorkspacePause.objects.update(failures=40)
    world.cycle()
    assert rest_of(world) == ("failures", 41, 240.0)


def test_nothing_starts_by_itself_while_a_workspace_rests(world: World) -> None:
    """B7, B9: neither twenty episodes nor the schedule; the sweeper starts one cycle when the rest is over."""
    say_matters(world, 7)
    world.trouble.broken["synthesize"] = refuse(500)
    assert starts_by_itself(world)
    world.cycle()
    assert not starts_by_itself(world)
    let_rest(world)
    assert len(open_cycles_after_pause(now=world.now)) == 1
    assert open_cycles_after_pause(now=world.now) == []


def test_a_cycle_that_gets_something_done_ends_the_rest(world: World) -> None:
    """B9: a success starts the count anew."""
    said = say_matters(world, 2)
    world.trouble.broken["synthesize"] = refuse(500)
    world.cycle()
    world.trouble.mend()
    world.cycle()
    assert not WorkspacePause.objects.exists()
    assert_all_found(world, said, 2)


def test_one_failure_among_successes_is_no_reason_to_rest(world: World) -> None:
    """B9: poison is its own trouble, not the workspace's."""
    say_matters(world, 2)
    world.statements["barn 0"] = "no JSON at all"
    world.spoilt.add("no JSON at all")
    world.cycle()
    assert not WorkspacePause.objects.exists()


def test_a_cycle_over_budget_that_judged_nothing_rests(world: World, decree: Decree) -> None:
    """B9: else every request for a cycle would open one in vain."""
    say_matters(world, 1)
    decree("budget", working_seconds=5.0, call_seconds=10.0)
    assert world.cycle().state == "over_budget"
    assert rest_of(world) == ("failures", 1, 2.0)


@pytest.mark.parametrize("purpose", ["synthesize", "classify", "embed"])
@pytest.mark.parametrize(("status", "code", "reason"), [(401, "no", "auth"), (429, "insufficient_quota", "billing")])
def test_a_refused_key_or_account_stops_the_workspace(
    world: World, purpose: str, status: int, code: str, reason: str
) -> None:
    """B9: at once, whatever else was found; no other call is tried in that cycle, and nobody is blamed."""
    said = say_matters(world, 3)
    world.trouble.broken[purpose] = refuse(status, code=code)
    world.cycle()
    assert rest_of(world) == (reason, 1, 360.0)
    assert world.calls(purpose) == 1
    assert not Belief.objects.exists()
    assert {episode.failures for episode in world.workspace.episodes.all()} == {0}
    assert not starts_by_itself(world)
    world.trouble.mend()
    world.cycle()
    assert_all_found(world, said, 3)


def test_other_settings_end_a_stop_at_once(world: World, settings: Settings) -> None:
    """B9: whoever changes the key expects to be heard."""
    say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(401)
    world.cycle()
    assert find_pause(workspace=world.workspace) is not None
    settings.OPENAI_API_KEY = "another"
    assert find_pause(workspace=world.workspace) is None
    assert starts_by_itself(world)


def test_a_stopped_workspace_is_tried_again_after_a_while(world: World) -> None:
    """B9: one probe, which moves the next one on."""
    say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(401)
    world.cycle()
    let_rest(world)
    assert len(open_cycles_after_pause(now=world.now)) == 1
    world.cycle()
    assert rest_of(world) == ("auth", 2, 360.0)
    assert world.calls("synthesize") == 2


def test_a_person_ends_a_rest(world: World) -> None:
    """B9: resuming, as the admin does."""
    say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(401)
    world.cycle()
    assert end_pause(workspace_id=world.workspace.pk)
    assert starts_by_itself(world)


def cap(world: World, **caps: object) -> None:
    """Set caps, the workspace being read anew wherever they matter."""
    Workspace.objects.filter(pk=world.workspace.pk).update(**caps)
    world.workspace.refresh_from_db()


def test_a_workspace_at_its_cap_rests_until_the_next_utc_day(world: World) -> None:
    """B9: no consolidation call, and none started again and again in vain; the next day goes on."""
    said = say_matters(world, 2)
    cap(world, daily_token_cap=50)

    cycle = world.cycle()

    assert (cycle.state, world.server.log) == ("over_budget", [])
    pause = WorkspacePause.objects.get()
    midnight = datetime.combine(timezone.now().astimezone(UTC).date(), datetime.min.time(), UTC) + timedelta(days=1)
    assert (pause.reason, pause.failures, pause.until) == ("cap", 0, midnight)
    assert not starts_by_itself(world)
    let_rest(world)
    ModelCall.objects.update(started_at=Now() - timedelta(days=1))
    cap(world, daily_token_cap=60_000)
    assert len(open_cycles_after_pause(now=world.now)) == 1
    world.cycle()
    assert_all_found(world, said, 2)


def test_a_raised_cap_ends_the_rest_at_once(world: World) -> None:
    """B9: a new cap is a new day."""
    say_matters(world, 1)
    cap(world, daily_cost_cap_usd=Decimal(0))
    world.cycle()
    assert find_pause(workspace=world.workspace) is not None
    cap(world, daily_cost_cap_usd=Decimal(5))
    assert find_pause(workspace=world.workspace) is None


def test_a_cycle_started_by_hand_overrides_a_rest(world: World) -> None:
    """B7, B9: whoever starts one may know more."""
    said = say_matters(world, 1)
    world.trouble.broken["synthesize"] = garbage()
    world.cycle()
    world.trouble.mend()
    _, is_new = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    assert is_new
    world.cycle()
    assert_all_found(world, said, 1)


def test_a_cycle_with_nothing_to_do_ends_a_rest(world: World) -> None:
    """B9: what failed is gone, so there is nothing to rest from."""
    said = say_matters(world, 1)
    world.trouble.broken["synthesize"] = refuse(500)
    world.cycle()
    for episode in said:
        episode.delete()
    world.cycle()
    assert not WorkspacePause.objects.exists()
