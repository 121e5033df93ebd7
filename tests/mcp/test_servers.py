"""A real client of the SDK speaks to real server processes, over standard input and output and over HTTP."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import connection
from mcp import Client

from memory.access import NO_KEY, UNKNOWN_KEY
from memory.mcp.catalogue import INSTRUCTIONS, TOOLS
from memory.models import Episode, Workspace
from tests import factories
from tests.docs.pages import ROOT
from tests.mcp.clients import over_command, over_http, text_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

_START_SECONDS = 60.0


def environment() -> dict[str, str]:
    """Return what a server process needs to serve the test database."""
    return {
        **os.environ,
        "ENGRAM_DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": _database_url(),
        "SECRET_KEY": "for-tests-alone-" * 4,
        "PYTHONWARNINGS": "ignore",
    }


def _database_url() -> str:
    """Name the test database, on the suite's own server."""
    at = connection.settings_dict
    return f"postgresql://{at['USER']}@/{at['NAME']}?host={at['HOST']}&port={at['PORT'] or 5432}"


def by_command(key: str) -> AbstractAsyncContextManager[Client]:
    command = [sys.executable, str(ROOT / "manage.py"), "mcp"]
    return over_command(command, environment={**environment(), "ENGRAM_API_KEY": key})


def at(port: int, key: str) -> AbstractAsyncContextManager[Client]:
    return over_http(f"http://127.0.0.1:{port}/mcp", headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def port(db: None) -> Iterator[int]:
    """Run the HTTP server's process on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free: int = probe.getsockname()[1]
    program = [str(Path(sys.executable).parent / "uvicorn"), "beliefsite.mcp:application", "--port", str(free)]
    process = subprocess.Popen(program, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        _await(process, free)
        yield free
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _await(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{port}/mcp", timeout=2, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    process.kill()
    pytest.fail(f"The server did not start:\n{process.communicate()[1][-3000:]}")


def run(work: Callable[[Client], Awaitable[Any]], connection: AbstractAsyncContextManager[Client]) -> Any:
    async def main() -> Any:
        async with connection as client:
            return await work(client)

    return asyncio.run(main())


async def live(client: Client) -> dict[str, Any]:
    """Save, recall, expand and forget, as an agent would; return what was told on the way."""
    told: dict[str, Any] = {"tools": {tool.name for tool in (await client.list_tools()).tools}}
    saved = await client.call_tool("memory_save", {"text": "Mara prefers tabs over spaces.", "session": "monday"})
    told["id"] = (saved.structured_content or {})["id"]
    recalled = await client.call_tool("memory_recall", {"query": "tabs or spaces?"})
    told["recalled"] = [one["id"] for one in (recalled.structured_content or {})["results"]]
    told["line"] = text_of(recalled)
    expanded = await client.call_tool("memory_expand", {"id": told["id"]})
    told["expanded"] = (expanded.structured_content or {})["text"]
    await client.call_tool("memory_forget", {"id": told["id"], "reason": "asked for"})
    told["afterwards"] = ((await client.call_tool("memory_recall", {"query": "tabs"})).structured_content or {})[
        "results"
    ]
    gone = await client.call_tool("memory_expand", {"id": told["id"]})
    told["error"] = (gone.is_error, text_of(gone))
    return told


def assert_lived(told: Mapping[str, Any]) -> None:
    assert told["tools"] == {tool.name for tool in TOOLS}
    assert told["recalled"] == [told["id"]]
    assert told["line"].endswith(f"Mara prefers tabs over spaces. — ID: {told['id']}")
    assert (told["expanded"], told["afterwards"]) == ("Mara prefers tabs over spaces.", [])
    is_error, text = told["error"]
    assert is_error
    assert f"There is no {told['id']} here" in text
    assert Episode.objects.get(pk=told["id"]).status == "forgotten"


def test_an_agent_lives_over_standard_input_and_output() -> None:
    workspace = factories.workspace()
    assert_lived(run(live, by_command(factories.key("curate", workspace=workspace)[1])))


def test_an_agent_lives_over_http(port: int) -> None:
    workspace = factories.workspace()
    assert_lived(run(live, at(port, factories.key("curate", workspace=workspace)[1])))


def test_whoever_waits_for_a_stream_is_told_that_there_is_none(port: int) -> None:
    """The protocol lets a server without sessions refuse what is no POST."""
    headers = {"Authorization": f"Bearer {factories.key('read', workspace=factories.workspace())[1]}"}
    answer = httpx.get(f"http://127.0.0.1:{port}/mcp", headers=headers, timeout=20, trust_env=False)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_model_is_told_how_to_use_them_and_what_it_did_wrong() -> None:
    """Instructions, descriptions and schemas; an unknown argument is an error, a failure tells no trace."""
    key = factories.key("read", workspace=factories.workspace())[1]

    async def look(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("memory_recall", {"query": "tea", "colour": "red"}),
            ("memory_recall", {"query": "a\0b"}),
            ("memory_expand", {"id": "42"}),
            ("memory_save", {"text": "Tea at four."}),
            ("memory_recall", {"query": "", "limit": 101, "types": ["belief", "dream"]}),
        ]
        answers = [await client.call_tool(name, arguments) for name, arguments in wrong]
        return client.instructions, tools, answers

    instructions, tools, answers = run(look, by_command(key))
    assert instructions == INSTRUCTIONS
    assert all(len(tool.description) > 100 and tool.output_schema and tool.annotations for tool in tools)
    assert all(answer.is_error and "Traceback" not in text_of(answer) for answer in answers)
    said = [text_of(answer) for answer in answers]
    assert "colour" in said[0]
    assert "NUL" in said[1]
    assert "takes a key with the permission write" in said[3]
    assert all(words in said[4] for words in ("query: ", "limit: Input should be less", "types.1: Input should be 'ep"))
    assert not any("pydantic" in text or "http" in text for text in said)


@pytest.mark.parametrize(
    ("given", "status", "told"), [("", 2, "A key is needed"), ("engram_wrong", 1, "This key is unknown or revoked.")]
)
def test_the_command_needs_a_living_key(given: str, status: int, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "mcp"], cwd=ROOT, env={**environment(), "ENGRAM_API_KEY": given},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (status, True, False)


_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_strangers_are_refused_at_the_door(port: int) -> None:
    """No key, a wrong one, another host's name, a foreign page; a page of this host may come in."""
    workspace: Workspace = factories.workspace()
    key = {"Authorization": f"Bearer {factories.key(workspace=workspace)[1]}"}
    address = f"http://127.0.0.1:{port}/mcp"

    def post(**headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(address, json=_LIST, headers={**_ACCEPT, **named}, trust_env=False)

    assert post(**key).status_code == 200
    assert post(**key, Origin=f"http://localhost:{port}").status_code == 200
    refused = {
        401: [post(), post(Authorization="Bearer engram_wrong"), post(Authorization=key["Authorization"][7:])],
        403: [post(**key, Origin="https://evil.example"), post(**key, Origin="null")],
        421: [post(**key, Host="evil.example"), post(**key, Host=f"evil.example:{port}")],
    }
    for status, answers in refused.items():
        for answer in answers:
            assert (answer.status_code, answer.json()["status"]) == (status, status)
            assert answer.headers["content-type"] == "application/problem+json"
    assert refused[401][0].headers["www-authenticate"] == "Bearer"
    details = [answer.json()["detail"] for answer in refused[401]]  # as the API says it
    assert details == [NO_KEY, UNKNOWN_KEY, NO_KEY]


def test_many_agents_at_once_share_a_few_connections(port: int) -> None:
    """Threads keep their connections, and give none away: 40 calls at once leave no more than the threads there are."""
    key = factories.key("write", "read", workspace=factories.workspace())[1]

    async def save(client: Client) -> list[Any]:
        calls = [client.call_tool("memory_save", {"text": f"Cup {n}.", "session": str(n)}) for n in range(40)]
        return list(await asyncio.gather(*calls))

    answers = run(save, at(port, key))
    assert not any(answer.is_error for answer in answers)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert cursor.fetchone()[0] <= 8 + 3
