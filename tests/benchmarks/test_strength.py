"""The benchmark of what a recall notes: every row is changed, and it would show if one was not, or not in place."""

from functools import partial

import pytest
from django.db.models import F

from benchmarks import strength
from benchmarks.memories import draw
from benchmarks.recall_stage import fill
from benchmarks.strength import Memories, count_all, count_often, counted, hot_share, measure_mix
from memory.models import EpisodeAccess, Workspace
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Memories:
    monkeypatch.setattr(strength, "WARM", 1)
    fill(name="strength", drawn=draw(count=500))
    return count_all()


def test_every_memory_is_counted_once_to_begin_with(stored: Memories) -> None:
    assert (len(stored.episodes), len(stored.beliefs), counted()) == (500, 10, 510)


@pytest.mark.parametrize("mix", [(0, 10), (10, 0), (5, 5)], ids=["beliefs", "episodes", "both"])
def test_counting_and_updating_change_as_many_rows(stored: Memories, mix: tuple[int, int]) -> None:
    ratio, missing = measure_mix(name="", mix=mix, stored=stored, rounds=2)

    assert ratio.value > 0
    assert (missing.value, counted()) == (0, 510 + 3 * 2 * 10)


def test_rows_that_are_not_counted_show(stored: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.recall.usage._COUNT_ACCESS", "SELECT 1/0")

    _, missing = measure_mix(name="", mix=(5, 5), stored=stored, rounds=2)

    assert (missing.value, missing.is_met) == (30, False)


def test_counts_rewrite_rows_in_place(stored: Memories) -> None:
    assert hot_share(name="", work=partial(count_often, stored=stored, rounds=5)).is_met


def test_rows_that_are_not_rewritten_in_place_show(stored: Memories) -> None:
    """An index of what changes is written anew."""
    other: Workspace = factories.workspace()

    share = hot_share(
        name="", work=lambda: EpisodeAccess.objects.update(workspace=other, access_count=F("access_count"))
    )

    assert (share.value, share.is_met) == (0.0, False)
