"""engram_client's methods: what they take, what they refuse, and how they tell of it."""

import inspect
import pydoc
import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from engram_client import AsyncEngram, Engram, PartlyRefused, calls, types
from engram_client.operations import Blocks, Operation, Operations, Pages

from tests.docs.pages import ROOT
from tests.integrations.trouble import FOUND, Troubled, client_of

METHODS = {name: one for name, one in vars(Operations).items() if isinstance(one, (Operation, Blocks, Pages))}
PARTLY = httpx.Response(
    201,
    json={"turns": [{"state": "buffered"}, {"error": {"index": 1, "status": 422, "detail": "no role", "errors": {}}}]},
)


def test_a_batch_of_which_some_was_refused_is_an_error_that_has_the_answers() -> None:
    """What was not stored does not pass for stored; what was is told all the same."""
    turns: list[types.TurnLine] = [{"session": "s", "role": "user", "content": text} for text in ("x", "y")]
    with pytest.raises(PartlyRefused, match=r"1 of 2 turns were refused.*number 1: 422, no role") as partly:
        client_of(Troubled(PARTLY)).accept_turns(turns)
    assert [one["index"] for one in partly.value.refused] == [1]
    assert partly.value.answer["turns"][0] == {"state": "buffered"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"session": "s"}, "put it into a list"),
        ({"s"}, "this is a set"),
        ("s", "this is a str"),
        (None, "this is a NoneType"),
        (["s"], "number 0 is a str"),
    ],
)
@pytest.mark.parametrize("method", ["accept_turns", "store_episodes"])
def test_what_is_no_list_of_lines_is_refused_before_it_is_sent(method: str, given: Any, told: str) -> None:
    transport = Troubled(FOUND)
    with pytest.raises(TypeError, match=told):
        getattr(client_of(transport), method)(given)
    assert transport.asked_at == []


def test_lines_may_come_from_anywhere() -> None:
    """A generator is read once."""
    client_of(Troubled(FOUND)).accept_turns({"session": "s", "role": "user", "content": text} for text in "xy")


def test_a_text_may_be_given_without_its_name() -> None:
    assert calls.remember("x").body == calls.remember(text="x").body == {"text": "x"}
    assert calls.store_episode("x").body == {"text": "x"}


def test_a_text_to_remember_may_be_of_another_day() -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert calls.remember("x", occurred_at=noon).body == {"text": "x", "occurred_at": "2026-03-02T12:00:00+00:00"}


@pytest.mark.parametrize("client", [Engram, AsyncEngram])
def test_help_shows_what_every_method_takes(client: type[Operations]) -> None:
    """As of an ordinary method: its name, its parameters, what it answers, and a sentence."""
    shown = pydoc.plain(pydoc.render_doc(client))
    for name, one in METHODS.items():
        told = inspect.signature(getattr(client, name))
        assert list(told.parameters) == ["self", *inspect.signature(one.describe).parameters]
        assert f" |  {name}(self, " in shown or f" |  {name}(self)" in shown or f" |  {name}(self, /" in shown
        assert inspect.getdoc(getattr(client, name))
        assert told.return_annotation is not inspect.Signature.empty


def test_the_page_lists_every_method() -> None:
    """docs/agents.md has a row of its table for each."""
    page = (ROOT / "docs/agents.md").read_text().partition("## Python")[2]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert {name for line in rows for name in re.findall(r"`(\w+)\(", line.split("|")[1])} == set(METHODS)
