"""B22: a workspace that keeps no beliefs recalls episodes, and no cycle is opened for it."""

from io import BytesIO

import pytest

from memory.consolidation.cycle import BeliefsAreOff, note_new_episodes, open_cycle
from memory.consolidation.schedule import open_due_cycles
from memory.ingest.arrival import Arrival
from memory.ingest.files import ImportReport, read_file
from memory.ingest.replay import replay_lines
from memory.models import Cycle, Episode, Trigger, Workspace
from memory.status import next_cycle_at
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    """Return a workspace without beliefs in which 25 episodes wait."""
    workspace = factories.workspace(is_believing=False)
    for _ in range(25):
        factories.episode(workspace=workspace)
    return workspace


def test_no_cycle_is_opened_by_hand(workspace: Workspace) -> None:
    with pytest.raises(BeliefsAreOff, match="episodes only"):
        open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    assert not Cycle.objects.exists()


def test_neither_episodes_nor_the_schedule_open_one(workspace: Workspace) -> None:
    assert note_new_episodes(workspace_id=workspace.pk, now=factories.NOW) is None
    assert open_due_cycles(now=factories.NOW) == []


def test_the_status_foresees_none(workspace: Workspace) -> None:
    """B20."""
    assert next_cycle_at(workspace=workspace, last=None, now=factories.NOW) is None


def test_a_replay_stores_its_history_without_cycles() -> None:
    workspace = factories.workspace(is_believing=False)
    report = ImportReport()
    arrival = Arrival(workspace=workspace, now=factories.NOW)
    line = b'{"text": "The mill stands.", "occurred_at": "2026-01-01T00:00:00Z"}'
    lines = list(read_file(stream=BytesIO(line), arrival=arrival))
    replay_lines(lines=lines, arrival=arrival, report=report, on_batch=lambda _: None)
    assert (Episode.objects.count(), report.cycles) == (1, [])
