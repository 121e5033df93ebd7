"""engram_client: all of the API, typed, for threads and for asyncio, against a server that is really there."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, assert_type

import httpx
import pytest
from engram_client import (
    AsyncEngram,
    Conflict,
    Engram,
    EngramError,
    Forbidden,
    Invalid,
    NotFound,
    Options,
    PartlyRefused,
    Unauthorized,
    Unreachable,
    types,
)
from engram_client.client import Operation, Operations, StreamOperation
from engram_client.request import Call

from memory.models import Episode, Workspace
from tests import factories
from tests.docs.pages import ROOT, blocks
from tests.integrations.answer_types import FOLDER, schema, sources_in_form
from tests.integrations.trouble import FOUND, Troubled, client_of

# --- What it covers


def operations() -> dict[str, dict[str, Any]]:
    """Return the operations of the schema by their ids."""
    paths = schema()["paths"].values()
    return {told["operationId"]: told for path in paths for method, told in path.items() if method != "parameters"}


def described() -> dict[str, Callable[..., Call[Any]]]:
    """Return the descriptions of calls by the names of methods."""
    kinds = (Operation, StreamOperation)
    return {name: one.describe for name, one in vars(Operations).items() if isinstance(one, kinds)}


MORE_CONVENIENT = {"store_episode"}  # one of a batch


def test_every_operation_of_the_api_has_a_method() -> None:
    """A new one is described in engram_client/calls.py and named in engram_client/operations.py."""
    assert set(described()) - MORE_CONVENIENT == set(operations())


def fields_of(operation: dict[str, Any], components: dict[str, Any]) -> set[str]:
    """Return the names of all that an operation takes."""
    names = {one["name"] for one in operation.get("parameters", ())}
    content = operation.get("requestBody", {}).get("content", {})
    name = content.get("application/json", {}).get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    return names | set(components.get(name, {}).get("properties", ()))


# A batch takes lines, an import its file.
OTHERWISE = {"store_episodes": {"episodes"}, "accept_turns": {"turns"}, "import_workspace": {"content"}}


def test_every_method_takes_what_its_operation_takes() -> None:
    components = schema()["components"]["schemas"]
    takes = {name: set(inspect.signature(describe).parameters) for name, describe in described().items()}
    expected = {name: OTHERWISE.get(name, fields_of(one, components)) for name, one in operations().items()}
    assert {name: takes[name] for name in expected} == expected
    assert takes["store_episode"] == set(components["EpisodeLine"]["properties"])


def test_the_types_are_those_of_the_schema() -> None:
    """`python -m tests.integrations.answer_types` writes them anew."""
    assert sources_in_form() == {file: file.read_text() for file in FOLDER.glob("*.py")}


def test_answers_are_typed() -> None:
    """What mypy makes of it: the same method answers, or is awaited."""

    transport = Troubled(FOUND, httpx.Response(200, json={"results": [], "next": None}))
    client = client_of(transport)
    assert assert_type(client.recall("x"), types.Recalled)["results"] == []
    assert list(assert_type(client.all_episodes(), Iterator[types.Episode])) == []
    waiting = assert_type(
        AsyncEngram("http://127.0.0.1:1", key="k").with_options(retries=0).recall("x"), Awaitable[types.Recalled]
    )
    with pytest.raises(Unreachable):
        asyncio.run(_awaited(waiting))


async def _awaited(waiting: Awaitable[object]) -> object:
    return await waiting


# --- Against a server


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture
def engram(live_server: Any, workspace: Workspace) -> Iterator[Engram]:
    """Return a client with an owner's key."""
    with Engram(live_server.url, key=factories.key(workspace=workspace)[1], options=Options(timeout=30)) as client:
        yield client


TEXTS = ["Mara prefers tabs over spaces.", "For indentation Mara prefers tabs over spaces.", "Mara prefers tabs."]


def stored(engram: Engram) -> list[str]:
    answer = engram.store_episodes([{"text": text, "session": text} for text in TEXTS])
    return [str(dict(line)["id"]) for line in answer["episodes"]]


@pytest.mark.django_db(transaction=True)
def test_memories_go_in_and_come_back(engram: Engram) -> None:
    one = engram.store_episode(text="The mill opens at six.", occurred_at=datetime(2026, 3, 1, tzinfo=UTC))
    ids = stored(engram)
    found = engram.recall("When does the mill open?", limit=1, types=["episode"])
    assert found["results"][0]["text"] == "The mill opens at six."
    assert found["results"][0]["id"] == dict(one["episodes"][0])["id"]
    assert "mill" in engram.recollect("the mill", session="s")["text"]
    assert engram.read_memory(ids[0])["id"] == ids[0]
    assert engram.read_status()["episodes"] == {"active": 4}
    turned = engram.accept_turns([{"session": "s", "role": "user", "content": "Remember the mill.", "turn_id": "1"}])
    assert turned["turns"][0].get("signal") == "high"
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    remembered = engram.remember(text="The miller is called Ada.", occurred_at=noon)["episode_id"]
    assert dict(engram.read_memory(remembered))["occurred_at"] == "2026-03-02T12:00:00Z"


