"""The benchmark of importing: each way brings in the same episodes, and it would show if one did not."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import bulk
from benchmarks.bulk import Sample, make_sample, measure, new_workspace, ready_copy, ready_export
from benchmarks.memories import draw
from memory.models import Episode

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = 40


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(drawn=draw(count=COUNT), folder=tmp_path)


def told(sample: Sample, ready: Any) -> list[tuple[object, ...]]:
    """Bring the sample in, and return what the rows say."""
    workspace = new_workspace(name=ready.__name__)
    ready(sample=sample, workspace=workspace, series=7)()
    rows = Episode.objects.for_workspace(workspace).order_by("number")
    return list(rows.values_list("text", "speaker", "session", "origin", "content_hash", "occurred_at", "state"))


def test_a_copy_and_the_file_of_a_workspace_bring_in_the_same_rows(sample: Sample) -> None:
    copied = told(sample, ready_copy)
    Episode.objects.filter(pk__startswith="ep_0007").delete()

    assert len(copied) == COUNT
    assert told(sample, ready_export) == copied


def test_every_way_brings_in_all_of_it_in_each_round(sample: Sample) -> None:
    *rates, missing = measure(sample=sample, rounds=2)

    assert all(0 < rate.value < 10 for rate in rates)
    assert missing.value == 0
    assert Episode.objects.count() == COUNT * (1 + 2 * 3)


def test_episodes_that_do_not_come_in_show(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "ready_copy", lambda **_: lambda: None)

    *_, missing = measure(sample=sample, rounds=2)

    assert (missing.value, missing.is_met) == (2 * COUNT, False)
