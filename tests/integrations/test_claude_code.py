"""The plugin for Claude Code, its scripts run as the client runs them, against a server that is really there."""

import ast
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memory.ingest.importers.claude_code import read_transcript
from memory.ingest.importers.found import FoundTurn
from memory.models import Episode, Turn, Workspace
from memory.models.surfacing import Surfaced
from tests import factories
from tests.api.caller import Caller
from tests.integrations.client import PLUGIN, ClaudeCode, said

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = ("", 0)


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture
def key(workspace: Workspace) -> str:
    return factories.key("read", "write", workspace=workspace)[1]


@pytest.fixture
def client(live_server: Any, key: str, tmp_path: Path) -> ClaudeCode:
    """Return a client beside a server that answers; a busy machine gets more time than a person would wait."""
    environment = {
        "ENGRAM_URL": live_server.url, "ENGRAM_API_KEY": key, "ENGRAM_RECOLLECTIONS_TIMEOUT_MS": "10000",
        "ENGRAM_TURNS_TIMEOUT_MS": "10000", "ENGRAM_STATUS_TIMEOUT_MS": "10000", "ENGRAM_HOOK_DEBUG": "1",
        "CLAUDE_PLUGIN_DATA": str(tmp_path / "data"), "ENGRAM_PROJECT": "", "ENGRAM_USER": "",
    }  # fmt: skip
    return ClaudeCode(folder=tmp_path, environment=environment)


def elsewhere(client: ClaudeCode, **environment: str) -> ClaudeCode:
    return ClaudeCode(folder=client.folder, environment={**client.environment, **environment})


def test_a_prompt_brings_recollections_as_context(client: ClaudeCode, key: str) -> None:
    """B16: one JSON object, as the client reads it; what was shown to the session is remembered."""
    Caller(key).post("/episodes", {"text": "Mara prefers tabs over spaces – always.", "session": "s0"})
    done = client.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?")
    assert (done.status, done.complained) == (0, "")
    assert json.loads(done.printed) == {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "[Memory flash: Mara prefers tabs over spaces – always.]",
        }
    }
    assert list(Surfaced.objects.values_list("session", flat=True)) == ["abc"]


@pytest.mark.parametrize("prompt", ["", "  ", "/compact", None, 5])
def test_what_is_no_question_brings_nothing(client: ClaudeCode, key: str, prompt: object) -> None:
    Caller(key).post("/episodes", {"text": "Mara prefers tabs.", "session": "s0"})
    done = client.fire("UserPromptSubmit", session_id="abc", prompt=prompt)
    assert (done.printed, done.status) == NOTHING


def test_a_memory_without_anything_to_say_says_nothing(client: ClaudeCode) -> None:
    done = client.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?")
    assert (done.printed, done.complained, done.status) == ("", "", 0)


TALK = (
    said("user", "No, never deploy on a Friday.", "u1"),
    said("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Understood."}], "a1"),
    said("assistant", [{"type": "tool_use", "name": "Bash", "input": {}, "id": "t"}], "a2"),
    said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}], "u2"),
    {"type": "attachment", "uuid": "x1", "attachment": {"content": "[Memory flash: Never on a Friday.]"}},
    said("user", "<command-name>/compact</command-name>", "u3"),
    said("user", "helper", "u4", isSidechain=True),
    said("user", "meta", "u5", isMeta=True),
    said("assistant", [{"type": "text", "text": "It listens on 8443."}], "a3"),
)


def kept() -> list[tuple[str, str, str]]:
    return list(Turn.objects.order_by("number").values_list("turn_id", "role", "content"))


def test_an_answer_s_end_keeps_what_was_said(client: ClaudeCode) -> None:
    """L2: roles are kept, and a turn's id is the transcript's; tools, helpers and the program's own words stay out."""
    path = client.write("abc", *TALK)
    done = client.fire("Stop", session_id="abc", transcript_path=str(path), stop_hook_active=False)
    assert (done.printed, done.complained, done.status) == ("", "", 0)
    assert kept() == [
        ("u1", "user", "No, never deploy on a Friday."),
        ("a1", "assistant", "Understood."),
        ("a3", "assistant", "It listens on 8443."),
    ]
    assert set(Turn.objects.values_list("conversation__session", flat=True)) == {"abc"}


def test_only_what_is_new_is_sent(client: ClaudeCode) -> None:
    """L2: and again from the beginning, where the note of it is lost, it adds nothing."""
    path = client.write("abc", *TALK)
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    client.write("abc", said("user", "Which port?", "u9"))
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    fresh = elsewhere(client, CLAUDE_PLUGIN_DATA=str(client.folder / "other"))
    fresh.fire("SessionEnd", session_id="abc", transcript_path=str(path), reason="other")
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3", "u9"]


