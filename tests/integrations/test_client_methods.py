"""engram_client's methods: what they take, what they refuse, and how they tell of it."""

import asyncio
import inspect
import json
import pydoc
import re
from datetime import UTC, datetime
from typing import Any, cast

import httpx
import pytest
from engram_client import AsyncEngram, Conflict, Engram, PartlyRefused, calls, types
from engram_client.client import Operation, Operations, PagedOperation, StreamOperation

from tests.docs.pages import ROOT
from tests.integrations.trouble import FOUND, Troubled, client_of

METHODS = {
    name: one for name, one in vars(Operations).items() if isinstance(one, (Operation, StreamOperation, PagedOperation))
}
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


# --- Texts that are longer than the API takes

LONG = "\n\n".join(f"Übung {number}: " + "Das Brot ruht über Nacht 🍞. " * 40 for number in range(60))
TURN: types.TurnLine = {"session": "s", "role": "user", "content": LONG, "speaker": "Mia"}


def sent_by(call: Any, name: str) -> list[dict[str, Any]]:
    return [line for request in call.requests for line in request.body[name]]


@pytest.mark.parametrize(
    ("call", "name", "text", "known_by"),
    [
        (calls.accept_turns([{**TURN, "turn_id": "k"}]), "turns", "content", "turn_id"),
        (
            calls.store_episode(LONG, session="s", speaker="Mia", idempotency_key="k"),
            "episodes",
            "text",
            "idempotency_key",
        ),
        (calls.store_episodes([{"text": LONG, "idempotency_key": "k"}]), "episodes", "text", "idempotency_key"),
    ],
    ids=["turns", "an episode", "episodes"],
)
def test_a_long_text_is_sent_in_parts(call: Any, name: str, text: str, known_by: str) -> None:
    """Bad input, B1: in order, with nothing lost, under names that are the same each time."""
    lines = sent_by(call, name)
    is_whole = "".join(line[text] for line in lines) == LONG
    assert is_whole
    assert max(len(line[text].encode()) for line in lines) <= 32 * 1024
    assert [line[known_by] for line in lines] == ["k", *(f"k:{number}" for number in range(2, len(lines) + 1))]
    shared = {tuple((key, line[key]) for key in sorted(line) if key not in (text, known_by)) for line in lines}
    assert len(shared) == 1
    assert {"session", "document"} & {key for key, _ in shared.pop()}
    assert all(request.is_repeatable for request in call.requests)


def test_names_at_their_limit_still_name_each_part() -> None:
    lines = sent_by(calls.accept_turns([{**TURN, "turn_id": "k" * 200}]), "turns")
    assert len({line["turn_id"] for line in lines}) == len(lines)
    assert max(len(line["turn_id"]) for line in lines) <= 200


def test_parts_fit_into_requests() -> None:
    """1,000 lines and 8 MiB are the most that one may have; in their order, over as many as it takes."""
    turns: list[types.TurnLine] = [{**TURN, "content": "x"}] * 999
    call = calls.accept_turns([*turns, {**TURN, "content": "x" * 3 * 2**20}])
    assert [len(dict(request.body or {})["turns"]) for request in call.requests] == [1000, 32, 32, 31]


def test_a_line_in_parts_is_answered_once() -> None:
    """By its first part's answer, beside those of all; refused under its own number."""
    turns: list[types.TurnLine] = [TURN, {**TURN, "content": "short"}]
    count = len(sent_by(calls.accept_turns(turns), "turns")) - 1
    good, bad = {"signal": "none"}, {"error": {"index": count, "status": 422, "detail": "no", "errors": {}}}
    told = client_of(Troubled(httpx.Response(202, json={"turns": [good] * (count + 1)}))).accept_turns(turns)
    assert [len(line.get("parts", ())) for line in cast("list[Any]", told["turns"])] == [count, 0]
    with pytest.raises(PartlyRefused) as partly:
        client_of(Troubled(httpx.Response(202, json={"turns": [*[good] * count, bad]}))).accept_turns(turns)
    assert [one["index"] for one in partly.value.refused] == [1]
    refused = httpx.Response(409, json={"detail": "None.", "turns": [bad] * (count + 1)})
    with pytest.raises(Conflict) as conflict:
        client_of(Troubled(refused)).accept_turns(turns)
    assert [one["error"]["index"] for one in conflict.value.problem["turns"]] == [0, 1]


def test_asyncio_sends_parts_too() -> None:
    async def live() -> types.TurnsAnswer:
        def answer(request: httpx.Request) -> httpx.Response:
            return httpx.Response(202, json={"turns": [{"signal": "none"}] * len(json.loads(request.content)["turns"])})

        async with AsyncEngram("http://engram.test", key="k", transport=httpx.MockTransport(answer)) as engram:
            return await engram.accept_turns([TURN])

    assert len(asyncio.run(live())["turns"]) == 1