@pytest.mark.django_db(transaction=True)
def test_a_long_text_goes_in_once(engram: Engram, workspace: Workspace) -> None:
    """Bad input, B1: as episodes of one document, with nothing lost, however often it is sent."""
    text = "".join(f"Übung {number}: der Teig ruht über Nacht 🍞.\n\n" for number in range(900))
    [first], [again] = (engram.store_episode(text, idempotency_key="k")["episodes"] for _ in range(2))
    assert (dict(first)["deduplicated"], dict(again)["deduplicated"]) == (False, True)
    parts = [Episode.objects.for_workspace(workspace).get(pk=part["id"]) for part in dict(first)["parts"]]  # type: ignore[attr-defined]  # as it comes
    is_whole = "".join(part.text for part in parts) == text
    assert is_whole
    assert Episode.objects.count() == len(parts) == 2
    assert len({part.origin for part in parts if part.document}) == 1


@pytest.mark.django_db(transaction=True)
def test_erased_turns_are_told_one_by_one(engram: Engram) -> None:
    """L4: beside others, and as a conflict that is not tried again where there are no others."""
    turn: types.TurnLine = {
        "session": "s",
        "role": "user",
        "content": "Remember the mill.",
        "turn_id": "1",
        "user": "m",
    }
    engram.accept_turns([turn])
    assert engram.erase_memories(user="m")["turns"] == 1
    with pytest.raises(PartlyRefused, match="were erased from this memory") as partly:
        engram.accept_turns([turn, {**turn, "turn_id": "2"}])
    assert [refused["index"] for refused in partly.value.refused] == [0]
    with pytest.raises(Conflict, match="None of the turns was stored"):
        engram.accept_turns([turn])


@pytest.mark.django_db(transaction=True)
def test_beliefs_are_made_and_changed_by_hand(engram: Engram) -> None:
    ids = stored(engram)
    made = engram.found_belief(statement="Mara prefers tabs.", evidence=[{"episode": ids[0]}, {"episode": ids[1]}])
    assert engram.curate_belief(made["id"], "pin", reason="sure")["is_pinned"] is True
    card = engram.read_belief(made["id"])
    assert [row["episode"] for row in card["evidence"]] == ids[:2]
    parts: list[types.Part] = [
        {"statement": f"Mara prefers tabs in {place}.", "context": place, "evidence": [{"episode": key}]}
        for place, key in (("Go", ids[0]), ("Python", ids[1]))
    ]
    engram.curate_belief(made["id"], "unpin", reason="split")
    first, second = engram.split_belief(made["id"], parts=parts, reason="by language")["made"]
    united = engram.merge_beliefs(
        beliefs=(first["id"], second["id"]), statement="Mara prefers tabs everywhere.", reason="one"
    )["made"]
    changed = engram.correct_belief(united[0]["id"], reason="she told me", statement="Mara prefers spaces.")
    assert changed["made"][0]["statement"] == "Mara prefers spaces."
    assert len(engram.read_lineage(made["id"])["beliefs"]) >= 4
    assert engram.read_claims(ids[0])["id"] == ids[0]
    assert [row["change"] for row in engram.all_belief_changes(made["id"], limit=1)]
    assert engram.give_feedback(ids[0], value="useful")["feedback"] > 0
    assert engram.forget_memory(ids[0], reason="no matter")["status"] == "forgotten"
    assert engram.forget_memory(ids[1], erase=True)["status"] == "erased"


@pytest.mark.django_db(transaction=True)
def test_a_list_is_walked_over_all_its_pages(engram: Engram) -> None:
    stored(engram)
    assert sorted(row["text"] for row in engram.all_episodes(limit=1)) == sorted(TEXTS)
    assert list(engram.all_beliefs()) == []
    assert [row["text"] for row in engram.all_episodes(q="indentation", limit=1)] == [TEXTS[1]]


