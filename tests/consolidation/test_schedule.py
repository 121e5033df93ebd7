"""B7: what starts a cycle, and that one workspace never has two."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import open_cycle_for_new_episodes, open_due_cycles
from memory.models import Cycle, Trigger, Workspace
from tests import factories

pytestmark = pytest.mark.django_db

NOW = factories.NOW


@pytest.fixture
def workspace() -> Workspace:
    """Store an empty workspace."""
    return factories.workspace()


def fill(workspace: Workspace, count: int, **given: object) -> None:
    """Store so many episodes."""
    for _ in range(count):
        factories.episode(workspace=workspace, **given)


def test_an_open_cycle_is_the_only_one(workspace: Workspace) -> None:
    """B7: whoever asks for another gets the open one."""
    first, is_new = open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.PERSON)
    second, is_also_new = open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.SCHEDULE)

    assert (is_new, is_also_new) == (True, False)
    assert first == second
    assert Cycle.objects.get().trigger == "person"


def test_the_database_holds_to_one_open_cycle(workspace: Workspace) -> None:
    """B7: a constraint, not a habit of the code."""
    open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.PERSON)

    with pytest.raises(IntegrityError, match="one_open_cycle_per_workspace"), transaction.atomic():
        Cycle.objects.create(workspace=workspace, now=NOW, trigger=Trigger.PERSON, state="running")


def test_a_new_cycle_wakes_the_workers_once(workspace: Workspace, woken: list[tuple[str, int]]) -> None:
    """B7: one signal for the cycle that was opened, none for the one that was found open."""
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.PERSON)
    open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.PERSON)

    assert woken == [(cycle.pk, 1)]


@pytest.mark.parametrize(("count", "opens"), [(19, False), (20, True)])
def test_twenty_new_episodes_start_a_cycle(workspace: Workspace, count: int, opens: bool) -> None:
    """B7: at the twentieth, not before."""
    fill(workspace, count)

    cycle = open_cycle_for_new_episodes(workspace_id=workspace.pk, now=NOW)

    assert (cycle is not None) == opens
    assert Cycle.objects.filter(trigger="episodes").exists() == opens


@pytest.mark.parametrize("state", ["pooled", "settled", "failed", "held"])
def test_only_new_episodes_count(workspace: Workspace, state: str) -> None:
    """B7: what waits in the pool, has settled or has failed starts nothing by its number."""
    fill(workspace, 15)
    fill(workspace, 10, state=state)

    assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=NOW) is None


def test_another_workspaces_episodes_do_not_count(workspace: Workspace) -> None:
    """B7, B21: nineteen here and nineteen there start nothing."""
    fill(workspace, 19)
    fill(factories.workspace(), 19)

    assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=NOW) is None


def test_a_held_workspace_is_left_to_its_replay(workspace: Workspace) -> None:
    """B7, the clock: neither twenty episodes nor the schedule open a cycle while a replay runs."""
    workspace.next_cycle_held_until = timezone.now() + timedelta(days=1)
    workspace.save()
    fill(workspace, 25)

    assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=NOW) is None
    assert open_due_cycles(now=NOW) == []


def test_a_hold_that_has_run_out_holds_nothing(workspace: Workspace) -> None:
    """B7: a replay that died does not silence its workspace for ever."""
    workspace.next_cycle_held_until = timezone.now() - timedelta(seconds=1)
    workspace.save()
    fill(workspace, 20)

    assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=NOW) is not None


@pytest.mark.parametrize(
    ("state", "opens"), [("new", True), ("failed", True), ("pooled", False), ("settled", False), ("held", False)]
)
def test_the_schedule_opens_for_what_is_pending(workspace: Workspace, state: str, opens: bool) -> None:
    """B7: every four hours, where something waits."""
    fill(workspace, 1, state=state)

    assert len(open_due_cycles(now=NOW)) == int(opens)


def test_the_schedule_opens_one_cycle_a_workspace_and_none_twice(workspace: Workspace) -> None:
    """B7: two beats are harmless."""
    fill(workspace, 2)
    fill(factories.workspace(), 2)

    assert len(open_due_cycles(now=NOW)) == 2
    assert open_due_cycles(now=NOW) == []
    assert Cycle.objects.count() == 2


@pytest.mark.parametrize(("hours", "opens"), [(23, False), (25, True)])
def test_the_schedule_opens_daily_where_time_may_archive(workspace: Workspace, hours: int, opens: bool) -> None:
    """B7: a workspace without episodes still has its stale beliefs looked at."""
    factories.belief(workspace=workspace, archive_due_at=NOW)
    earlier, _ = open_cycle(workspace_id=workspace.pk, now=NOW, trigger=Trigger.SCHEDULE)
    Cycle.objects.filter(pk=earlier.pk).update(state="finished", finished_at=NOW)

    assert bool(open_due_cycles(now=NOW + timedelta(hours=hours))) == opens


@pytest.mark.parametrize("given", [{"is_pinned": True}, {"status": "archived"}])
def test_what_no_gate_would_archive_opens_nothing(workspace: Workspace, given: dict[str, object]) -> None:
    """B7, B14: a pinned or an archived belief is no reason for a cycle a day."""
    factories.belief(workspace=workspace, archive_due_at=NOW, **given)

    assert open_due_cycles(now=NOW + timedelta(days=1)) == []
