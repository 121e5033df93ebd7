"""P7: a file that a person may be editing is changed whole or not at all, and nothing of theirs is lost."""

import errno
import fcntl
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from memory.publishing import files
from memory.publishing.files import FileBusy, change_file
from memory.publishing.folders import FolderMissing, UnsafePath, check_path
from memory.publishing.section import TrustedBelief, put_sections, render_beliefs, take_sections
from tests.faults.test_full_disk import on_a_small_disk

WRITERS, WRITES, SAVES = 20, 50, 200
FORK = multiprocessing.get_context("fork")
OLD, NEW = b"# My notes\n", b"ours\n# My notes\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with a person's notes, alone in its folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "MEMORY.md").write_bytes(OLD)
    return folder / "MEMORY.md"


def put_on_top(old: bytes) -> bytes:
    return NEW if old == OLD else old


def change(path: Path, how: Callable[[bytes], bytes] = put_on_top, **more: Any) -> bool:
    return change_file(path=path, roots=[path.parent.parent], change=how, **more)


def names_beside(path: Path) -> set[str]:
    return set(os.listdir(path.parent)) - {path.name, f"{path.name}.lock"}


def test_bytes_change_and_a_second_time_nothing_is_written(path: Path) -> None:
    assert change(path)
    assert path.read_bytes() == NEW
    seen = path.stat()
    assert not change(path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns)
    assert not names_beside(path)


def test_a_file_that_is_not_there_is_made_and_one_of_nothing_is_not(path: Path) -> None:
    other = path.with_name("OTHER.md")
    assert not change(other, lambda old: old)
    assert not other.exists()
    assert change(other, lambda old: old + b"first\n")
    assert other.read_bytes() == b"first\n"


def test_rights_stay_as_they_were(path: Path) -> None:
    path.chmod(0o640)
    change(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_new_file_takes_over_the_rights_of_the_one_it_belongs_to(path: Path) -> None:
    path.chmod(0o600)
    archive = path.with_name("MEMORY-archive.md")
    assert change(archive, lambda old: b"archived\n", like=path.name)
    assert archive.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("ending", ["x", "0-1", "-", "0" * 32])
def test_a_file_that_is_only_called_like_ours_is_left_alone(path: Path, ending: str) -> None:
    stranger = path.with_name(f".{path.name}.engram-{ending}")
    stranger.write_bytes(b"not ours\n")
    assert change(path)
    assert stranger.read_bytes() == b"not ours\n"


def test_folders_of_our_own_are_made_and_no_other(tmp_path: Path) -> None:
    """P7: `.claude/memory` within a project; a project that is gone stays gone."""
    (tmp_path / "project").mkdir()
    inside = tmp_path / "project" / ".claude" / "memory" / "MEMORY.md"
    assert change_file(path=inside, roots=[tmp_path], change=lambda _: b"ours\n", makes=2)
    assert inside.read_bytes() == b"ours\n"
    gone = tmp_path / "gone" / ".claude" / "memory" / "MEMORY.md"
    with pytest.raises(FolderMissing, match="gone is not there"):
        change_file(path=gone, roots=[tmp_path], change=lambda _: b"ours\n", makes=2)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("wrong", ["MEMORY.md", "/etc/MEMORY.md", "{root}/a/../b.md", "{root}", "{root}x/b.md", "/"])
def test_a_path_outside_the_roots_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UnsafePath):
        check_path(path=Path(wrong.format(root=tmp_path)), roots=[tmp_path])


def test_a_root_that_is_a_link_itself_is_followed(path: Path, tmp_path: Path) -> None:
    """It is the installation's own choice; what lies below it is not."""
    root = tmp_path / "link"
    root.symlink_to(path.parent)
    assert change_file(path=root / path.name, roots=[root], change=put_on_top)
    assert path.read_bytes() == NEW


def make_link(path: Path, secret: Path) -> Path:
    path.unlink()
    path.symlink_to(secret)
    return path


def make_folder_link(path: Path, secret: Path) -> Path:
    path.with_name("link").symlink_to(secret.parent)
    return path.with_name("link") / secret.name


def make_lock_link(path: Path, secret: Path) -> Path:
    path.with_name("MEMORY.md.lock").symlink_to(secret)
    return path