def test_what_could_not_be_sent_goes_with_the_next(client: ClaudeCode) -> None:
    """L2: a memory that was away misses nothing."""
    path = client.write("abc", *TALK)
    with silent_port() as port:
        away = elsewhere(client, ENGRAM_URL=f"http://127.0.0.1:{port}", ENGRAM_TURNS_TIMEOUT_MS="300")
        assert away.fire("Stop", session_id="abc", transcript_path=str(path)).status == 0
    assert kept() == []
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    assert len(kept()) == 3


def test_a_line_that_is_being_written_waits(client: ClaudeCode) -> None:
    path = client.write("abc", *TALK)
    whole = json.dumps(said("user", "Later.", "u9")) + "\n"
    with path.open("a") as file:
        file.write(whole[:30])
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    with path.open("a") as file:
        file.write(whole[30:])
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3", "u9"]


@contextmanager
def hearing(*answers: bool) -> Iterator[tuple[int, list[list[str]]]]:
    """Take turns, note their ids by request, and leave those requests without an answer for which that is said."""
    heard: list[list[str]] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append([turn["turn_id"] for turn in body["turns"]])
            if left.pop(0):
                self.send_response(202)
                self.end_headers()
            else:
                ended.wait(20)

        def log_message(self, *_: Any) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, heard
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


MANY = [said("user", f"Turn {number}.", f"u{number}") for number in range(150)]
LONG = [said("user", "A paragraph of some length.\n\n" * 110_000, "u1")]


@pytest.mark.parametrize("lines", [MANY, LONG], ids=["many lines", "one long line"])
def test_a_backlog_goes_on_where_its_time_was_over(client: ClaudeCode, lines: list[dict[str, Any]]) -> None:
    """L2: what was taken before a hook was cut off is noted, within a line, too."""
    path = client.write("abc", *lines)
    with hearing(True, False, True) as (port, heard):
        short = elsewhere(client, ENGRAM_URL=f"http://127.0.0.1:{port}", ENGRAM_TURNS_TIMEOUT_MS="3000")
        for _ in range(3):
            short.fire("Stop", session_id="abc", transcript_path=str(path))
    first, cut_off, again = heard
    assert cut_off == again
    assert len(first) + len(again) == len(set(first + again)) > 64


def test_a_line_that_is_too_long_holds_nothing_up(client: ClaudeCode) -> None:
    """L2: it is passed over, and said where somebody looks; what follows is kept."""
    path = client.write("abc", *TALK[:1], {"type": "attachment", "attachment": "x" * (17 * 2**20)}, *TALK[1:])
    done = client.fire("Stop", session_id="abc", transcript_path=str(path))
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3"]
    assert "passed over" in done.complained


def test_what_was_injected_is_not_sent_back(client: ClaudeCode) -> None:
    """Echo: recollections within a message are taken out, and what a message beside them says is kept."""
    ours = "[Memory flash: Mara prefers tabs over spaces.]\n[Belief (0.86): Mara prefers tabs.]"
    path = client.write(
        "abc", said("user", f"Which editor?\n{ours}", "u1"), said("user", ours, "u2"), said("assistant", ours, "a1")
    )
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    assert kept() == [("u1", "user", "Which editor?")]
    assert not Episode.objects.exists()


def test_the_importer_finds_the_same_turns(client: ClaudeCode) -> None:
    """L2: what came in while it was said is not there twice when the folder is imported."""
    long = "A paragraph of some length.\n\n" * 2000
    ours = "Which editor?\n[Memory flash: Mara prefers tabs over spaces.]"
    path = client.write("abc", *TALK, said("user", long, "u8"), said("user", ours, "u9"))
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    with path.open("rb") as stream:
        found = [one.line for one in read_transcript(stream=stream, place="abc", longest=32 * 1024)
                 if isinstance(one, FoundTurn)]  # fmt: skip
    assert [(line["turn_id"], line["role"], line["content"]) for line in found] == kept()


def test_the_project_and_user_of_the_environment_go_along(client: ClaudeCode, key: str) -> None:
    path = client.write("abc", *TALK)
    mine = elsewhere(client, ENGRAM_PROJECT="mill", ENGRAM_USER="mara")
    mine.fire("Stop", session_id="abc", transcript_path=str(path))
    of = Turn.objects.values_list("conversation__project__slug", "conversation__user")
    assert set(of) == {("mill", "mara")}


