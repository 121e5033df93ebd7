"""The plugin for Claude Code, its scripts run as the client runs them, against a server that is really there."""

import ast
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.models import Episode, RememberJob, Turn, TurnEpisode, Workspace
from memory.models.audit import ShownMemory
from tests import factories
from tests.api.caller import Caller
from tests.integrations.client import PLUGIN, TALK, ClaudeCode, kept, said, silent_port

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = ("", 0)


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
    assert list(ShownMemory.objects.values_list("session", flat=True)) == ["abc"]


@pytest.mark.parametrize("prompt", ["", "  ", "/compact", None, 5])
def test_what_is_no_question_brings_nothing(client: ClaudeCode, key: str, prompt: object) -> None:
    Caller(key).post("/episodes", {"text": "Mara prefers tabs.", "session": "s0"})
    done = client.fire("UserPromptSubmit", session_id="abc", prompt=prompt)
    assert (done.printed, done.status) == NOTHING


def test_a_memory_without_anything_to_say_says_nothing(client: ClaudeCode) -> None:
    done = client.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?")
    assert (done.printed, done.complained, done.status) == ("", "", 0)


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
    fresh = client.elsewhere(CLAUDE_PLUGIN_DATA=str(client.folder / "other"))
    fresh.fire("SessionEnd", session_id="abc", transcript_path=str(path), reason="other")
    assert [turn_id for turn_id, *_ in kept()] == ["u1", "a1", "a3", "u9"]


def test_what_could_not_be_sent_goes_with_the_next(client: ClaudeCode) -> None:
    """L2: a memory that was away misses nothing."""
    path = client.write("abc", *TALK)
    with silent_port() as port:
        away = client.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}", ENGRAM_TURNS_TIMEOUT_MS="300")
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
        short = client.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}", ENGRAM_TURNS_TIMEOUT_MS="3000")
        for _ in range(3):
            short.fire("Stop", session_id="abc", transcript_path=str(path))
    first, cut_off, again = heard
    assert cut_off == again
    assert len(first) + len(again) == len(set(first + again)) > 64


def test_erased_turns_hold_nothing_up(client: ClaudeCode) -> None:
    """L4: a transcript that is sent anew goes on behind what was erased of it."""
    path = client.write("abc", *TALK[:1])
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    mine, lena = Workspace.objects.get(), Actor(kind=ActorKind.PERSON, name="lena")
    episode = factories.episode(workspace=mine)
    TurnEpisode.objects.create(workspace=mine, turn=Turn.objects.get(), episode=episode)
    erase_memories(workspace=mine, episodes=Episode.objects.all(), actor=lena, now=factories.NOW)
    for note in (client.folder / "data").rglob("*.json"):
        note.unlink()
    for more in (0, len(TALK)):
        client.write("abc", *TALK[1:][:more])
        assert client.fire("Stop", session_id="abc", transcript_path=str(path)).status == 0
    assert [turn_id for turn_id, *_ in kept()] == ["a1", "a3"]


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
    """L2: what came in while it was said is not there twice when the folder is imported, in parts or as a whole."""
    ours = "Which editor?\n[Memory flash: Mara prefers tabs over spaces.]"
    path = client.write("abc", *TALK, said("user", LONG_MESSAGE, "u8"), said("user", ours, "u9"))
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    before, out = kept(), StringIO()
    workspace = Workspace.objects.get().name
    call_command("import_claude_code", str(client.folder), "--workspace", workspace, "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert (report["stored"], report["known"], report["split"], report["rejected"]) == ({}, 5, 1, [])
    assert kept() == before


LONG_MESSAGE = "".join(f"Übung {number}: der Teig ruht über Nacht 🍞.\n\n" for number in range(2000)) + "ü🍞" * 9000


def test_a_long_message_is_sent_in_parts(client: ClaudeCode) -> None:
    """Bad input, B1: in order, with nothing lost, and once however often it is sent."""
    path = client.write("abc", said("user", LONG_MESSAGE, "u1"), said("assistant", "Understood.", "a1"))
    client.fire("Stop", session_id="abc", transcript_path=str(path))
    again = client.elsewhere(CLAUDE_PLUGIN_DATA=str(client.folder / "other"))
    assert again.fire("SessionEnd", session_id="abc", transcript_path=str(path), reason="other").complained == ""
    *parts, (last, _, _) = kept()
    assert last == "a1"
    assert [key for key, _, _ in parts] == ["u1", *(f"u1:{number}" for number in range(2, len(parts) + 1))]
    is_whole = "".join(content for _, _, content in parts) == LONG_MESSAGE
    assert is_whole
    assert len(parts) > 3
    assert max(len(content.encode()) for _, _, content in parts) <= 32 * 1024
    of = Turn.objects.values_list("role", "conversation__session", "occurred_at").filter(turn_id__startswith="u1")
    assert len(set(of)) == 1


def test_the_project_and_user_of_the_environment_go_along(client: ClaudeCode, key: str) -> None:
    path = client.write("abc", *TALK)
    mine = client.elsewhere(ENGRAM_PROJECT="mill", ENGRAM_USER="mara")
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


def test_a_session_begins_with_what_was_given_up(client: ClaudeCode, workspace: Workspace) -> None:
    """B11, L2, R1: episodes, turns and texts alike."""
    letter = factories.episode(workspace=workspace, state="failed", dead_at=factories.NOW)
    factories.turn(workspace=workspace, state="failed")
    RememberJob.objects.create(
        workspace=workspace, episode=letter, actor="someone", state="failed", created_at=factories.NOW
    )
    told = client.fire("SessionStart", session_id="abc", source="startup").context
    assert told == "Engram remembers: 1 episodes, 0 beliefs, 3 wait for a person."


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