def make_pipe(path: Path, secret: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


def make_folder(path: Path, secret: Path) -> Path:
    path.unlink()
    path.mkdir()
    return path


@pytest.mark.parametrize("trap", [make_link, make_folder_link, make_lock_link, make_pipe, make_folder])
def test_no_link_is_followed_and_nothing_but_a_file_is_changed(
    path: Path, tmp_path: Path, trap: Callable[[Path, Path], Path]
) -> None:
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    secret.write_bytes(b"secret")
    with pytest.raises(UnsafePath):
        change(trap(path, secret), lambda old: b"ours\n" + old)
    assert secret.read_bytes() == b"secret"


def test_a_link_that_comes_between_check_and_writing_is_not_followed(path: Path, tmp_path: Path) -> None:
    """The folder was opened before: what its name leads to by now is another matter."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / path.name).write_bytes(b"theirs")

    def turn_into_a_link(old: bytes) -> bytes:
        path.parent.rename(tmp_path / "moved")
        path.parent.symlink_to(elsewhere)
        return put_on_top(old)

    change(path, turn_into_a_link)
    assert (elsewhere / path.name).read_bytes() == b"theirs"
    assert (tmp_path / "moved" / path.name).read_bytes() == NEW


def test_a_lock_that_is_held_is_waited_for_so_long(path: Path) -> None:
    with path.with_name("MEMORY.md.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(FileBusy, match="held by somebody else"):
            change(path, seconds=0.1)
    assert path.read_bytes() == OLD


def test_a_file_that_is_open_for_writing_is_waited_for(path: Path) -> None:
    with path.open("ab"), pytest.raises(FileBusy):
        change(path, seconds=0.1)
    assert change(path)


def test_what_a_person_saves_between_reading_and_writing_is_kept(path: Path) -> None:
    saved: list[bytes] = []

    def save_meanwhile(old: bytes) -> bytes:
        if not saved:
            saved.append(b"saved meanwhile\n")
            path.with_name("editor").write_bytes(saved[0])
            path.with_name("editor").rename(path)
        return b"ours\n" + old

    assert change(path, save_meanwhile)
    assert path.read_bytes() == b"ours\nsaved meanwhile\n"


def ours_first(old: bytes) -> bytes:
    return old if old.startswith(b"ours\n") else b"ours\n" + old


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_saved_at_the_last_moment_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Between the last look and the exchange, and while what came out is put back."""
    exchanged, saved = files.exchange_names, list[bytes]()

    def saving(**names: Any) -> bool:
        if len(saved) < times:
            saved.append(b"saved\n" + b"again\n" * len(saved))
            replace_file(path, saved[-1:])
        return exchanged(**names)

    monkeypatch.setattr(files, "exchange_names", saving)
    assert change(path, ours_first)
    assert path.read_bytes() == b"ours\n" + saved[-1]
    assert not names_beside(path)


def test_what_is_written_in_place_at_the_last_moment_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not tell that somebody has the file open."""
    exchanged, editor = files.exchange_names, path.open("ab")

    def saving(**names: Any) -> bool:
        done = exchanged(**names)
        if not editor.closed:
            editor.write(b"in place\n")
            editor.close()
        return done

    monkeypatch.setattr(files, "exchange_names", saving)
    monkeypatch.setattr(files, "_take_lease", lambda opened: files._Lease.UNKNOWN)
    assert change(path, ours_first)
    assert path.read_bytes() == b"ours\n" + OLD + b"in place\n"
    assert not names_beside(path)


def test_a_file_that_is_deleted_at_the_last_moment_begins_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged = files.exchange_names

    def deleting(**names: Any) -> bool:
        path.unlink()
        monkeypatch.setattr(files, "exchange_names", exchanged)
        return exchanged(**names)

    monkeypatch.setattr(files, "exchange_names", deleting)
    assert change(path, ours_first)
    assert path.read_bytes() == b"ours\n"
    assert not names_beside(path)


def write_often(path: Path, number: int) -> None:
    """Publish again and again, as one of many processes."""
    for write in range(WRITES):
        belief = TrustedBelief(statement=f"Writer {number} wrote {write}.", confidence=0.9, evidence=write)
        change(path, partial(_put, render_beliefs(trusted=[belief], former=[])), seconds=120)


def _put(section: str, old: bytes) -> bytes:
    return put_sections(content=old, beliefs=section, memories="")


def append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.write(lines[-1])


def write_in_place(path: Path, lines: list[bytes]) -> None:
    """Save as an editor does that keeps the file: empty for a moment, half written for another."""
    with path.open("wb") as file:
        file.writelines(lines[: len(lines) // 2])
        file.flush()
        time.sleep(0.001)
        file.writelines(lines[len(lines) // 2 :])


def replace_file(path: Path, lines: list[bytes]) -> None:
    beside = path.with_name("editor")
    beside.write_bytes(b"".join(lines))
    beside.rename(path)


@pytest.mark.slow
@pytest.mark.parametrize("save", [append, write_in_place, replace_file])
def test_twenty_writers_lose_no_byte_of_a_person_who_saves(
    path: Path, save: Callable[[Path, list[bytes]], None]
) -> None:
    path.write_bytes(b"")
    writers = [FORK.Process(target=write_often, args=(path, number)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    lines: list[bytes] = []
    for number in range(SAVES):
        lines.append(f"line {number} of the person\n".encode())
        save(path, lines)
        time.sleep(0.005)
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    theirs = take_sections(content=path.read_bytes())
    assert hashlib.sha256(theirs).hexdigest() == hashlib.sha256(b"".join(lines)).hexdigest()
    assert not names_beside(path)


CALLS = [
    *((os, name) for name in ("open", "mkdir", "listdir", "pread", "fstat", "stat", "fsync", "rename", "unlink",
                              "fchmod", "fchown", "fdopen", "link", "close")),
    (fcntl, "flock"), (fcntl, "fcntl"), (files, "exchange_names"),
]  # fmt: skip


def change_until(path: Path, deadly: int) -> None:
    """Change a file and be killed at one of its calls: before it for an odd number from 1 on, after it for an even."""
    left = deadly

    def deadly_call(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            done = call(*args, **more)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return counted

    for owner, name in CALLS:
        setattr(owner, name, deadly_call(getattr(owner, name)))
    change(path)


@pytest.fixture(params=[False, True], ids=["a file that is there", "no file"])
def killed(request: pytest.FixtureRequest, path: Path) -> tuple[Path, bytes | None]:
    """Return a path and what is there before."""
    if request.param:
        path.unlink()
    return path, None if request.param else OLD


def test_a_kill_at_any_call_leaves_the_old_file_or_the_new_one(killed: tuple[Path, bytes | None]) -> None:
    path, before = killed
    after = NEW if before else b"ours\n"
    deaths = 0
    for deadly in range(1, 500):
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
        child = FORK.Process(target=change_until if before else _make_until, args=(path, deadly))
        child.start()
        child.join()
        found = path.read_bytes() if path.exists() else None
        assert found in (before, after), deadly
        if child.exitcode == 0:
            break
        deaths += 1
        change(path, put_on_top if before else _first)
        assert path.read_bytes() == after
        assert not names_beside(path), deadly
    assert child.exitcode == 0
    assert deaths > 30


def _first(old: bytes) -> bytes:
    return old or b"ours\n"


def _make_until(path: Path, deadly: int) -> None:
    globals()["put_on_top"] = _first
    change_until(path, deadly)


def test_what_a_killed_writer_took_out_while_a_person_saved_is_put_back(path: Path) -> None:
    """Killed right after the exchange, whose other half held what the person had just saved."""
    saved, ours = b"saved by a person\n", b"ours\n# My notes\n"
    path.write_bytes(ours)
    digests = [hashlib.sha256(one).hexdigest()[:32] for one in (OLD, ours)]
    path.with_name(f".{path.name}.engram-{digests[0]}-{digests[1]}-00000000").write_bytes(saved)
    change(path, lambda old: old + b"again\n")
    assert path.read_bytes() == saved + b"again\n"
    assert not names_beside(path)


_ON_A_FULL_DISK = """
import json, os, sys
from pathlib import Path
from memory.publishing.files import change_file
folder = Path(sys.argv[1])
path = folder / "notes" / "MEMORY.md"
path.parent.mkdir()
path.write_bytes(b"mine" * 100_000)
with open(folder / "filler", "wb") as filler:
    try:
        while True:
            filler.write(b"x" * 65536)
    except OSError:
        pass
try:
    change_file(path=path, roots=[folder], change=lambda old: b"ours" * 1000 + old)
    told = None
except OSError as error:
    told = error.errno
print(json.dumps([told, path.read_bytes() == b"mine" * 100_000, sorted(os.listdir(path.parent))]))
"""


def test_a_full_disk_leaves_the_old_file_and_an_error(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    tmp_path.chmod(0o755)
    command = [*on_a_small_disk(disk), sys.executable, "-c", _ON_A_FULL_DISK, str(disk)]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [errno.ENOSPC, True, ["MEMORY.md", "MEMORY.md.lock"]]
