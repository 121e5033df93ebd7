"""The plugin keeps the section of a MEMORY.md at a session's start, and leaves the file alone where it cannot."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memory.models import Workspace
from memory.publishing.section import TrustedBelief, put_sections, render_beliefs, take_sections
from tests import factories
from tests.integrations.client import ClaudeCode, Done, silent_port
from tests.integrations.test_hooks_fail_open import answering
from tests.publishing.passes import trusted

pytestmark = pytest.mark.django_db(transaction=True)

MINE = b"# My notes\n\nmilk"
SECTION = render_beliefs(trusted=[TrustedBelief(statement="An old one.", confidence=0.9, evidence=4)], former=[])
OLD = put_sections(content=MINE, beliefs=SECTION, memories="")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a section of before, in the folder that sessions are in."""
    (tmp_path / "MEMORY.md").write_bytes(OLD)
    return tmp_path / "MEMORY.md"


@pytest.fixture
def keeper(client: ClaudeCode) -> ClaudeCode:
    return client.elsewhere(ENGRAM_MEMORY_MD="MEMORY.md", CLAUDE_PROJECT_DIR="")


def start(client: ClaudeCode) -> Done:
    """Begin a session, which is greeted whatever becomes of the file."""
    done = client.fire("SessionStart", session_id="abc", source="startup")
    assert done.status == 0
    return done


def is_greeted(done: Done) -> bool:
    return done.context.startswith("Engram remembers: ") and done.printed.count("\n") == 1


def statements(content: bytes) -> list[str]:
    return [line[2:].split(" (")[0] for line in content.decode().splitlines() if line.startswith("- ")]


def names_beside(path: Path) -> set[str]:
    return {name for name in os.listdir(path.parent) if name.startswith((".MEMORY", "MEMORY"))}


def test_what_is_trusted_takes_the_place_of_what_was(keeper: ClaudeCode, workspace: Workspace, path: Path) -> None:
    trusted(workspace, "Mia prefers the train.")
    done = start(keeper)
    assert is_greeted(done)
    assert done.complained == ""
    assert statements(path.read_bytes()) == ["Mia prefers the train."]
    assert take_sections(content=path.read_bytes()) == MINE
    assert names_beside(path) == {"MEMORY.md", "MEMORY.md.lock"}


def test_it_is_off_unless_a_file_is_named(client: ClaudeCode, workspace: Workspace, path: Path) -> None:
    trusted(workspace, "Mia prefers the train.")
    assert is_greeted(start(client))
    assert path.read_bytes() == OLD
    assert names_beside(path) == {"MEMORY.md"}


@pytest.mark.parametrize("named", [".claude/memory/MEMORY.md", "~/.claude/memory/MEMORY.md", "notes.md"])
def test_a_file_that_is_not_there_is_made(keeper: ClaudeCode, workspace: Workspace, tmp_path: Path, named: str) -> None:
    """P7: with our own folders, below the folder that the client was started in, or a person's own."""
    trusted(workspace, "Mia prefers the train.")
    home, begun = tmp_path / "home", tmp_path / "begun"
    home.mkdir()
    begun.mkdir()
    start(keeper.elsewhere(ENGRAM_MEMORY_MD=named, HOME=str(home), CLAUDE_PROJECT_DIR=str(begun)))
    at = home / named[2:] if named.startswith("~") else begun / named
    assert statements(at.read_bytes()) == ["Mia prefers the train."]


def test_no_other_folder_is_made(keeper: ClaudeCode, workspace: Workspace, tmp_path: Path) -> None:
    trusted(workspace, "Mia prefers the train.")
    for named in ("gone/.claude/memory/MEMORY.md", "gone/MEMORY.md"):
        done = start(keeper.elsewhere(ENGRAM_MEMORY_MD=named))
        assert is_greeted(done)
        assert "No such file or directory" in done.complained
    assert not (tmp_path / "gone").exists()


def test_where_nothing_is_trusted_nothing_is_made(keeper: ClaudeCode, tmp_path: Path) -> None:
    done = start(keeper.elsewhere(ENGRAM_MEMORY_MD=".claude/memory/MEMORY.md"))
    assert done.complained == ""
    assert not (tmp_path / ".claude").exists()