@pytest.mark.django_db(transaction=True)
def test_cycles_are_started_watched_and_cancelled(engram: Engram) -> None:
    stored(engram)
    assert engram.start_consolidation(dry_run=True).get("episodes") == 3
    started = str(engram.start_consolidation()["id"])  # type: ignore[typeddict-item]  # a cycle, for it was not dry
    with pytest.raises(Conflict) as refused:
        engram.start_consolidation()
    assert refused.value.problem["id"] == started
    assert engram.cancel_consolidation(started)["id"] == started
    assert [cycle["id"] for cycle in engram.all_consolidations()] == [started]
    assert engram.read_consolidation(started)["id"] == started


@pytest.mark.django_db(transaction=True)
def test_all_beliefs_are_looked_at_and_tidied(engram: Engram) -> None:
    """R7, R7d, R11, R13: by the offline model, which makes no belief about others."""
    ids = stored(engram)
    for statement in ("Mara works at Siemens.", "Mara left Siemens and works at Bosch."):
        engram.found_belief(statement=statement, evidence=[{"episode": ids[0]}])
    assert engram.reflect(limit=1)["beliefs"] == 2
    assert b"".join(engram.read_memory_md()) == b""  # two beliefs, and neither is trusted enough
    assert engram.prune_beliefs(dry_run=True) == {"pruned": [], "dry_run": True}
    assert engram.propose_merges()["proposed"] == []
    assert engram.make_meta_beliefs()["made"] == []
    assert set(engram.backfill_subjects()["subjects"].values()) == {"mara"}
    looked = engram.find_contradictions(check=True)
    assert (looked["found"], looked["outcomes"]) == (1, {"contradicts": 1})
    [pair] = engram.list_contradictions()["pairs"]
    assert engram.settle_contradiction(pair["id"], "dismiss")["state"] == "dismissed"
    assert engram.list_contradictions(state="dismissed")["total"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_memory_is_moved(engram: Engram, workspace: Workspace) -> None:
    """R14: streamed out, read in."""
    stored(engram)
    file = b"".join(engram.export_workspace())
    assert json.loads(file.splitlines()[0])
    assert engram.erase_memories(workspace=workspace.name)["episodes"] == 3
    assert engram.import_workspace(file)["episodes"] == 3
    assert Episode.objects.for_workspace(workspace).count() == 3


@pytest.mark.django_db(transaction=True)
def test_asyncio_has_the_same(live_server: Any, workspace: Workspace) -> None:
    key = factories.key(workspace=workspace)[1]

    async def live() -> tuple[list[str], str, bytes]:
        async with AsyncEngram(live_server.url, key=key, options=Options(timeout=30)) as engram:
            await engram.store_episodes([{"text": text, "session": text} for text in TEXTS])
            found = await engram.recall("tabs", limit=1)
            walked = [row["text"] async for row in engram.all_episodes(limit=2)]
            with pytest.raises(NotFound):
                await engram.read_memory("ep_000000000000")
            return walked, found["results"][0]["text"], b"".join([block async for block in engram.export_workspace()])

    walked, found, file = asyncio.run(live())
    assert sorted(walked) == sorted(TEXTS)
    assert found in TEXTS
    assert file.count(b"\n") > 3


@pytest.mark.django_db(transaction=True)
def test_problems_are_errors_of_their_own(live_server: Any, workspace: Workspace, engram: Engram) -> None:
    with pytest.raises(Invalid) as invalid:
        engram.store_episode(text="")
    assert (invalid.value.status, list(invalid.value.errors)) == (422, ["text"])
    with pytest.raises(NotFound):
        engram.read_belief("bl_000000000000")
    with pytest.raises(NotFound):
        engram.read_memory("../status")
    with Engram(live_server.url, key="engram_wrong") as stranger, pytest.raises(Unauthorized):
        stranger.read_status()
    with Engram(live_server.url, key=factories.key("read", workspace=workspace)[1]) as reader:
        with pytest.raises(Forbidden, match="write"):
            reader.store_episode(text="x")
        with pytest.raises(Forbidden):
            b"".join(reader.export_workspace())


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENGRAM_API_KEY", raising=False)
    with pytest.raises(EngramError, match="ENGRAM_API_KEY"):
        Engram("http://127.0.0.1:1")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", ["integrations/python/README.md", "docs/agents.md"])
def test_what_a_page_shows_runs(
    live_server: Any, workspace: Workspace, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands there, on this server and with a key of it."""
    remembered = factories.key(workspace=workspace)[1]
    shown = "\n".join(blocks(ROOT / page, "python"))
    ours = shown.replace("http://127.0.0.1:8000", live_server.url).replace("engram_…", remembered)
    exec(compile(ours, page, "exec"), {})  # noqa: S102 - a page of ours
    printed = capsys.readouterr().out
    assert "Mara prefers tabs over spaces." in printed or printed == "\n"
