"""Change a file that a person may be editing: whole or not at all, and nothing of theirs is lost.

The new content is written beside the file and changes places with it in one step. What comes out must be what the
change was made of; if a person saved meanwhile, theirs is put back and the change made again. The names beside the file
are those of the server's memory/publishing/files.py: each puts right what the other was killed at.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import stat
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Optional  # noqa: UP035 - for 3.9

from memory_server import Unusable

_MOST_BYTES = 10_000_000
_OUR_FOLDERS = (".claude", "memory")  # are made within a folder that is there
_SPARE = ".engram-"  # in the name of a file that waits to change places, or has
_SPARE_NAME = re.compile(rf"{re.escape(_SPARE)}(?P<was>[0-9a-f]{{32}})-(?P<becomes>[0-9a-f]{{32}})-[0-9a-f]+")
_PART = ".engram.part-"


@contextmanager
def opened_file(path: Path, *, ends_at: float, is_made: bool = False) -> Iterator[File]:
    """Open a file's folder, of which `.claude/memory` is never a link and made if wanted; other folders are there."""
    ours = _OUR_FOLDERS if path.parent.parts[-2:] == _OUR_FOLDERS else ()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with ExitStack() as opened:
        folder = os.open(path.parents[len(ours)], flags)
        opened.callback(os.close, folder)
        for part in ours:
            if is_made:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder)
            folder = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, folder)
        yield File(folder, path.name, ends_at)


