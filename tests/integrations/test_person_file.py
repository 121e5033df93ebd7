"""P7: the plugin changes a file whole or not at all, to the bytes that the server makes, and no save is lost."""

import fcntl
import multiprocessing
import os
import re
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import memory_md
import person_file
import pytest
from hypothesis import given
from memory_server import Unusable

from memory.publishing import files
from memory.publishing.section import put_sections, take_sections
from tests.publishing.test_section import CONTENTS, SECTION

FORK = multiprocessing.get_context("fork")
OLD, NEW = b"# My notes\n", b"ours\n# My notes\n"
SAVED = b"# My notes\n\nsaved meanwhile\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with a person's notes."""
    (tmp_path / "MEMORY.md").write_bytes(OLD)
    return tmp_path / "MEMORY.md"


def put_on_top(old: bytes) -> bytes:
    return old if old.startswith(b"ours\n") else b"ours\n" + old


def change(path: Path, how: Callable[[bytes], bytes] = put_on_top, seconds: float = 10.0) -> bytes:
    with person_file.opened_file(path, ends_at=time.monotonic() + seconds) as file:
        return file.change(how)


def save(path: Path, content: bytes = SAVED) -> None:
    """Save as an editor does that writes another file and gives it the name."""
    path.with_name("editor").write_bytes(content)
    path.with_name("editor").rename(path)


def names_beside(path: Path) -> set[str]:
    return set(os.listdir(path.parent)) - {path.name, f"{path.name}.lock"}


# --- The bytes


def without_memories(content: bytes) -> bytes:
    """Return bytes in which the server knows no markers of memories, which the plugin leaves alone."""
    return content.replace(b"ENGRAM:MEMORIES", b"ENGRAM:MEMORIEZ")


@given(content=CONTENTS)
def test_any_bytes_become_what_the_server_makes_of_them(content: bytes) -> None:
    known = without_memories(content)
    for section in (SECTION, ""):
        ours = memory_md.put_section(content, section.encode())
        assert without_memories(ours) == put_sections(content=known, beliefs=section, memories="")
    assert without_memories(memory_md.take_section(content)) == take_sections(content=known)


@given(content=CONTENTS)
def test_what_is_put_in_can_be_told_and_a_second_time_changes_nothing(content: bytes) -> None:
    once = memory_md.put_section(memory_md.take_section(content), SECTION.encode())
    assert memory_md._own_part(once).replace(b"\r\n", b"\n") == SECTION.encode()
    assert memory_md.put_section(once, SECTION.encode()) == once


def test_the_names_beside_a_file_are_the_server_s() -> None:
    """Each puts right what the other was killed at, and waits for the other's lock."""
    assert (person_file._PART, person_file._SPARE) == (files._PART, files._SPARE)
    assert person_file.digest(OLD) == files._digest(OLD)
    assert person_file._MOST_BYTES == files.MOST_BYTES


def test_the_server_puts_right_what_the_plugin_was_killed_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged = person_file._exchange_names

    def exchange_and_die(*names: Any) -> bool:
        exchanged(*names)
        os._exit(9)

    monkeypatch.setattr(person_file, "_exchange_names", exchange_and_die)
    killed = FORK.Process(target=change, args=(path,))
    killed.start()
    killed.join()
    assert (path.read_bytes(), len(names_beside(path))) == (NEW, 1)
    files.change_file(path=path, roots=[path.parent], change=lambda old: old + b"more\n")
    assert (path.read_bytes(), names_beside(path)) == (NEW + b"more\n", set())


# --- A person who saves meanwhile


def test_rights_stay_and_a_second_time_nothing_is_written(path: Path) -> None:
    path.chmod(0o640)
    assert change(path) == path.read_bytes() == NEW
    seen = path.stat()
    change(path)
    assert (path.stat().st_ino, path.stat().st_mode & 0o777) == (seen.st_ino, 0o640)
    assert not names_beside(path)


