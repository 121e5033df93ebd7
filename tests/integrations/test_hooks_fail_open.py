"""The plugin's hooks are in nobody's way, whatever the server does and whatever they are given."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integrations.client import TALK, ClaudeCode, kept, silent_port

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def answering(*parts: bytes, pause: float = 0.0) -> Iterator[int]:
    """Answer every connection with these bytes."""
    ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                for part in parts:
                    try:
                        connection.sendall(part)
                    except OSError:
                        break
                    if ended.wait(pause):
                        break

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.2)
        thread = threading.Thread(target=_until(serve, listening, ended), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ended.set()
            thread.join()


def _until(serve: Callable[[socket.socket], None], listening: socket.socket, ended: threading.Event) -> Any:
    def run() -> None:
        while not ended.is_set():
            serve(listening)

    return run


def events(client: ClaudeCode) -> list[tuple[str, dict[str, Any]]]:
    path = client.write("abc", *TALK)
    return [
        ("SessionStart", {"session_id": "abc", "source": "startup"}),
        ("UserPromptSubmit", {"session_id": "abc", "prompt": "Does Mara like tabs?"}),
        ("Stop", {"session_id": "abc", "transcript_path": str(path)}),
    ]


def all_silent(client: ClaudeCode, *, within: float = 3.0) -> bool:
    done = [client.fire(event, **given) for event, given in events(client)]
    return all((one.printed, one.complained, one.status) == ("", "", 0) and one.seconds < within for one in done)


@pytest.fixture
def quiet(client: ClaudeCode) -> ClaudeCode:
    return client.elsewhere(ENGRAM_HOOK_DEBUG="", ENGRAM_RECOLLECTIONS_TIMEOUT_MS="", ENGRAM_TURNS_TIMEOUT_MS="500",
        ENGRAM_STATUS_TIMEOUT_MS="500",
    )  # fmt: skip


def test_no_server_is_in_nobodys_way(quiet: ClaudeCode) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert all_silent(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))


def test_a_server_that_never_answers_is_not_waited_for(quiet: ClaudeCode) -> None:
    with silent_port() as port:
        assert all_silent(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))


def test_a_server_that_answers_drop_by_drop_is_not_waited_for(quiet: ClaudeCode) -> None:
    drops = [b"HTTP/1.1 200 OK\r\n\r\n", *[b" "] * 100]
    with answering(*drops, pause=0.1) as port:
        assert all_silent(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"garbage", b"HTTP/1.1 200 OK\r\n\r\n<html>", b"HTTP/1.1 200 OK\r\n\r\n[1]", b"HTTP/1.1 200 OK\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\n\r\n{"text": 5, "episodes": 1}', b"HTTP/1.1 500 Oh\r\n\r\n{}", b"\xff" * 5000,
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    ],
    ids=["nothing", "garbage", "a page", "a list", "an empty object", "other types", "500", "bytes", "elsewhere"],
)  # fmt: skip
def test_an_answer_that_is_none_is_passed_over(quiet: ClaudeCode, answer: bytes) -> None:
    with answering(answer) as port:
        assert all_silent(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize("key", ["", "a b\nc"], ids=["none", "broken"])
def test_a_key_that_is_none_is_in_nobodys_way(quiet: ClaudeCode, key: str) -> None:
    assert all_silent(quiet.elsewhere(ENGRAM_API_KEY=key), within=5.0)
    assert kept() == []


def test_a_key_that_is_refused_is_told_at_the_start_alone(client: ClaudeCode) -> None:
    """The person can mend it; a prompt goes on without, and who debugs sees why."""
    refused = client.elsewhere(ENGRAM_API_KEY="engram_wrong")
    told = json.loads(refused.fire("SessionStart", session_id="abc", source="startup").printed)
    assert list(told) == ["systemMessage"]
    assert told["systemMessage"].startswith("Engram does not take its key, and remembers nothing: ")

    asked = refused.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?")
    assert (asked.printed, asked.status) == ("", 0)
    assert asked.complained.startswith("engram: POST /recollections: 401 ")


def test_turns_wait_until_the_project_of_the_environment_is_mended(client: ClaudeCode) -> None:
    path = client.write("abc", *TALK)
    wrong = client.elsewhere(ENGRAM_PROJECT="my shop")
    done = wrong.fire("Stop", session_id="abc", transcript_path=str(path))
    assert "POST /turns: 422 project: " in done.complained
    assert kept() == []

    client.elsewhere(ENGRAM_PROJECT="shop").fire("Stop", session_id="abc", transcript_path=str(path))
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3"]


@pytest.mark.parametrize("raw", ["", "no JSON", "[]", "{}", '{"transcript_path": "/nowhere/x.jsonl"}'])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_an_event_that_is_none_is_passed_over(quiet: ClaudeCode, event: str, raw: str) -> None:
    done = quiet.elsewhere(ENGRAM_URL="http://127.0.0.1:1").fire(event, raw=raw)
    assert (done.printed, done.complained, done.status) == ("", "", 0)


@pytest.mark.parametrize("address", ["ftp://x", "nonsense", "http://", "http://127.0.0.1:notaport"])
def test_an_address_that_is_none_is_passed_over(quiet: ClaudeCode, address: str) -> None:
    assert all_silent(quiet.elsewhere(ENGRAM_URL=address))
