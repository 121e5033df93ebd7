"""The associative profile: both kinds of memory by one formula."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.models import BeliefAccess, Workspace
from memory.recall.query import TOO_UNLIKE, Recalled, RecallProfile
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def associate(query: str, workspace: Workspace, **asked: Any) -> Recalled:
    return ask(query, workspace=workspace, profile=RecallProfile.ASSOCIATIVE, **asked)


def test_a_belief_scores_by_the_formula(workspace: Workspace) -> None:
    """R5: likeness 1, importance 8 of 10, 30 days unread, stability 1, its subject named."""
    believed(
        "Mara prefers tea.", workspace=workspace, subject="Mara", importance=8, created_at=NOW - timedelta(days=30)
    )
    [result] = associate("Mara prefers tea.", workspace, is_explained=True).results
    assert result.score == pytest.approx(0.5 + 0.2 * 0.8 + 0.1 * 0.5016 + 0.05 / 5 + 0.15, abs=1e-3)
    assert result.explain is not None
    parts = {name: value for name, value in result.explain.components.items() if name.startswith("by_")}
    assert sum(value or 0.0 for value in parts.values()) == pytest.approx(result.score)
    assert set(parts) == {"by_likeness", "by_importance", "by_recency", "by_stability", "by_subject"}


def test_an_episode_scores_by_the_same_formula(workspace: Workspace) -> None:
    """R5: its importance is a share, its speaker a subject."""
    remembered("Tea is ready.", workspace=workspace, importance=0.9, speaker="Mara", entities=["kettle"])
    plain = associate("Tea is ready.", workspace).results[0].score
    named = [associate(f"Tea is ready. {name}", workspace, is_explained=True).results[0] for name in ("Mara", "kettle")]
    assert plain == pytest.approx(0.5 + 0.2 * 0.9 + 0.1 + 0.05 / 5, abs=1e-3)
    assert [result.explain and result.explain.components["by_subject"] for result in named] == [0.15, 0.15]


def test_a_subject_that_is_named_lifts_what_is_known_of_it(workspace: Workspace) -> None:
    """R6."""
    for name in ("Otis", "Mara"):
        believed(f"{name} prefers tea.", workspace=workspace, subject=name, embedded_as="somebody prefers tea")
    for name in ("Otis", "Mara"):
        best = associate(f"{name} prefers tea?", workspace).results[0]
        assert best.text == f"{name} prefers tea."


def test_what_was_recalled_lately_comes_before_what_was_not(workspace: Workspace) -> None:
    """R6."""
    for number in range(2):
        belief = believed(f"Tea {number} is good.", workspace=workspace, embedded_as="tea is good")
        BeliefAccess.objects.create(belief=belief, workspace=workspace, accessed_at=NOW + timedelta(days=10 * number))
    best = associate("tea is good", workspace, now=NOW + timedelta(days=30)).results[0]
    assert best.text == "Tea 1 is good."


def test_insights_stand_back(workspace: Workspace) -> None:
    """R5."""
    believed("Tea calms.", workspace=workspace, fact_type="insight", embedded_as="tea is good")
    believed("Tea warms.", workspace=workspace, embedded_as="tea is good")
    first, second = associate("tea is good", workspace).results
    assert second.text == "Tea calms."
    assert second.score == pytest.approx(first.score / 2)


def test_what_is_unlike_the_query_is_left_out(workspace: Workspace) -> None:
    """R5: similarity of at least 0.20, however important it is; the X-ray says so."""
    wanted = believed("Mara prefers tea.", workspace=workspace)
    strange = believed("tea", workspace=workspace, importance=10, embedded_as="Steel girders rust under bridges.")
    recalled = associate("Mara prefers tea.", workspace, is_explained=True)
    assert ids(recalled) == {wanted.pk}
    assert [(missed.memory.id, missed.reason) for missed in recalled.near_misses] == [(strange.pk, TOO_UNLIKE)]


def test_words_stand_in_where_there_is_no_vector(workspace: Workspace, settings: Settings) -> None:
    """R5: of the memory, or of the query."""
    waiting = factories.episode(workspace=workspace, text="Mara wants tea at noon.", language="en")
    believed("The gate is open.", workspace=workspace)
    assert associate("Mara wants tea at noon", workspace).results[0].id == waiting.pk
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_BASE_URL = "openai", "http://127.0.0.1:9/v1"
    alone = associate("Mara wants tea at noon", workspace)
    assert (ids(alone), bool(alone.degraded)) == ({waiting.pk}, True)
