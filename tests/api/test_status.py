"""GET /status."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from memory import VERSION
from memory.access import Viewer
from memory.graph.linking import link_memories
from memory.llm.registry import fingerprint_models
from memory.models import Cycle, ModelCall, Project, RememberJob, Workspace, WorkspacePause
from memory.status import next_cycle_at, read_status
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.llm.tiny_pairs import make_classifier, make_reranker

pytestmark = pytest.mark.django_db


@pytest.fixture
def memories(workspace: Workspace) -> None:
    project = factories.project(workspace=workspace, slug="ours")
    for state in ("new", "failed", "pooled", "settled", "held", "held"):
        factories.episode(workspace=workspace, state=state)
    factories.episode(workspace=workspace, state="failed", dead_at=factories.NOW)
    factories.episode(workspace=workspace, status="archived")
    factories.episode(workspace=workspace, project=project)
    factories.belief(workspace=workspace)
    factories.belief(workspace=workspace, status="archived")
    factories.belief(workspace=workspace, project=project, scope="project")
    factories.episode(workspace=factories.workspace())


@pytest.mark.usefixtures("memories")
def test_memories_are_counted_by_status_and_state(reader: Caller) -> None:
    """B20: pending are new, leased and failed; pooled ones, held ones and dead letters stand beside."""
    status = reader.get("/status").json()
    assert status["episodes"] == {"active": 8, "archived": 1}
    assert status["beliefs"] == {"active": 2, "archived": 1}
    assert (status["pending_episodes"], status["pooled_episodes"], status["dead_letters"]) == (3, 1, 1)
    assert status["held_episodes"] == 2
    assert status["version"] == VERSION
    assert status["models"]["embeddings"] == "wordllama-l2-supercat-256"
    assert status["models"]["llm"].startswith("offline")
    assert status["models"]["offline"] is True
    assert status["models"]["verdicts"] == status["models"]["llm"]
    assert status["models"]["reranker"] == ""


def test_models_of_this_machine_are_named(settings: Settings, tmp_path: Path, reader: Caller) -> None:
    """B17, B11: the re-ranker, and who judges pairs; one that cannot be loaded says why."""
    settings.ENGRAM_RERANKER = str(make_reranker(tmp_path / "ranks", words=["tea"]))
    settings.ENGRAM_VERDICTS = "local"
    settings.ENGRAM_VERDICT_MODEL = str(make_classifier(tmp_path / "judges", words=["tea"]))
    models = reader.get("/status").json()["models"]
    assert models["reranker"].startswith("ranks@")
    assert models["verdicts"].startswith("judges@")
    assert models["llm"].startswith("offline")
    settings.ENGRAM_RERANKER = str(tmp_path / "gone")
    assert "gone is no folder" in reader.get("/status").json()["models"]["reranker"]


def test_budget_adds_up_the_calls_of_the_day(workspace: Workspace, reader: Caller) -> None:
    """B9, B20: recall's embeddings are counted apart."""
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=1000)
    for started_at in (timezone.now(), timezone.now() - timedelta(days=2)):
        ModelCall.objects.create(
            workspace=workspace, purpose="classify", model="m", input_hash="0" * 64, input_tokens=40,
            output_tokens=2, cost_usd="0.5", started_at=started_at,
        )  # fmt: skip
    ModelCall.objects.create(workspace=workspace, purpose="recall", model="m", input_hash="0" * 64, input_tokens=7)
    assert reader.get("/status").json()["budget"] == {
        "tokens_today": 42, "daily_token_cap": 1000, "cost_usd_today": 0.5, "daily_cost_cap_usd": None,
        "is_cap_reached": False, "recall_tokens_today": 7, "daily_recall_token_cap": 5_000_000,
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


def test_a_rest_is_named_with_its_reason_and_its_end(workspace: Workspace, reader: Caller) -> None:
    """B9: why no cycle starts, and when the next one does."""
    factories.episode(workspace=workspace)
    until = timezone.now() + timedelta(hours=9)
    WorkspacePause.objects.create(
        workspace=workspace, reason="auth", detail="no", failures=2, until=until, fingerprint=fingerprint_models()
    )
    status = reader.get("/status").json()
    assert {name: status["pause"][name] for name in ("reason", "detail", "failures")} == {
        "reason": "auth", "detail": "no", "failures": 2,
    }  # fmt: skip
    assert status["next_cycle_at"] == status["pause"]["until"] == until.isoformat().replace("+00:00", "Z")


def test_parameters_are_refused(reader: Caller) -> None:
    assert is_problem(reader.get("/status", project="ours"), 422)


def test_a_key_that_may_only_write_sees_no_status(writer: Caller) -> None:
    assert is_problem(writer.get("/status"), 403)


def test_turns_that_wait_are_counted(workspace: Workspace, reader: Caller) -> None:
    """B20, L2: by what they wait for; a key limited to projects counts those of its own."""
    ours = factories.project(workspace=workspace)
    factories.turn(workspace=workspace, session="s")
    factories.turn(workspace=workspace, session="s", state="leased", created_at=factories.NOW - timedelta(hours=1))
    factories.turn(workspace=workspace, session="s", state="failed", created_at=factories.NOW - timedelta(hours=2))
    factories.turn(workspace=workspace, session="s", state="extracted", created_at=factories.NOW - timedelta(hours=3))
    factories.turn(workspace=workspace, session="t", project=ours)
    factories.turn(workspace=factories.workspace())
    assert reader.get("/status").json()["turns"] == {
        "buffered": 2, "leased": 1, "dead": 1, "oldest_at": "2026-03-01T11:00:00Z",
    }  # fmt: skip
    limited = caller("read", workspace=workspace, projects=(ours,)).get("/status").json()
    assert limited["turns"] == {"buffered": 1, "leased": 0, "dead": 0, "oldest_at": "2026-03-01T12:00:00Z"}


def remembrance(workspace: Workspace, *, state: str, project: Project | None = None) -> RememberJob:
    """Store a text that was to be remembered at once."""
    told = factories.episode(workspace=workspace, project=project)
    return RememberJob.objects.create(
        workspace=workspace, episode=told, actor="someone", state=state, created_at=factories.NOW
    )


def test_texts_to_be_remembered_at_once_are_counted(workspace: Workspace, reader: Caller) -> None:
    """B20, R1: what was given up stands beside the dead letters; a limited key counts those of its projects."""
    ours = factories.project(workspace=workspace)
    for state in ("queued", "failed", "failed", "done"):
        remembrance(workspace, state=state)
    remembrance(workspace, state="failed", project=ours)
    remembrance(factories.workspace(), state="failed")
    assert reader.get("/status").json()["remembering"] == {"queued": 1, "failed": 3}
    limited = caller("read", workspace=workspace, projects=(ours,)).get("/status").json()
    assert limited["remembering"] == {"queued": 0, "failed": 1}


def test_what_links_memories_is_counted(workspace: Workspace, reader: Caller) -> None:
    """B20, L19: and what waits to be linked; a limited key sees none of it, for it is everybody's."""
    for text in ("Zoe rows.", "Zoe sails."):
        factories.episode(workspace=workspace, text=text, entities=["zoe"], session="s")
    factories.episode(workspace=factories.workspace())
    waiting = {"entities": 0, "edges": 0, "boxes": 0, "unlinked": 2}
    assert reader.get("/status").json()["graph"] == waiting
    link_memories(workspace_id=workspace.pk)
    graph = reader.get("/status").json()["graph"]
    assert (graph["entities"], graph["unlinked"], graph["edges"] > 0, graph["boxes"] > 0) == (1, 0, True, True)
    ours = factories.project(workspace=workspace)
    assert caller("read", workspace=workspace, projects=(ours,)).get("/status").json()["graph"] is None
