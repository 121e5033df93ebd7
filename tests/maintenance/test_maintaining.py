"""L8: when a workspace is maintained, in what order, and within what time."""

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from memory.graph.linking import link_memories
from memory.maintenance.maintain import (
    STEPS,
    MaintenanceRun,
    count_extraction,
    find_due_workspaces,
    maintain_due,
    maintain_workspace,
)
from memory.models import BoxMember, Edge, MaintenanceState, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def due(*, days: float = 0) -> list[int]:
    return find_due_workspaces(now=factories.NOW + timedelta(days=days), policy=settings.POLICY)


def test_a_workspace_is_due_after_three_extractions(workspace: Workspace) -> None:
    """L8: and not again until three more."""
    maintain_workspace(workspace_id=workspace.pk, now=factories.NOW)
    factories.workspace()
    seen = []
    for _ in range(3):
        count_extraction(workspace_id=workspace.pk)
        seen.append(due())
    assert seen == [[], [], [workspace.pk]]
    assert maintain_due(now=factories.NOW, policy=settings.POLICY) == 1
    assert (due(), MaintenanceState.objects.get(workspace=workspace).extractions) == ([], 0)


def test_a_workspace_with_something_due_is_maintained_once_a_day(workspace: Workspace) -> None:
    maintain_workspace(workspace_id=workspace.pk, now=factories.NOW)
    count_extraction(workspace_id=workspace.pk)
    assert (due(days=0.9), due(days=1.1)) == ([], [workspace.pk])


def test_edges_that_are_to_fade_make_a_workspace_due(workspace: Workspace) -> None:
    """L19: decay needs no extraction."""
    for _ in range(2):
        factories.episode(workspace=workspace, entities=["zoe"])
    maintain_workspace(workspace_id=workspace.pk, now=factories.NOW + timedelta(hours=1))
    assert (due(days=179), due(days=181)) == ([], [workspace.pk])
    maintain_due(now=factories.NOW + timedelta(days=181), policy=settings.POLICY)
    assert (Edge.objects.get().confidence, due(days=183)) == (0.6, [])


def test_an_extraction_in_the_meantime_counts_for_the_next_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_extraction(workspace_id=workspace.pk)
    monkeypatch.setattr(
        "memory.maintenance.maintain.STEPS",
        {"links": lambda visit: count_extraction(workspace_id=visit.workspace_id)},
    )
    maintain_workspace(workspace_id=workspace.pk, now=factories.NOW)
    assert MaintenanceState.objects.get().extractions == 1


def test_what_there_is_no_time_for_is_done_next_time(workspace: Workspace) -> None:
    """L8: and said."""
    factories.episode(workspace=workspace)
    policy = replace(settings.POLICY, maintenance=replace(settings.POLICY.maintenance, seconds=1e-9))
    assert {one.changed for one in maintain_workspace(workspace_id=workspace.pk, now=factories.NOW, policy=policy)} == {
        None
    }
    done = maintain_workspace(workspace_id=workspace.pk, now=factories.NOW)
    assert [(one.step, one.changed) for one in done] == [
        ("links", 1), ("entities", 0), ("notes", 0), ("edges", 0), ("boxes", 0)
    ]  # fmt: skip


def test_maintaining_again_changes_nothing(workspace: Workspace) -> None:
    for _ in range(3):
        factories.episode(workspace=workspace, entities=["zoe", "Zoë"])
    link_memories(workspace_id=workspace.pk)
    later = factories.NOW + timedelta(days=400)
    first = maintain_workspace(workspace_id=workspace.pk, now=later)
    again = maintain_workspace(workspace_id=workspace.pk, now=later)
    assert sum(one.changed or 0 for one in first) > 0
    assert {one.changed for one in again} == {0}
    assert BoxMember.objects.count() == 3


def test_the_command_says_what_was_done(workspace: Workspace) -> None:
    """L8: `maintain_memory --workspace W [--json]`."""
    factories.episode(workspace=workspace)
    told, counted = StringIO(), StringIO()
    call_command("maintain_memory", "--workspace", workspace.name, stdout=told)
    call_command("maintain_memory", "--workspace", workspace.name, "--json", stdout=counted)
    assert "links: 1 changed" in told.getvalue()
    assert {step["step"]: step["changed"] for step in json.loads(counted.getvalue())["steps"]}["links"] == 0
    with pytest.raises(CommandError):
        call_command("maintain_memory", "--workspace", "nowhere")


@pytest.mark.parametrize(
    "error", [ValueError("99:99"), KeyError("x"), OSError("no such file"), DatabaseError("no such row")]
)
def test_an_error_in_one_workspace_ends_no_other_ones_maintenance(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """E6 (15): what comes after it in the round is maintained, and it is tried again the next time."""
    after = factories.workspace()
    for one in (workspace, after):
        for _ in range(3):
            count_extraction(workspace_id=one.pk)
    real = STEPS["links"]

    def break_for_the_first(visit: MaintenanceRun) -> int:
        if visit.workspace_id == workspace.pk:
            raise error
        return real(visit)

    monkeypatch.setitem(STEPS, "links", break_for_the_first)
    assert maintain_due(now=factories.NOW, policy=settings.POLICY) == 1
    assert due() == [workspace.pk]


def test_a_task_whose_time_is_up_ends_its_round(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6 (15): that is no workspace's error, and nobody outlives it."""
    count_extraction(workspace_id=workspace.pk)
    monkeypatch.setitem(STEPS, "links", raise_time_is_up)
    with pytest.raises(SoftTimeLimitExceeded):
        maintain_due(now=factories.NOW, policy=settings.POLICY)


def raise_time_is_up(_: MaintenanceRun) -> int:
    raise SoftTimeLimitExceeded
