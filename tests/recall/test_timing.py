"""What occurred at the time that a question asks about stands first (B17)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from memory.domain.taxonomy import Mode
from memory.models import Belief, Claim, Workspace
from memory.recall import candidates
from memory.recall.prompt_lines import recollect
from memory.recall.query import MemoryType
from memory.search.hybrid import search_episodes
from memory.search.prepared import SearchFailed
from memory.search.scope import SearchScope
from memory.search.statements import SearchQuery
from tests import factories
from tests.recall.memories import ask, believed, ids, remembered, scope_of

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


def closed(statement: str, workspace: Workspace, *, since: datetime | None, until: datetime, **given: Any) -> Belief:
    """Store a belief that held until something changed."""
    return believed(
        statement, workspace=workspace, status="invalidated", status_reason="changed", valid_from=since,
        valid_until=until, created_at=on(1), **given,
    )  # fmt: skip


def test_what_was_believed_of_that_time_answers_a_question_about_it(workspace: Workspace) -> None:
    """B17, C2: though it changed since; a question about now does not bring it."""
    dana = closed("Nora's manager is Dana.", workspace, since=on(1), until=on(4, 1))
    ravi = believed("Nora's manager is Ravi.", workspace=workspace, valid_from=on(4, 1))

    past = ask("Who was Nora's manager in March?", workspace=workspace, now=NOW).results
    present = ask("Who is Nora's manager?", workspace=workspace, now=NOW).results

    assert past[0].id == dana.pk
    assert past[0].valid_until == on(4, 1)
    assert ravi.pk in [one.id for one in present]
    assert dana.pk not in [one.id for one in present]


def test_what_holds_since_that_time_answers_before_what_began_later(workspace: Workspace) -> None:
    """B17: by since and until when beliefs hold."""
    early = believed("Nora's manager is Ravi.", workspace=workspace, valid_from=on(2))
    late = believed("Nora's manager is Cleo at weekends.", workspace=workspace, valid_from=on(9))

    results = ask("Who was Nora's manager in March?", workspace=workspace, now=NOW, is_explained=True, limit=20).results
    blend = {
        one.id: one.explain.components["blend"] for one in results if one.explain and "blend" in one.explain.components
    }

    assert (blend[early.pk], blend[late.pk]) == pytest.approx((1.0, 0.56))


def test_the_line_of_what_held_then_says_until_when(workspace: Workspace) -> None:
    """B16."""
    closed("Nora's manager is Dana.", workspace, since=on(1), until=on(4, 1))

    told = recollect(scope=scope_of(workspace=workspace), query="Who was Nora's manager in March?", now=NOW)

    assert "Nora's manager is Dana. (since Jan 12, until Apr 1)]" in told.text


def test_nobody_else_sees_what_held_then(workspace: Workspace) -> None:
    """B21."""
    mill, barn = (factories.project(workspace=workspace, slug=slug) for slug in ("mill", "barn"))
    dana = closed("Nora's manager is Dana.", workspace, since=on(1), until=on(4, 1), project=mill)
    other = factories.workspace()
    remembered("Nora's manager came by.", workspace=other, occurred_at=on(3))
    for project in (mill, barn):
        remembered("Nora's manager came by.", workspace=workspace, occurred_at=on(3), project=project)

    def finds(workspace: Workspace, **asked: Any) -> bool:
        return dana.pk in ids(ask("Who was Nora's manager in March?", workspace=workspace, now=NOW, **asked))

    assert finds(workspace, limited_to=(mill,))
    assert not finds(workspace, limited_to=(barn,))
    assert not finds(other)


def test_beliefs_alone_answer_of_a_time_too(workspace: Workspace) -> None:
    """B17, C2: where no episode is asked for."""
    dana = closed("Nora's manager is Dana.", workspace, since=on(1), until=on(4, 1))
    believed("Nora's manager is Ravi.", workspace=workspace, valid_from=on(4, 1))

    results = ask("Who was Nora's manager in March?", workspace=workspace, now=NOW, types=[MemoryType.BELIEF]).results

    assert results[0].id == dana.pk


def test_a_time_is_left_out_where_it_cannot_be_searched(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: one arm of its search fails, and recall answers without the time."""
    looked = search_episodes

    def fail_in_time(*, reach: SearchScope, query: SearchQuery, **asked: Any) -> Any:
        if reach.occurred != (None, None) and query.vector is not None:
            raise SearchFailed("too slow")
        return looked(reach=reach, query=query, **asked)

    monkeypatch.setattr(candidates, "search_episodes", fail_in_time)

    results = ask("How much was the rent in April?", workspace=workspace, now=NOW, is_explained=True).results

    assert results
    assert {one.explain.components["asked_time"] for one in results if one.explain and one.type == "episode"} == {0.0}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Where did I live before the move to Leeds?", "My flat in York is cold, but I live cheap."),
        ("Where did I live until the move in May?", "My flat in York is cold, but I live cheap."),
    ],
)
def test_an_event_bounds_the_time_that_is_asked_about(query: str, expected: str, workspace: Workspace) -> None:
    """B17: it is looked for in what was told."""
    remembered("My flat in York is cold, but I live cheap.", workspace=workspace, occurred_at=on(2))
    remembered("The move to Leeds is done!", workspace=workspace, occurred_at=on(5))
    remembered("The new place where I live has a garden.", workspace=workspace, occurred_at=on(7))

    assert first(query, workspace) == expected


def test_what_came_after_an_event_stands_before_what_was(workspace: Workspace) -> None:
    """B17."""
    old = remembered("My flat in York is cold, but I live cheap.", workspace=workspace, occurred_at=on(2))
    remembered("The move to Leeds is done!", workspace=workspace, occurred_at=on(5))
    new = remembered("The flat where I live has a garden.", workspace=workspace, occurred_at=on(7))

    found = [one.id for one in ask("Where did I live after the move?", workspace=workspace, now=NOW).results]

    assert found.index(new.pk) < found.index(old.pk)


def test_an_event_announced_ahead_was_when_it_was_announced_for(workspace: Workspace) -> None:
    """B17, E1."""
    told = remembered("From 1 June I work at the bakery.", workspace=workspace, occurred_at=on(4))
    Claim.objects.create(
        workspace=workspace, episode=told, number=1, sentence="Nora works at the bakery.", mode=Mode.CHANGE,
        holds_from=on(6, 1).date(), reader="rules-1", created_at=NOW,
    )  # fmt: skip
    between = remembered("Coffee break was at ten.", workspace=workspace, occurred_at=on(5))

    results = ask("When was coffee break before I worked at the bakery?", workspace=workspace, now=NOW).results

    assert results[0].id == between.pk


def test_an_event_that_nobody_told_of_is_no_time(workspace: Workspace) -> None:
    results = ask(
        "How much was the rent before the earthquake?", workspace=workspace, now=NOW, is_explained=True
    ).results

    assert {one.explain.components["asked_time"] for one in results if one.explain and one.type == "episode"} == {0.0}