def test_the_section_is_of_the_project_and_user_of_the_environment(
    keeper: ClaudeCode, workspace: Workspace, path: Path
) -> None:
    shop = factories.project(workspace=workspace, slug="my-shop")
    trusted(workspace, "Of the shop.", scope="project", project=shop)
    trusted(workspace, "Of nobody.")
    trusted(workspace, "Of Mia.", user="Mia & Otis")
    start(keeper.elsewhere(ENGRAM_USER="Mia & Otis"))
    assert set(statements(path.read_bytes())) == {"Of nobody.", "Of Mia."}
    start(keeper.elsewhere(ENGRAM_PROJECT_FROM_FOLDER="1", CLAUDE_PROJECT_DIR=str(path.parent / "My Shop"),
                           ENGRAM_MEMORY_MD=str(path)))  # fmt: skip
    assert statements(path.read_bytes()) == ["Of the shop."]


def test_of_a_project_that_nobody_knows_nothing_is_believed(keeper: ClaudeCode, path: Path) -> None:
    done = start(keeper.elsewhere(ENGRAM_PROJECT="bäckerei"))
    assert (path.read_bytes(), done.complained) == (MINE, "")


# --- What was written and is still right


@contextmanager
def tagging(section: str) -> Iterator[tuple[int, list[str | None]]]:
    """Answer with a section and its ETag, or that it is the same; note which ETags came."""
    came: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "memory.md" not in self.path:
                self.send_error(500)
                return
            came.append(self.headers["If-None-Match"])
            self.send_response(304 if came[-1] else 200)
            self.send_header("ETag", '"one"')
            self.send_header("Content-Type", "text/markdown; charset=utf-8")
            self.end_headers()
            if not came[-1]:
                self.wfile.write(section.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, came
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_section_that_is_still_there_is_not_fetched_again(keeper: ClaudeCode, path: Path) -> None:
    """But one that a person changed, moved or took out is, and a file that they deleted is made again."""
    new = SECTION.replace("An old one", "A new one")
    whole = put_sections(content=MINE, beliefs=new, memories="")
    with tagging(new) as (port, came):
        at = keeper.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}")
        start(at)
        seen = path.stat()
        start(at)
        assert path.stat().st_mtime_ns == seen.st_mtime_ns
        path.write_bytes(path.read_bytes() + b" and bread")
        start(at)
        assert came == [None, '"one"', '"one"']
        for changed in (MINE, whole.replace(b"A new", b"My new"), MINE + b"\n" + new.encode(), b""):
            path.write_bytes(changed)
            start(at)
            assert path.read_bytes() == put_sections(content=changed, beliefs=new, memories="")
        path.unlink()
        start(at)
        assert path.read_bytes() == new.encode()
        assert came[3:] == [None] * 5
    for note in (path.parent / "data").rglob("*.json"):
        assert b"A new one" not in note.read_bytes()


def test_the_server_says_when_nothing_changed(keeper: ClaudeCode, workspace: Workspace, path: Path) -> None:
    trusted(workspace, "Mia prefers the train.")
    start(keeper)
    seen = path.stat()
    assert start(keeper).complained == ""
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns)
    trusted(workspace, "Otis drinks tea.")
    start(keeper)
    assert set(statements(path.read_bytes())) == {"Mia prefers the train.", "Otis drinks tea."}


@pytest.mark.parametrize("noted", [b"", b"[]", b'{"etag": 5}', b'{"etag": "\\nX: y", "holds": 1}'])
def test_a_broken_note_is_no_note(keeper: ClaudeCode, workspace: Workspace, path: Path, noted: bytes) -> None:
    trusted(workspace, "Mia prefers the train.")
    start(keeper)
    path.write_bytes(OLD)
    [note] = (path.parent / "data").rglob("*.json")
    note.write_bytes(noted)
    start(keeper)
    assert statements(path.read_bytes()) == ["Mia prefers the train."]


# --- What is in nobody's way