def test_what_is_saved_before_the_change_is_kept(path: Path) -> None:
    def saving(old: bytes) -> bytes:
        if old == OLD and not path.with_name("was").exists():
            path.with_name("was").touch()
            save(path)
        return put_on_top(old)

    assert change(path, saving) == path.read_bytes() == b"ours\n" + SAVED


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_saved_at_the_last_moment_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Between the last look and the exchange, and while what came out is put back."""
    exchanged, saved = person_file._exchange_names, list[bytes]()

    def saving(*names: Any) -> bool:
        if len(saved) < times:
            saved.append(SAVED + b"again\n" * len(saved))
            save(path, saved[-1])
        return exchanged(*names)

    monkeypatch.setattr(person_file, "_exchange_names", saving)
    assert change(path) == path.read_bytes() == b"ours\n" + saved[-1]
    assert not names_beside(path)


def test_a_file_that_is_deleted_at_the_last_moment_begins_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged = person_file._exchange_names

    def deleting(*names: Any) -> bool:
        path.unlink()
        monkeypatch.setattr(person_file, "_exchange_names", exchanged)
        return exchanged(*names)

    monkeypatch.setattr(person_file, "_exchange_names", deleting)
    assert change(path) == path.read_bytes() == b"ours\n"
    assert not names_beside(path)


def test_a_file_that_is_made_at_the_last_moment_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.unlink()
    linked = os.link

    def making(*names: Any, **more: Any) -> None:
        if not path.exists():
            path.write_bytes(SAVED)
        linked(*names, **more)

    monkeypatch.setattr(os, "link", making)
    assert change(path) == path.read_bytes() == b"ours\n" + SAVED


def test_who_writes_into_the_file_or_holds_its_lock_is_waited_for(path: Path) -> None:
    with path.open("ab"), pytest.raises(Unusable):
        change(path, seconds=0.1)
    with path.with_name("MEMORY.md.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unusable):
            change(path, seconds=0.1)
    assert path.read_bytes() == OLD
    assert change(path) == NEW


def test_who_opens_the_file_during_the_exchange_writes_into_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for the exchange, and for its way back: what they opened must still have the name."""
    exchanged, editors = person_file._exchange_names, list[subprocess.Popen[bytes]]()

    def opening(*names: Any) -> bool:
        if not editors:
            editors.append(subprocess.Popen(["sh", "-c", 'echo appended >> "$1"', "sh", str(path)]))
            time.sleep(0.3)
        return exchanged(*names)

    monkeypatch.setattr(person_file, "_exchange_names", opening)
    change(path)
    editors[0].wait()
    change(path)
    assert path.read_bytes() == NEW + b"appended\n"


def write_often(path: Path, number: int) -> None:
    for write in range(40):
        section = SECTION.replace("Mia", f"Writer {number} at {write}").encode()
        change(path, partial(memory_md.put_section, section=section), seconds=60)


@pytest.mark.parametrize("has_one_file", [True, False], ids=["in place", "by another file"])
def test_writers_at_once_lose_no_byte_of_a_person_who_saves(path: Path, has_one_file: bool) -> None:
    writers = [FORK.Process(target=write_often, args=(path, number)) for number in range(4)]
    for writer in writers:
        writer.start()
    content = b""
    for number in range(60):
        content += f"line {number} of the person\n".encode()
        if has_one_file:
            path.write_bytes(content)
        else:
            save(path, content)
        time.sleep(0.005)
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert memory_md.take_section(path.read_bytes()) == content
    assert not names_beside(path)


# --- Killed, or out of space

CALLS = [(os, name) for name in ("open", "pread", "fstat", "stat", "fsync", "rename", "unlink", "fchmod", "fdopen",
                                 "link", "close", "listdir")]  # fmt: skip


def change_until(path: Path, deadly: int) -> None:
    """Change a file and die at one of its calls: before it for an odd number from 1 on, after it for an even."""
    left = deadly

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(9)

    def deadly_call(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            count()
            done = call(*args, **more)
            count()
            return done

        return counted

    for owner, name in (*CALLS, (fcntl, "flock"), (fcntl, "fcntl"), (person_file, "_exchange_names")):
        setattr(owner, name, deadly_call(getattr(owner, name)))
    change(path)
    os._exit(0)


@pytest.mark.parametrize("before", [OLD, None], ids=["a file that is there", "no file"])
def test_a_kill_at_any_call_leaves_the_old_file_or_the_new_one(path: Path, before: bytes | None) -> None:
    after = NEW if before else b"ours\n"
    for deadly in range(1, 300):
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
        child = FORK.Process(target=change_until, args=(path, deadly))
        child.start()
        child.join()
        assert (path.read_bytes() if path.exists() else None) in (before, after), deadly
        if child.exitcode == 0:
            break
        change(path)
        assert (path.read_bytes(), names_beside(path)) == (after, set()), deadly
    assert child.exitcode == 0
    assert deadly > 30


@pytest.mark.parametrize("has_saved_again", [False, True])
def test_what_came_out_when_a_writer_was_killed_is_put_back(path: Path, has_saved_again: bool) -> None:
    """Killed right after the exchange, whose other half held what the person had just saved."""
    path.write_bytes(b"saved again\n" if has_saved_again else NEW)
    name = f".{path.name}.engram-{person_file.digest(OLD)}-{person_file.digest(NEW)}-00000000"
    path.with_name(name).write_bytes(SAVED)
    change(path)
    if has_saved_again:
        [rescued] = names_beside(path)
        assert re.fullmatch(r"MEMORY\.md\.rescued-\w{32}", rescued)
        assert path.with_name(rescued).read_bytes() == SAVED
        assert path.read_bytes() == b"ours\nsaved again\n"
    else:
        assert (path.read_bytes(), names_beside(path)) == (b"ours\n" + SAVED, set())


@pytest.mark.parametrize("call", ["fsync", "rename", "fchmod"])
def test_a_disk_that_refuses_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match="No space"):
        change(path)
    assert (path.read_bytes(), names_beside(path)) == (OLD, set())


def test_a_file_system_that_cannot_exchange_is_written_by_renaming(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_file, "_exchange_names", lambda *_: False)
    assert change(path) == path.read_bytes() == NEW
    assert not names_beside(path)
