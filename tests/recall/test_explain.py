"""X-ray: a recall explains its answer, and what fell short of it."""

import numpy as np
import pytest

from memory.models import BeliefAccess, EpisodeAccess, Workspace
from memory.recall.query import BELOW_THE_LAST, FITS_NO_BETTER
from tests import factories
from tests.recall.memories import ask, believed, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def test_an_episode_tells_each_channels_rank_and_every_component(workspace: Workspace) -> None:
    """B17: the fused score follows from the numbers that are told."""
    remembered("The kettle in the kitchen leaks.", workspace=workspace)
    remembered("Rain is expected.", workspace=workspace)
    wanted = remembered("Parrots talk in the morning.", workspace=workspace)
    results = ask("do parrots talk", workspace=workspace, is_explained=True).results
    first = results[0]
    assert first.id == wanted.pk
    assert first.explain is not None
    assert (first.explain.channels["text"].rank, first.explain.channels["vector"].rank) == (1, 1)
    parts = {name: value or 0.0 for name, value in first.explain.components.items()}
    weight, by_vector, by_text = parts["text_weight"], parts["standard_vector"], parts["standard_text"]
    assert weight == pytest.approx(0.7)
    fused = (1 - weight) * by_vector + weight * by_text
    others = [memory.explain.components for memory in results[1:] if memory.explain]
    sums = [
        fused,
        *((1 - weight) * (each["standard_vector"] or 0) + weight * (each["standard_text"] or 0) for each in others),
    ]
    assert parts["session"] == 0.0
    assert parts["standard_sum"] == pytest.approx((fused - np.mean(sums)) / np.std(sums))
    assert first.score == pytest.approx(1 / (1 + 2.718281828 ** (-0.4 * (parts["standard_sum"] - 5))))


def test_a_beliefs_parts_add_up_to_its_score(workspace: Workspace) -> None:
    """B17."""
    believed("Mara prefers tea.", workspace=workspace)
    [result] = ask("does Mara prefer tea", workspace=workspace, is_explained=True).results
    assert result.explain is not None
    parts = {name: value or 0.0 for name, value in result.explain.components.items()}
    whole = parts["by_likeness"] + parts["by_strength"] + parts["by_text"]
    assert result.score == pytest.approx(parts["blend"] * whole)


def test_near_misses_say_why_they_fell_short(workspace: Workspace) -> None:
    """B17: the next best, and a belief that is about something else."""
    for number in range(4):
        remembered(f"Mara planted {number} apple trees behind the barn.", workspace=workspace)
    strange = believed("Otto plays chess.", workspace=workspace, alpha=60.0)
    recalled = ask("apple trees behind the barn", workspace=workspace, limit=2, is_explained=True)
    reasons = {missed.memory.id: missed.reason for missed in recalled.near_misses}
    assert reasons.pop(strange.pk) == FITS_NO_BETTER
    assert list(reasons.values()) == [BELOW_THE_LAST] * 2
    assert not reasons.keys() & {result.id for result in recalled.results}


def test_what_is_only_looked_at_is_not_counted_as_accessed(workspace: Workspace) -> None:
    """B16, B17: looking at the X-ray is no access."""
    remembered("Mara likes tea.", workspace=workspace)
    believed("Mara prefers tea.", workspace=workspace)
    assert len(ask("tea", workspace=workspace, is_explained=True).results) == 2
    assert not EpisodeAccess.objects.filter(access_count__gt=0).exists()
    assert not BeliefAccess.objects.filter(access_count__gt=0).exists()


def test_without_being_asked_a_recall_explains_nothing(workspace: Workspace) -> None:
    remembered("Mara likes tea.", workspace=workspace)
    recalled = ask("tea", workspace=workspace, limit=1)
    assert (recalled.results[0].explain, recalled.near_misses) == (None, ())
