"""What occurred at the time that a question asks about stands first (B17)."""

from datetime import datetime, timedelta

import pytest

from memory.models import Workspace
from tests import factories
from tests.recall.memories import ask, believed, remembered

pytestmark = pytest.mark.django_db

NOW = factories.NOW.replace(year=2026, month=11, day=26)


@pytest.fixture
def workspace() -> Workspace:
    workspace = factories.workspace()
    for month in range(1, 11):
        remembered(f"The rent was {400 + month} crowns, paid by card.", workspace=workspace, occurred_at=on(month))
    believed("The rent is 410 crowns.", workspace=workspace)
    return workspace


def on(month: int, day: int = 12) -> datetime:
    return NOW.replace(month=month, day=day)


def first(query: str, workspace: Workspace, **asked: object) -> str:
    return ask(query, workspace=workspace, now=NOW, **asked).results[0].text  # type: ignore[arg-type]


def test_what_occurred_then_stands_first(workspace: Workspace) -> None:
    """B17: before all that the words find as well, and before what is believed now."""
    assert first("How much was the rent in April?", workspace) == "The rent was 404 crowns, paid by card."
    assert (
        first("What did we pay at the beginning of July in rent?", workspace)
        == "The rent was 407 crowns, paid by card."
    )


def test_it_is_found_among_any_number_of_others(workspace: Workspace) -> None:
    """B17: by a search of that time alone."""
    for day in range(60):
        remembered(
            "We talked about the rent again.", workspace=workspace, occurred_at=NOW - timedelta(days=20, minutes=day)
        )
    wanted = remembered("A letter from the landlord came.", workspace=workspace, occurred_at=on(2))
    found = [result.id for result in ask("which letter came in February?", workspace=workspace, now=NOW).results]
    assert wanted.pk in found[:2]


def test_the_first_and_the_last_of_several(workspace: Workspace) -> None:
    """B17."""
    assert first("When did I first mention the rent?", workspace) == "The rent was 401 crowns, paid by card."
    assert (
        first("What was the last thing I said about the rent?", workspace) == "The rent was 410 crowns, paid by card."
    )


def test_whoever_bounds_the_time_is_asked_for_nothing_else(workspace: Workspace) -> None:
    """B17: the words of the question count for less than what is said beside it."""
    assert (
        first("How much was the rent in April?", workspace, occurred_from=on(9, 1))
        != "The rent was 404 crowns, paid by card."
    )


def test_the_time_is_named_in_the_explanation(workspace: Workspace) -> None:
    """B17: 3 standard scores for what fits, none for the rest; of a time, beliefs count for less."""
    results = ask("How much was the rent in April?", workspace=workspace, now=NOW, is_explained=True, limit=20).results
    parts = {one.text: one.explain.components for one in results if one.explain}
    assert parts["The rent was 404 crowns, paid by card."]["asked_time"] == 3.0
    assert parts["The rent was 405 crowns, paid by card."]["asked_time"] == 0.0
    assert parts["The rent is 410 crowns."]["blend"] == pytest.approx(0.56)