_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
_MARKDOWN = b"HTTP/1.1 200 OK\r\nContent-Type: text/markdown\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"garbage", _PAGE, _PAGE + SECTION.encode(), b"HTTP/1.1 200 OK\r\n\r\n", _MARKDOWN + b"\r\n# Another",
        _MARKDOWN + b"Content-Length: 900\r\n\r\n" + SECTION.encode(), _MARKDOWN + b"Content-Length: 900\r\n\r\n",
        _MARKDOWN + b"\r\n" + SECTION.encode()[:-5], b"HTTP/1.1 500 Oh\r\n\r\n{}", b"HTTP/1.1 403 No\r\n\r\n{}",
        b"HTTP/1.1 404 No\r\n\r\n<html>", b'HTTP/1.1 404 No\r\n\r\n{"errors": null}', b"HTTP/1.1 304 Same\r\n\r\n",
        b'HTTP/1.1 404 No\r\n\r\n{"detail": "no such address"}', b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
    ],
    ids=["nothing", "garbage", "a page", "a page with it", "no type", "other text", "half", "half of nothing",
         "no end", "500", "403", "a page's 404", "an odd 404", "304", "another 404", "elsewhere"],
)  # fmt: skip
def test_an_answer_that_is_none_leaves_the_file_as_it_was(keeper: ClaudeCode, path: Path, answer: bytes) -> None:
    with answering(answer) as port:
        done = start(keeper.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}", ENGRAM_HOOK_DEBUG=""))
    assert (done.complained, path.read_bytes()) == ("", OLD)


def test_a_key_that_is_refused_leaves_the_file_as_it_was(keeper: ClaudeCode, path: Path) -> None:
    done = start(keeper.elsewhere(ENGRAM_API_KEY="engram_wrong"))
    assert "does not take its key" in json.loads(done.printed)["systemMessage"]
    assert "GET /memory.md: 401 " in done.complained
    assert path.read_bytes() == OLD


def test_a_server_that_is_down_or_slow_leaves_the_file_as_it_was(keeper: ClaudeCode, path: Path) -> None:
    quiet = keeper.elsewhere(ENGRAM_HOOK_DEBUG="", ENGRAM_STATUS_TIMEOUT_MS="500")
    with silent_port() as port:
        silent = start(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))
    drops = [_MARKDOWN + b"\r\n", *(bytes([one]) for one in SECTION.encode())]
    with answering(*drops, pause=0.1) as port:
        slow = start(quiet.elsewhere(ENGRAM_URL=f"http://127.0.0.1:{port}"))
    down = start(quiet.elsewhere(ENGRAM_URL="http://127.0.0.1:1"))
    for done in (silent, slow, down):
        assert (done.printed, done.complained, done.seconds < 3) == ("", "", True)
    assert path.read_bytes() == OLD


def _link(path: Path, secret: Path) -> None:
    path.unlink()
    path.symlink_to(secret)


def _folder_link(path: Path, secret: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(secret.parent)


def _lock_link(path: Path, secret: Path) -> None:
    path.with_name("MEMORY.md.lock").symlink_to(secret)


def _pipe(path: Path, secret: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, secret: Path) -> None:
    path.unlink()
    path.mkdir()


def _large(path: Path, secret: Path) -> None:
    os.truncate(path, 10_000_001)


@pytest.mark.parametrize("trap", [_link, _folder_link, _lock_link, _pipe, _folder, _large])
def test_what_is_no_ordinary_file_is_left_alone(
    keeper: ClaudeCode, workspace: Workspace, tmp_path: Path, trap: Callable[[Path, Path], None]
) -> None:
    """P7: and the session is greeted."""
    trusted(workspace, "Mia prefers the train.")
    path, secret = tmp_path / ".claude" / "memory" / "MEMORY.md", tmp_path / "elsewhere" / "MEMORY.md"
    for one in (path, secret):
        one.parent.mkdir(parents=True)
        one.write_bytes(b"secret")
    trap(path, secret)
    done = start(keeper.elsewhere(ENGRAM_MEMORY_MD=".claude/memory/MEMORY.md"))
    assert is_greeted(done)
    assert done.complained
    assert secret.read_bytes() == b"secret"
    assert os.listdir(secret.parent) == ["MEMORY.md"]


def test_sessions_that_begin_at_once_write_one_section(keeper: ClaudeCode, workspace: Workspace, path: Path) -> None:
    trusted(workspace, "Mia prefers the train.")
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(start, [keeper] * 6))
    assert [one.complained for one in done] == [""] * 6
    assert statements(path.read_bytes()) == ["Mia prefers the train."]
    assert take_sections(content=path.read_bytes()) == MINE
    assert names_beside(path) == {"MEMORY.md", "MEMORY.md.lock"}
