"""Living through a history."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from memory.ingest import json_lines
from memory.ingest.json_lines import ImportReport, plan_replay, read_file, replay_lines
from memory.ingest.schemas import IngestContext
from memory.models import Cycle, Episode, Workspace
from tests import factories
from tests.consolidation.inline import run_steps, run_to_end
from tests.ingest.history import write_history

START = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
histories = st.lists(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=20)), max_size=200).map(
    lambda pauses: [START + sum(pauses[: n + 1], timedelta(0)) for n in range(len(pauses))]
)


def plan(times: list[datetime]) -> list[range]:
    return plan_replay(times=times, every=20, gap=WEEK)


def test_cycle_after_every_twenty_and_at_the_end() -> None:
    """Clock: after every 20 episodes and at the end."""
    times = [START + timedelta(hours=n) for n in range(45)]
    assert plan(times) == [range(20), range(20, 40), range(40, 45)]
    assert plan(times[:40]) == [range(20), range(20, 40)]
    assert plan([]) == []


def test_cycle_at_each_gap_over_a_week() -> None:
    """Clock: a pause of a week is none, a longer one is; counting begins anew behind it."""
    times = [START, START + WEEK, START + 2 * WEEK + timedelta(seconds=1)]
    assert plan(times) == [range(2), range(2, 3)]


@given(histories)
def test_plan_covers_the_history_in_order(times: list[datetime]) -> None:
    """Clock: every episode in one batch, none with a long pause inside, none too long."""
    batches = plan(times)
    assert [index for batch in batches for index in batch] == list(range(len(times)))
    assert all(0 < len(batch) <= 20 for batch in batches)
    assert all(times[index] - times[index - 1] <= WEEK for batch in batches for index in batch[1:])


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture(autouse=True)
def _steps_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a cycle's steps in this process instead of waiting for a worker."""
    monkeypatch.setattr(json_lines, "wait_for_cycle", run_to_end)


def live_through(file: Path, *, workspace: Workspace) -> ImportReport:
    report = ImportReport()
    arrival = IngestContext(workspace=workspace, now=timezone.now(), file_name=file.name)
    with file.open("rb") as stream:
        lines = list(read_file(stream=stream, arrival=arrival))
    replay_lines(lines=lines, arrival=arrival, report=report, on_batch=lambda _: None)
    return report


def test_history_is_stored_at_its_own_times(workspace: Workspace, tmp_path: Path) -> None:
    """Clock: stored at occurred time, in order of time, with a cycle after each batch."""
    file = write_history(tmp_path, count=25, shuffled=True)
    report = live_through(file, workspace=workspace)
    assert (report.stored, len(report.cycles)) == (25, 2)
    assert all(created == happened for created, happened in Episode.objects.values_list("created_at", "occurred_at"))
    ends = sorted(Episode.objects.values_list("occurred_at", flat=True))
    assert list(Cycle.objects.order_by("now").values_list("now", "trigger")) == [
        (ends[19], "replay"), (ends[24], "replay"),
    ]  # fmt: skip
    assert not Episode.objects.pending().exists()


def test_replaying_again_runs_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """Idempotent: nothing new, no cycle."""
    file = write_history(tmp_path, count=25)
    live_through(file, workspace=workspace)
    report = live_through(file, workspace=workspace)
    assert (report.stored, report.deduplicated, report.cycles) == (0, 25, [])


def test_broken_off_replay_goes_on_where_it_stopped(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumable: the hold is taken back, and the next replay finishes the open cycle first."""

    def fail(_: str, **__: object) -> None:
        raise KeyboardInterrupt

    file = write_history(tmp_path, count=25)
    with monkeypatch.context() as patch:
        patch.setattr(json_lines, "wait_for_cycle", fail)
        with pytest.raises(KeyboardInterrupt):
            live_through(file, workspace=workspace)
    workspace.refresh_from_db()
    assert workspace.next_cycle_held_until is None
    report = live_through(file, workspace=workspace)
    assert (report.stored, report.deduplicated) == (5, 20)
    assert not Cycle.objects.open().exists()
    assert not Episode.objects.pending().exists()


def test_other_wake_ups_are_off_meanwhile(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clock: other wake-ups off while the replay runs, and on again behind it."""
    seen: list[Any] = []

    def look(cycle_id: str, **_: object) -> None:
        workspace.refresh_from_db()
        seen.append(workspace.next_cycle_held_until)
        run_steps(cycle=Cycle.objects.get(pk=cycle_id))

    monkeypatch.setattr(json_lines, "wait_for_cycle", look)
    live_through(write_history(tmp_path, count=5), workspace=workspace)
    workspace.refresh_from_db()
    assert [until > timezone.now() for until in seen] == [True]
    assert workspace.next_cycle_held_until is None