class File:
    """A file in an open folder, and the moment until which others are waited for."""

    def __init__(self, folder: int, name: str, ends_at: float) -> None:
        self.folder, self.name, self.ends_at = folder, name, ends_at

    def read(self, name: str = "") -> Optional[bytes]:  # noqa: UP045 - for 3.9
        """Return the bytes that are there; None where there is no file."""
        try:
            with self._opened(name or self.name) as opened:
                return _read_all(opened)
        except FileNotFoundError:
            return None

    def leftovers(self) -> list[str]:
        """Return what writers left beside the file: those that write now, and those that were killed."""
        return [
            name for name in os.listdir(self.folder) if name.startswith(self._beside(_PART)) or self._spare_name(name)
        ]

    def _spare_name(self, name: str) -> Optional[re.Match[str]]:  # noqa: UP045 - for 3.9
        return _SPARE_NAME.fullmatch(name[len(self._beside("")) :]) if name.startswith(self._beside("")) else None

    def change(self, change: Callable[[bytes], bytes]) -> bytes:
        """Put what is made of the file's bytes in their place, and return it; again if a person saved meanwhile."""
        found = self.read() or b""
        if change(found) == found and not self.leftovers():
            return found
        with self._locked():
            self._recover()
            while True:
                old = self.read()
                new = change(old or b"")
                if new == (old or b"") or self._replace(old, new):
                    return new
                self._wait()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock file, which is never deleted: of two that delete and make it, both would hold it."""
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(f"{self.name}.lock", flags, 0o600, dir_fd=self.folder)
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self._wait()
            yield
        finally:
            os.close(lock)

    def _wait(self) -> None:
        if time.monotonic() > self.ends_at:
            raise Unusable(f"{self.name} is held, or being saved, by somebody else")
        time.sleep(0.02)

    def _recover(self) -> None:
        """Put right what a killed writer left: a person's bytes that came out are put back, all else goes."""
        for name in self.leftovers():
            named = self._spare_name(name)
            if named:
                was, becomes = named.group("was", "becomes")
                found = digest(self.read(name) or b"")
                if found not in (was, becomes):
                    is_ours = digest(self.read() or b"") == becomes  # or else they saved again: both are theirs
                    os.replace(name, self.name if is_ours else f"{self.name}.rescued-{found}",
                               src_dir_fd=self.folder, dst_dir_fd=self.folder)  # fmt: skip
                    continue
            os.unlink(name, dir_fd=self.folder)

    def _replace(self, old: Optional[bytes], new: bytes) -> bool:  # noqa: UP045 - for 3.9
        """Let new bytes take the file's place; return whether what they replaced is what they were made of."""
        try:
            with self._spare(old, new) as (spare, ours):
                if old is None:
                    os.link(spare, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
                    return True
                with self._opened(self.name) as goes:
                    is_held = _lease(goes)
                    return _read_all(goes) == old and self._exchange(spare, ours, goes, old, is_held)
        except (FileExistsError, FileNotFoundError, BlockingIOError):
            return False  # somebody made it, deleted it, or has it open for writing
        finally:
            os.fsync(self.folder)

    @contextmanager
    def _spare(self, old: Optional[bytes], new: bytes) -> Iterator[tuple[str, int]]:  # noqa: UP045 - for 3.9
        """Write a file beside, whole on disk before it has its name; at the end it goes, as long as it is ours."""
        token = os.urandom(4).hex()
        part = f"{self._beside(_PART)}{token}"
        spare = f"{self._beside(_SPARE)}{digest(old or b'')}-{digest(new)}-{token}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=self.folder), "wb") as file:
            ours = os.fstat(file.fileno()).st_ino
            try:
                file.write(new)
                file.flush()
                self._take_over_rights(file.fileno())
                os.fsync(file.fileno())
                os.rename(part, spare, src_dir_fd=self.folder, dst_dir_fd=self.folder)
                yield spare, ours
            finally:
                for name in (part, spare):
                    with suppress(FileNotFoundError):
                        if self._inode(name) == ours:
                            os.unlink(name, dir_fd=self.folder)

    def _take_over_rights(self, written: int) -> None:
        try:
            seen = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            os.fchmod(written, 0o644)
            return
        os.fchmod(written, stat.S_IMODE(seen.st_mode))
        with suppress(PermissionError):
            os.fchown(written, seen.st_uid, seen.st_gid)

    def _exchange(self, spare: str, ours: int, goes: int, old: bytes, is_held: bool) -> bool:
        """Let the file and the spare one change places; if what came out is not what should, put it back."""
        if not _exchange_names(self.folder, spare, self.name):
            os.rename(spare, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            return True
        placed, came_out = ours, self._inode(spare)
        is_right = came_out == os.fstat(goes).st_ino and _read_all(goes) == old
        if is_right and not (is_held and _is_wanted(goes)):
            os.unlink(spare, dir_fd=self.folder)
            return True
        while True:  # what a person saved goes back, until what comes out is what was put in
            _exchange_names(self.folder, spare, self.name)
            expected, placed, came_out = placed, came_out, self._inode(spare)
            if came_out == expected:
                os.unlink(spare, dir_fd=self.folder)
                return False

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = os.open(name, flags, dir_fd=self.folder)
        try:
            seen = os.fstat(opened)
            if not stat.S_ISREG(seen.st_mode) or seen.st_size > _MOST_BYTES:
                raise Unusable(f"{name} is no ordinary file, or has more than {_MOST_BYTES} bytes")
            yield opened
        finally:
            os.close(opened)

    def _inode(self, name: str) -> int:
        return os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_ino

    def _beside(self, ending: str) -> str:
        return f".{self.name}{ending}"


def _read_all(opened: int) -> bytes:
    read = bytearray()
    while block := os.pread(opened, 1 << 20, len(read)):
        read += block
    return bytes(read)


def digest(content: bytes) -> str:
    """Return a hash of bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def _lease(opened: int) -> bool:
    """Hold off who wants to write into an open file until it is closed; tell whether this system can.

    Raises BlockingIOError where somebody has it open for writing.
    """
    import fcntl

    try:
        fcntl.fcntl(opened, _F_SETSIG, signal.SIGURG)  # tells that somebody waits; by itself it does nothing
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        raise
    except (OSError, AttributeError):
        return False
    return True


_F_SETSIG = 10  # Linux: which signal tells of a lease that somebody waits for


def _is_wanted(opened: int) -> bool:
    """Tell of a file that is held whether somebody waits to write into it."""
    import fcntl

    return fcntl.fcntl(opened, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def _exchange_names(folder: int, one: str, other: str) -> bool:
    """Let two files change names in one step; return False where the system or its file system cannot."""
    import ctypes

    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return False
    if call(folder, os.fsencode(one), folder, os.fsencode(other), 2) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), one)
