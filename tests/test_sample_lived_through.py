"""The sample history, lived through in process: what comes of it hangs on its matters, not on its wording of names."""

import io
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memory
from memory.ingest.json_lines import ImportReport, read_file, replay_lines
from memory.ingest.schemas import IngestContext
from memory.ledger.confidence import find_drift
from memory.models import Belief, Episode, Lineage, Workspace
from tests import factories
from tests.consolidation.inline import run_to_end

HISTORY = Path(memory.__file__).with_name("samples") / "history.jsonl"

NAMES = {
    "Mia": "Ronja",
    "mia": "ronja",
    "Otis": "Bruno",
    "Kolja": "Henrik",
    "Hollmann": "Petersen",
    "Norddeich": "Cuxhaven",
    "Tidewatch": "Floodgate",
    "tidewatch": "floodgate",
    "brotzeit": "backhaus",
    "Brotzeit": "Backhaus",
}


@pytest.fixture(autouse=True)
def cycles_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each cycle's steps where the replay would wait for workers."""
    monkeypatch.setattr("memory.ingest.json_lines.wait_for_cycle", run_to_end)


def read_history() -> list[dict[str, Any]]:
    return [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]


def live_through(lines: list[dict[str, Any]], *, workspace: Workspace | None = None) -> Workspace:
    """Replay lines into a workspace, by default one of their own."""
    workspace = workspace or factories.workspace()
    arrival = IngestContext(workspace=workspace, now=factories.NOW.replace(year=2027), file_name="history.jsonl")
    stream = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
    report = ImportReport()
    replay_lines(
        lines=list(read_file(stream=stream, arrival=arrival)), arrival=arrival, report=report, on_batch=lambda _: None
    )
    assert not report.rejected
    assert len(report.cycles) <= 25
    return workspace


@cache
def count_told() -> int:
    """Count the beliefs that come of the history as it is; each life of it takes many seconds."""
    return Belief.objects.for_workspace(live_through(read_history())).count()


def rename(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every person, place and project another name, every session another id, everywhere."""
    text = json.dumps(lines, ensure_ascii=False)
    for old, new in NAMES.items():
        text = re.sub(rf"\b{old}\b", new, text)
    renamed: list[dict[str, Any]] = json.loads(text)
    for line in renamed:
        if "session" in line:
            line["session"] = f"s-{line['session'][::-1]}"
    return renamed


def shuffle_days(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Deal the times of each day out among its lines anew."""
    drawn = random.Random(11)
    days: dict[object, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        days[datetime.fromisoformat(line["occurred_at"]).date()].append(line)
    for day in days.values():
        times = [line["occurred_at"] for line in day]
        drawn.shuffle(times)
        for line, time in zip(day, times, strict=True):
            line["occurred_at"] = time
    return lines


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_sample_becomes_sensible_beliefs() -> None:
    """At least eight beliefs, two of them contradicted, some in the place of others, and none adrift."""
    workspace = live_through(read_history())
    beliefs = Belief.objects.for_workspace(workspace)

    assert beliefs.active().count() >= 8
    assert beliefs.filter(evidence__verdict="CONTRADICTS").distinct().count() >= 2
    ends = Lineage.objects.filter(kind__in=["revision", "supersession"], parent__in=beliefs)
    successors = beliefs.filter(pk__in=ends.values("child"))
    assert successors.active().exists()
    assert find_drift(workspace=workspace)[1] == []
    assert set(Episode.objects.for_workspace(workspace).values_list("state", flat=True)) == {"settled", "pooled"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [rename, shuffle_days])
def test_names_ids_and_the_order_within_a_day_do_not_matter(
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
) -> None:
    """The same number of beliefs comes of it, give or take a fifth."""
    told = count_told()
    retold = Belief.objects.for_workspace(live_through(change(read_history()))).count()

    assert abs(told - retold) <= told / 5
