"""GET /status."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from memory.access.visibility import Viewer
from memory.models import Cycle, ModelCall, Workspace
from memory.status import next_cycle_at, read_status
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def memories(workspace: Workspace) -> None:
    project = factories.project(workspace=workspace, slug="ours")
    for state in ("new", "failed", "pooled", "settled"):
        factories.episode(workspace=workspace, state=state)
    factories.episode(workspace=workspace, status="archived")
    factories.episode(workspace=workspace, project=project)
    factories.belief(workspace=workspace)
    factories.belief(workspace=workspace, status="archived")
    factories.belief(workspace=workspace, project=project, scope="project")
    factories.episode(workspace=factories.workspace())


@pytest.mark.usefixtures("memories")
def test_memories_are_counted_by_status_and_state(reader: Caller) -> None:
    """B20: pending are new, leased and failed; pooled stands beside."""
    status = reader.get("/status").json()
    assert status["episodes"] == {"active": 5, "archived": 1}
    assert status["beliefs"] == {"active": 2, "archived": 1}
    assert (status["pending_episodes"], status["pooled_episodes"], status["dead_letters"]) == (3, 1, 1)
    assert status["models"]["embeddings"] == "wordllama-l2-supercat-256"
    assert status["models"]["llm"].startswith("offline")
    assert status["models"]["offline"] is True


def test_budget_adds_up_the_calls_of_the_day(workspace: Workspace, reader: Caller) -> None:
    """B9, B20."""
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=1000)
    for started_at in (timezone.now(), timezone.now() - timedelta(days=2)):
        ModelCall.objects.create(
            workspace=workspace, purpose="classify", model="m", input_hash="0" * 64, input_tokens=40,
            output_tokens=2, cost_usd="0.5", started_at=started_at,
        )  # fmt: skip
    assert reader.get("/status").json()["budget"] == {
        "tokens_today": 42, "daily_token_cap": 1000, "cost_usd_today": 0.5, "daily_cost_cap_usd": None,
    }  # fmt: skip


@pytest.mark.usefixtures("memories")
def test_a_limited_key_counts_its_own_projects_only(workspace: Workspace) -> None:
    Cycle.objects.create(workspace=workspace, trigger="person", now=factories.NOW)
    status = caller("read", workspace=workspace, projects=(workspace.projects.get(),)).get("/status").json()
    assert (status["episodes"], status["beliefs"], status["pending_episodes"]) == ({"active": 1}, {"active": 1}, 1)
    assert (status["last_cycle"], status["budget"], status["next_cycle_at"]) == (None, None, None)


def test_the_last_cycle_is_named(workspace: Workspace, reader: Caller) -> None:
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=factories.NOW)
    assert reader.get("/status").json()["last_cycle"] == {
        "id": cycle.pk, "state": "queued", "started_at": None, "finished_at": None,
    }  # fmt: skip


def due(workspace: Workspace, now: datetime) -> datetime | None:
    return read_status(viewer=Viewer(workspace=workspace), now=now).next_cycle_at


def test_the_next_cycle_comes_four_hours_after_the_last(workspace: Workspace) -> None:
    """B7: every 4 hours per workspace with pending episodes; at once where that has passed."""
    opened = factories.NOW
    Cycle.objects.create(
        workspace=workspace, trigger="person", now=opened, opened_at=opened, state="finished", finished_at=opened
    )
    assert due(workspace, opened) is None
    factories.episode(workspace=workspace)
    assert due(workspace, opened + timedelta(hours=1)) == opened + timedelta(hours=4)
    assert due(workspace, opened + timedelta(hours=9)) == opened + timedelta(hours=9)


def test_a_replay_holds_the_next_cycle_back(workspace: Workspace) -> None:
    factories.episode(workspace=workspace)
    workspace.next_cycle_held_until = factories.NOW + timedelta(minutes=5)
    assert next_cycle_at(workspace=workspace, last=None, now=factories.NOW) == workspace.next_cycle_held_until


def test_parameters_are_refused(reader: Caller) -> None:
    assert is_problem(reader.get("/status", project="ours"), 422)


def test_a_key_that_may_only_write_sees_no_status(writer: Caller) -> None:
    assert is_problem(writer.get("/status"), 403)
