"""A cross-encoder re-ranks the best of what recall found, where the settings name one (B17)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from memory.llm.onnx_models import Reranker
from memory.models import Workspace
from memory.recall.query import Recalled
from memory.search.prepared import raw_cursor
from tests import factories
from tests.llm.tiny_pairs import make_reranker
from tests.recall.memories import ask, believed, remembered

pytestmark = pytest.mark.django_db

QUERY = "mara waters the garden: bench, kettle, rests"
WORDS = ("bench", "kettle", "rests")  # the model knows no others


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def switched_on(settings: Settings, tmp_path: Path) -> Callable[[], None]:
    """Give a way to name a re-ranker that counts the words that query and text share."""
    folder = make_reranker(tmp_path / "reranker", words=WORDS)

    def switch() -> None:
        settings.ENGRAM_RERANKER = str(folder)

    return switch


def tell_four(workspace: Workspace) -> list[str]:
    """Remember four texts, the one with most of the words that the model knows first, and the one most like it last."""
    told = [
        remembered("The bench, a kettle: it rests.", workspace=workspace, embedded_as="rain is expected"),
        remembered("A kettle and a bench.", workspace=workspace, embedded_as="rain is expected"),
        remembered("It rests in the garden.", workspace=workspace, embedded_as="mara waters"),
        remembered("Mara waters the garden.", workspace=workspace, embedded_as=QUERY),
    ]
    return [one.pk for one in told]


def order(recalled: Recalled) -> list[str]:
    return [result.id for result in recalled.results]


def components(recalled: Recalled) -> list[dict[str, float | None]]:
    return [dict(result.explain.components) for result in recalled.results if result.explain]


def test_the_model_decides_on_the_order(workspace: Workspace, switched_on: Callable[[], None]) -> None:
    told = tell_four(workspace)
    assert order(ask(QUERY, workspace=workspace)) != told
    switched_on()
    recalled = ask(QUERY, workspace=workspace)
    assert order(recalled) == told
    assert recalled.degraded == ()


def test_scores_stay_those_of_the_places(workspace: Workspace, switched_on: Callable[[], None]) -> None:
    """What scores are compared with means what it meant; equal ones are told apart, else their order were lost."""
    tell_four(workspace)
    before = [result.score for result in ask(QUERY, workspace=workspace).results]
    switched_on()
    after = [result.score for result in ask(QUERY, workspace=workspace).results]
    assert after == pytest.approx(before)
    assert len(set(after)) == len(after)


def test_the_xray_shows_what_the_model_said_and_the_score_before(
    workspace: Workspace, switched_on: Callable[[], None]
) -> None:
    tell_four(workspace)
    plain = {result.id: result.score for result in ask(QUERY, workspace=workspace).results}
    assert all("reranker" not in parts for parts in components(ask(QUERY, workspace=workspace, is_explained=True)))
    switched_on()
    recalled = ask(QUERY, workspace=workspace, is_explained=True)
    shown = components(recalled)
    said = [parts["reranker"] or 0.0 for parts in shown]
    assert said == sorted(said, reverse=True)
    assert said[0] > 0.9
    assert {key: parts["before_reranking"] for key, parts in zip(order(recalled), shown, strict=True)} == plain


def test_no_more_than_the_first_are_read(
    workspace: Workspace, switched_on: Callable[[], None], with_numbers: Callable[..., None]
) -> None:
    tell_four(workspace)
    plain = order(ask(QUERY, workspace=workspace))
    with_numbers(rerank_candidates=2)
    switched_on()
    recalled = ask(QUERY, workspace=workspace, is_explained=True)
    assert sorted(order(recalled)[:2]) == sorted(plain[:2])
    assert order(recalled)[2:] == plain[2:]
    assert ["reranker" in parts for parts in components(recalled)] == [True, True, False, False]


def test_a_belief_is_read_by_its_statement(workspace: Workspace, switched_on: Callable[[], None]) -> None:
    remembered("Mara waters the garden.", workspace=workspace, embedded_as=QUERY)
    belief = believed("A kettle rests on the bench.", workspace=workspace, embedded_as="mara waters")
    switched_on()
    assert order(ask(QUERY, workspace=workspace))[0] == belief.pk


def test_the_past_is_read_as_it_stood(workspace: Workspace, switched_on: Callable[[], None]) -> None:
    told = tell_four(workspace)
    switched_on()
    assert order(ask(QUERY, workspace=workspace, as_of=factories.NOW)) == told


def test_over_its_time_the_order_stays_and_the_xray_says_so(
    workspace: Workspace, switched_on: Callable[[], None], with_numbers: Callable[..., None]
) -> None:
    tell_four(workspace)
    plain = ask(QUERY, workspace=workspace)
    with_numbers(rerank_seconds=1e-9)
    switched_on()
    recalled = ask(QUERY, workspace=workspace, is_explained=True)
    assert [(one.id, one.score) for one in recalled.results] == [(one.id, one.score) for one in plain.results]
    assert recalled.degraded == ("reranker",)
    assert [parts["reranker"] for parts in components(recalled)] == [None] * 4


def test_a_model_that_cannot_be_loaded_is_named_and_the_order_stays(
    workspace: Workspace, settings: Settings, tmp_path: Path
) -> None:
    tell_four(workspace)
    plain = order(ask(QUERY, workspace=workspace))
    settings.ENGRAM_RERANKER = str(tmp_path / "nowhere")
    recalled = ask(QUERY, workspace=workspace)
    assert order(recalled) == plain
    assert recalled.degraded == ("reranker",)


def test_without_one_nothing_is_read_for_it(
    workspace: Workspace, switched_on: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one, two statements more are run: the candidates' texts, and the settings of the transaction after it."""
    tell_four(workspace)
    monkeypatch.setattr("memory.search.plan._MAX_AGE", 3600.0)  # else sizes may be counted again in between
    ran: list[bool] = []

    def watched(**asked: Any) -> Any:
        ran.append(True)
        return raw_cursor(**asked)

    monkeypatch.setattr("memory.search.prepared.raw_cursor", watched)

    def statements() -> int:
        ran.clear()
        ask(QUERY, workspace=workspace)
        return len(ran)

    statements()  # the first of a workspace counts its words, too
    plain = statements()
    switched_on()
    assert statements() == plain + 2


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_model_reads(
    switched_on: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = factories.workspace()
    told = tell_four(workspace)
    score, seen = Reranker.score, []

    def watched(self: Reranker, **asked: Any) -> Any:
        seen.append(connection.in_atomic_block)
        return score(self, **asked)

    monkeypatch.setattr(Reranker, "score", watched)
    switched_on()
    assert order(ask(QUERY, workspace=workspace)) == told
    assert seen == [False]
