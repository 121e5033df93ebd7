"""B22: a workspace that keeps no beliefs, or an installation, recalls episodes, and no cycle is opened for it."""

from io import BytesIO

import pytest
from pytest_django import Settings

from memory.access import Viewer
from memory.consolidation.cycle import BeliefsDisabled, claim_attempt, open_cycle, renew_cycle
from memory.consolidation.schedule import (
    open_backlog_cycles,
    open_cycle_for_new_episodes,
    open_cycles_after_pause,
    open_due_cycles,
    open_missed_cycles,
    open_overdue_cycles,
    sweep,
)
from memory.facts.remember import remember
from memory.ingest.json_lines import ImportReport, read_file, replay_lines
from memory.ingest.schemas import IngestContext
from memory.models import Cycle, Episode, RememberJob, Trigger, Workspace, WorkspacePause
from memory.recall.prompt_lines import recollect
from memory.recall.query import MemoryType, RecallQuery, RecallScope
from memory.recall.recall import recall
from memory.status import next_cycle_at, read_status
from tests import factories
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["workspace", "installation"])
def off(request: pytest.FixtureRequest, settings: Settings) -> dict[str, bool]:
    """Switch beliefs off: return what a workspace has chosen, or have the installation choose for all."""
    if request.param == "workspace":
        return {"beliefs_enabled": False}
    settings.ENGRAM_BELIEFS = False
    return {"beliefs_enabled": True}


@pytest.fixture
def workspace(off: dict[str, bool]) -> Workspace:
    """Return a workspace without beliefs in which 25 episodes wait."""
    workspace = factories.workspace(**off)
    for _ in range(25):
        factories.episode(workspace=workspace)
    return workspace


def test_no_cycle_is_opened_by_hand(workspace: Workspace) -> None:
    with pytest.raises(BeliefsDisabled, match="episodes only"):
        open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    assert not Cycle.objects.exists()


def test_neither_episodes_nor_the_schedule_open_one(workspace: Workspace) -> None:
    assert open_cycle_for_new_episodes(workspace_id=workspace.pk, now=factories.NOW) is None
    assert open_due_cycles(now=factories.NOW) == []
    assert open_overdue_cycles(now=factories.NOW) == []
    assert open_missed_cycles(now=factories.NOW) == []
    WorkspacePause.objects.create(
        workspace=workspace, reason="failures", since=factories.NOW, until=factories.NOW, failures=1, fingerprint=""
    )
    assert open_cycles_after_pause(now=factories.NOW) == []


def test_no_backlog_is_gone_on_with(workspace: Workspace) -> None:
    Cycle.objects.create(
        workspace=workspace, now=factories.NOW, trigger="person", state="finished", finished_at=factories.NOW,
        has_backlog=True,
    )  # fmt: skip
    assert open_backlog_cycles(now=factories.NOW) == []


def test_the_status_foresees_none(workspace: Workspace) -> None:
    """B20."""
    assert next_cycle_at(workspace=workspace, last=None, now=factories.NOW) is None


def test_the_status_says_so(workspace: Workspace) -> None:
    """B20."""
    assert read_status(viewer=Viewer(workspace=workspace), now=factories.NOW).beliefs_enabled is False


def test_recall_and_recollections_have_episodes_alone(workspace: Workspace) -> None:
    episode = remembered("Mara likes tea.", workspace=workspace, occurred_at=factories.NOW)
    believed("Mara prefers tea.", workspace=workspace)
    scope = RecallScope(viewer=Viewer(workspace=workspace))
    answer = recall(scope=scope, question=RecallQuery(query="Mara tea", limit=5), now=factories.NOW)
    assert {result.type for result in answer.results} == {MemoryType.EPISODE}
    assert episode.pk in {result.id for result in answer.results}
    flashes = recollect(scope=scope, query="Mara tea", now=factories.NOW)
    assert "[Belief" not in flashes.text


def test_what_is_remembered_is_stored_and_no_more(workspace: Workspace) -> None:
    """R1."""
    arrival = IngestContext(workspace=workspace, now=factories.NOW)
    told = remember(line={"text": "Mara prefers tabs over spaces."}, arrival=arrival)
    assert (getattr(told, "state", None), RememberJob.objects.count()) == ("done", 0)
    assert Episode.objects.filter(text="Mara prefers tabs over spaces.").exists()


def test_a_cycle_that_was_open_is_cancelled(settings: Settings) -> None:
    """B22: whoever is sent a step of it does nothing, and the sweeper gives its episodes back."""
    workspace = factories.workspace()
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    assert claim_attempt(cycle_id=cycle.pk, attempt=1)
    episode = factories.episode(workspace=workspace, state="leased", leased_by=cycle)
    settings.ENGRAM_BELIEFS = False
    assert not claim_attempt(cycle_id=cycle.pk, attempt=1)
    assert not renew_cycle(cycle_id=cycle.pk, attempt=1)
    Cycle.objects.update(leased_until=factories.NOW)
    sweep()
    cycle.refresh_from_db()
    episode.refresh_from_db()
    assert (cycle.state, cycle.state_reason, episode.state) == ("cancelled", "beliefs are off", "new")


def test_a_replay_stores_its_history_without_cycles(off: dict[str, bool]) -> None:
    workspace = factories.workspace(**off)
    report = ImportReport()
    arrival = IngestContext(workspace=workspace, now=factories.NOW)
    line = b'{"text": "The mill stands.", "occurred_at": "2026-01-01T00:00:00Z"}'
    lines = list(read_file(stream=BytesIO(line), arrival=arrival))
    replay_lines(lines=lines, arrival=arrival, report=report, on_batch=lambda _: None)
    assert (Episode.objects.count(), report.cycles) == (1, [])