def test_a_session_begins_with_how_the_memory_stands(client: ClaudeCode, key: str) -> None:
    Caller(key).post("/episodes", {"text": "Mara prefers tabs.", "session": "s0"})
    done = client.fire("SessionStart", session_id="abc", source="startup")
    told = json.loads(done.printed)
    assert told["systemMessage"] == "Engram remembers: 1 episodes, 0 beliefs, 1 wait for consolidation."
    assert done.context == told["systemMessage"]
    assert told["hookSpecificOutput"]["hookEventName"] == "SessionStart"


# --- Failing open


@contextmanager
def silent_port() -> Iterator[int]:
    """Listen and never answer."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


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
    return elsewhere(
        client, ENGRAM_HOOK_DEBUG="", ENGRAM_RECOLLECTIONS_TIMEOUT_MS="", ENGRAM_TURNS_TIMEOUT_MS="500",
        ENGRAM_STATUS_TIMEOUT_MS="500",
    )  # fmt: skip


def test_no_server_is_in_nobodys_way(quiet: ClaudeCode) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert all_silent(elsewhere(quiet, ENGRAM_URL=f"http://127.0.0.1:{port}"))


def test_a_server_that_never_answers_is_not_waited_for(quiet: ClaudeCode) -> None:
    with silent_port() as port:
        assert all_silent(elsewhere(quiet, ENGRAM_URL=f"http://127.0.0.1:{port}"))


def test_a_server_that_answers_drop_by_drop_is_not_waited_for(quiet: ClaudeCode) -> None:
    drops = [b"HTTP/1.1 200 OK\r\n\r\n", *[b" "] * 100]
    with answering(*drops, pause=0.1) as port:
        assert all_silent(elsewhere(quiet, ENGRAM_URL=f"http://127.0.0.1:{port}"))


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
        assert all_silent(elsewhere(quiet, ENGRAM_URL=f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize("key", ["", "a b\nc"], ids=["none", "broken"])
def test_a_key_that_is_none_is_in_nobodys_way(quiet: ClaudeCode, key: str) -> None:
    assert all_silent(elsewhere(quiet, ENGRAM_API_KEY=key), within=5.0)
    assert kept() == []


def test_a_key_that_is_refused_is_told_at_the_start_alone(client: ClaudeCode) -> None:
    """The person can mend it; a prompt goes on without, and who debugs sees why."""
    refused = elsewhere(client, ENGRAM_API_KEY="engram_wrong")
    told = json.loads(refused.fire("SessionStart", session_id="abc", source="startup").printed)
    assert list(told) == ["systemMessage"]
    assert told["systemMessage"].startswith("Engram does not take its key, and remembers nothing: ")

    asked = refused.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?")
    assert (asked.printed, asked.status) == ("", 0)
    assert asked.complained.startswith("engram: POST /recollections: 401 ")


def test_turns_wait_until_the_project_of_the_environment_is_mended(client: ClaudeCode) -> None:
    path = client.write("abc", *TALK)
    wrong = elsewhere(client, ENGRAM_PROJECT="my shop")
    done = wrong.fire("Stop", session_id="abc", transcript_path=str(path))
    assert "POST /turns: 422 project: " in done.complained
    assert kept() == []

    elsewhere(client, ENGRAM_PROJECT="shop").fire("Stop", session_id="abc", transcript_path=str(path))
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3"]


@pytest.mark.parametrize("raw", ["", "no JSON", "[]", "{}", '{"transcript_path": "/nowhere/x.jsonl"}'])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_an_event_that_is_none_is_passed_over(quiet: ClaudeCode, event: str, raw: str) -> None:
    done = elsewhere(quiet, ENGRAM_URL="http://127.0.0.1:1").fire(event, raw=raw)
    assert (done.printed, done.complained, done.status) == ("", "", 0)


@pytest.mark.parametrize("address", ["ftp://x", "nonsense", "http://", "http://127.0.0.1:notaport"])
def test_an_address_that_is_none_is_passed_over(quiet: ClaudeCode, address: str) -> None:
    assert all_silent(elsewhere(quiet, ENGRAM_URL=address))


# --- The folder


def test_the_scripts_are_for_old_pythons_and_need_nothing_else() -> None:
    """3.9, and the standard library alone."""
    from sys import stdlib_module_names

    scripts = sorted((PLUGIN / "hooks").glob("*.py"))
    own = {script.stem for script in scripts}
    for script in scripts:
        tree = ast.parse(script.read_text(), feature_version=(3, 9))
        imported = {
            name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
        }
        imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert imported <= stdlib_module_names | own


def test_the_manifest_names_the_plugin_and_its_tools() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], bool(manifest["version"])) == ("engram", True)
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["engram"]
    assert server["type"] == "http"
    assert server["headers"]["Authorization"] == "Bearer ${ENGRAM_API_KEY:-}"
