"""POST and GET /consolidations, GET /consolidations/{id}."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from memory.llm.registry import fingerprint_models
from memory.models import Cycle, CycleStep, ModelCall, Workspace, WorkspacePause
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def curator(workspace: Workspace) -> Caller:
    return caller("curate", workspace=workspace)


def finished_cycle(workspace: Workspace, **given: object) -> Cycle:
    return Cycle.objects.create(
        **{"workspace": workspace, "trigger": "person", "now": factories.NOW, "state": "finished", "finished_at": Now()}
        | given
    )


def test_a_cycle_is_opened_by_hand(workspace: Workspace, curator: Caller) -> None:
    """B7: 202 with the id, and a row that workers find."""
    response = curator.post("/consolidations")
    cycle = Cycle.objects.get(workspace=workspace)
    assert (response.status_code, response.json()) == (202, {"id": cycle.pk, "state": "queued"})
    assert cycle.trigger == "person"


def test_a_second_cycle_is_refused_with_the_running_ones_id(curator: Caller) -> None:
    """B7: one cycle queued or running per workspace."""
    running = curator.post("/consolidations").json()["id"]
    response = curator.post("/consolidations")
    assert is_problem(response, 409)
    assert response.json()["id"] == running
    assert Cycle.objects.count() == 1


def test_a_body_with_unknown_fields_is_refused(curator: Caller) -> None:
    response = curator.post("/consolidations", {"fast": True})
    assert is_problem(response, 422)
    assert not Cycle.objects.exists()


@pytest.mark.parametrize("permission", ["read", "write"])
def test_only_curators_start_cycles(workspace: Workspace, permission: str) -> None:
    assert is_problem(caller(permission, workspace=workspace).post("/consolidations"), 403)
    assert not Cycle.objects.exists()


def test_a_cycle_shows_steps_counts_and_costs(workspace: Workspace, reader: Caller) -> None:
    cycle = finished_cycle(workspace, counts={"created": 2, "reinforced": 5})
    CycleStep.objects.create(workspace=workspace, cycle=cycle, name="extract", counts={"episodes": 7})
    for tokens in (100, 250):
        ModelCall.objects.create(
            workspace=workspace, cycle=cycle, purpose="classify", model="m", input_hash="0" * 64, input_tokens=tokens,
            output_tokens=10, cost_usd="0.25", outcome="ok",
        )  # fmt: skip
    shown = reader.get(f"/consolidations/{cycle.pk}").json()
    assert (shown["id"], shown["state"], shown["calls"], shown["tokens"], shown["cost_usd"]) == (
        cycle.pk, "finished", 2, 370, 0.5,
    )  # fmt: skip
    assert (shown["counts"]["created"], shown["counts"]["reinforced"], shown["counts"]["archived"]) == (2, 5, 0)
    assert [(step["name"], step["counts"]) for step in shown["steps"]] == [("extract", {"episodes": 7})]
    assert shown["finished_at"] is not None


def test_cycles_are_listed_newest_first(workspace: Workspace, reader: Caller) -> None:
    old = finished_cycle(workspace, opened_at=factories.NOW)
    new = finished_cycle(workspace)
    page = reader.get("/consolidations", limit=1).json()
    assert [cycle["id"] for cycle in page["results"]] == [new.pk]
    assert [cycle["id"] for cycle in reader.get(page["next"]).json()["results"]] == [old.pk]


@pytest.mark.parametrize("cycle_id", ["cy_000000000000", "cy_1", "bl_000000000000"])
def test_a_missing_cycle_is_a_404(reader: Caller, cycle_id: str) -> None:
    assert is_problem(reader.get(f"/consolidations/{cycle_id}"), 404)


def test_another_workspaces_cycle_does_not_exist(workspace: Workspace, stranger: Caller) -> None:
    cycle = finished_cycle(workspace)
    assert is_problem(stranger.get(f"/consolidations/{cycle.pk}"), 404)
    assert stranger.get("/consolidations").json()["results"] == []


def test_a_key_limited_to_projects_gets_no_consolidations(workspace: Workspace) -> None:
    cycle = finished_cycle(workspace)
    limited = caller(workspace=workspace, projects=(factories.project(workspace=workspace),))
    for response in (
        limited.get("/consolidations"),
        limited.get(f"/consolidations/{cycle.pk}"),
        limited.post("/consolidations"),
    ):
        assert is_problem(response, 403)
    assert Cycle.objects.count() == 1


def test_a_cycle_is_cancelled(workspace: Workspace, curator: Caller) -> None:
    """B22: one that nobody has taken up ends at once, and says by whom."""
    started = curator.post("/consolidations").json()["id"]
    response = curator.post(f"/consolidations/{started}/cancel")
    cycle = Cycle.objects.get()
    assert (response.status_code, response.json()) == (202, {"id": started, "state": "cancelled"})
    assert cycle.cancelled_by.startswith("key engram_")
    assert cycle.finished_at is not None


def test_a_cycle_that_has_ended_cannot_be_cancelled(workspace: Workspace, curator: Caller) -> None:
    response = curator.post(f"/consolidations/{finished_cycle(workspace).pk}/cancel")
    assert is_problem(response, 409)
    assert "ended as finished" in response.json()["detail"]


def test_a_dry_run_answers_with_a_plan_and_starts_nothing(workspace: Workspace, curator: Caller) -> None:
    """B22."""
    lines = [{"text": "Mara deploys the shop on Tuesday morning.", "session": str(n)} for n in range(3)]
    caller("write", workspace=workspace).post("/episodes", {"episodes": lines})
    response = curator.post("/consolidations", {"dry_run": True})
    shown = response.json()
    assert response.status_code == 200
    assert (shown["dry_run"], shown["episodes"], shown["unembedded"], shown["archive_due"]) == (True, 3, 0, 0)
    assert [(job["kind"], job["belief"], len(job["episodes"])) for job in shown["jobs"]] == [("cluster", None, 3)]
    assert shown["estimate"] == {
        "calls": {"embed": 0, "read": 0, "synthesize": 1, "classify": 1}, "tokens": 0, "cost_usd": 0.0,
    }  # fmt: skip
    assert not Cycle.objects.exists()


@pytest.mark.parametrize("body", [{}, {"dry_run": True}])
def test_without_beliefs_no_cycle_starts(workspace: Workspace, curator: Caller, body: dict[str, bool]) -> None:
    """B22: switched off, a workspace recalls episodes only."""
    Workspace.objects.update(beliefs_enabled=False)
    response = curator.post("/consolidations", body)
    assert is_problem(response, 409)
    assert "episodes only" in response.json()["detail"]
    assert not Cycle.objects.exists()


def test_a_cycle_started_while_the_workspace_rests_says_so(workspace: Workspace, curator: Caller) -> None:
    """B9: by hand it starts all the same, with a note why it would not have started by itself."""
    WorkspacePause.objects.create(
        workspace=workspace, reason="failures", detail="server: no", failures=3,
        until=timezone.now() + timedelta(hours=1), fingerprint=fingerprint_models(),
    )  # fmt: skip
    started = curator.post("/consolidations", {})
    assert started.status_code == 202
    assert "server: no" in started.json()["note"]
