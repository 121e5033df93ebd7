"""Change a file that a person may be editing: whole or not at all, and nothing of theirs is lost (P7).

`change_file` is the one way to write. It holds the lock file beside the file, hands the bytes that are there to a
function, writes what that returns into a file of its own, and lets the two change places in one step. What comes out
must be what the function was given: if a person has saved meanwhile, theirs is put back, and it is done again on it.
"""

import ctypes
import errno
import fcntl
import hashlib
import os
import re
import secrets
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from http import HTTPStatus
from pathlib import Path

from memory.domain.errors import EngramError
from memory.publishing.folders import UnsafePath, open_folder

LOCK_ENDING = ".lock"
MOST_BYTES = 10_000_000
_PAUSE_SECONDS = 0.02
_SPARE = ".engram-"  # in the name of a file that waits to change places, or has
_SPARE_NAME = re.compile(rf"{re.escape(_SPARE)}(?P<was>[0-9a-f]{{32}})-(?P<becomes>[0-9a-f]{{32}})-[0-9a-f]+")
_PART = ".engram.part-"
RESCUED = ".rescued-"  # in the name of a file that a person had saved when a writer was killed


class FileBusy(EngramError):
    """Somebody else holds the file's lock, or writes the file, for longer than a writer waits."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    wait = 5.0


def change_file(
    *,
    path: Path,
    roots: Sequence[Path],
    change: Callable[[bytes], bytes],
    makes: int = 0,
    seconds: float = 10.0,
    like: str = "",
) -> bool:
    """Put what `change` makes of a file's bytes in their place; return whether that changed any.

    A file that is not there has no bytes; one that shall have none is not made; a new one gets the rights of the file
    beside it that `like` names. `change` may be called more than once.
    Raises UnsafePath, FolderMissing, FileBusy, or OSError where the disk refuses; then the file is as it was.
    """
    ends_at = time.monotonic() + seconds
    folder = open_folder(path=path, roots=roots, makes=makes)
    try:
        with _locked(folder, path.name + LOCK_ENDING, ends_at):
            file = _File(folder=folder, name=path.name, ends_at=ends_at, like=like)
            file.recover()
            return file.change(change)
    finally:
        os.close(folder)


@contextmanager
def _locked(folder: int, name: str, ends_at: float) -> Iterator[None]:
    """Hold a lock file, which is never deleted: of two that delete and make it, both would hold it."""
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as error:
        raise _as_unsafe(name, error) from error
    try:
        _check_is_file(lock, name)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _wait(name, ends_at)
        yield
    finally:
        os.close(lock)


def _wait(name: str, ends_at: float) -> None:
    if time.monotonic() > ends_at:
        raise FileBusy(f"{name} is held by somebody else.")
    time.sleep(_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file in an open folder, of which the lock is held."""

    folder: int
    name: str
    ends_at: float
    like: str = ""

    def change(self, change: Callable[[bytes], bytes]) -> bool:
        """Change the file; again if what was replaced is not what the change was made of."""
        while True:
            old = self.read()
            new = change(old or b"")
            if new == (old or b""):
                return False
            if self._replace(old, new):
                return True
            _wait(self.name, self.ends_at)

    def read(self) -> bytes | None:
        """Return the file's bytes, None where there is no file."""
        try:
            opened = self._open(self.name)
        except FileNotFoundError:
            return None
        with closing(_Descriptor(opened)):
            return _read_all(opened)

    def recover(self) -> None:
        """Put right what a killed writer left: a person's bytes that came out are put back, all else goes."""
        for name in os.listdir(self.folder):
            if name.startswith(f".{self.name}{_PART}"):
                os.unlink(name, dir_fd=self.folder)
            elif named := _SPARE_NAME.fullmatch(name.removeprefix(f".{self.name}")):
                self._recover_spare(name, named["was"], named["becomes"])

    def _recover_spare(self, spare: str, was: str, becomes: str) -> None:
        with closing(_Descriptor(self._open(spare))) as opened:
            found = _digest(_read_all(opened.number))
        if found not in (was, becomes):
            here = self.read()
            if here is not None and _digest(here) == becomes:
                os.rename(spare, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            else:  # the person has saved again since: both are theirs
                rescued = f"{self.name}{RESCUED}{found}"
                os.rename(spare, rescued, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            return
        os.unlink(spare, dir_fd=self.folder)

    def _replace(self, old: bytes | None, new: bytes) -> bool:
        """Let new bytes take the file's place; return whether they did: not where somebody has saved meanwhile."""
        spare = self._write_spare(old, new)
        ours = self._inode(spare)
        try:
            return self._make(spare) if old is None else self._exchange(spare, old)
        finally:
            with suppress(FileNotFoundError):
                if self._inode(spare) == ours:
                    os.unlink(spare, dir_fd=self.folder)
            os.fsync(self.folder)

    def _write_spare(self, old: bytes | None, new: bytes) -> str:
        """Write a file beside, whole on disk before it has its name; a full disk leaves nothing of it."""
        part = f".{self.name}{_PART}{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        written = os.open(part, flags, 0o600, dir_fd=self.folder)
        try:
            with os.fdopen(written, "wb") as file:
                file.write(new)
                file.flush()
                self._take_over_rights(file.fileno())
                os.fsync(file.fileno())
            spare = f".{self.name}{_SPARE}{_digest(old or b'')}-{_digest(new)}-{secrets.token_hex(4)}"
            os.rename(part, spare, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=self.folder)
            raise
        return spare

    def _take_over_rights(self, written: int) -> None:
        seen = self._stat(self.name) or (self._stat(self.like) if self.like else None)
        if seen is None:
            os.fchmod(written, 0o644)
            return
        os.fchmod(written, stat.S_IMODE(seen.st_mode))
        with suppress(PermissionError):
            os.fchown(written, seen.st_uid, seen.st_gid)

    def _make(self, spare: str) -> bool:
        """Give the new file its name; return whether nobody was faster."""
        try:
            os.link(spare, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except FileExistsError:
            return False
        return True

    def _exchange(self, spare: str, old: bytes) -> bool:
        """Let two files change places while nobody writes the one that goes; return whether they did for good."""
        try:
            goes = self._open(self.name)
        except FileNotFoundError:
            return False
        with closing(_Descriptor(goes)):
            lease = _take_lease(goes)
            if lease is _Lease.REFUSED or _read_all(goes) != old:
                return False
            try:
                return self._swap(spare, goes, old, lease)
            except FileNotFoundError:  # deleted meanwhile; what came out stays beside, for whoever writes next
                return False

    def _swap(self, spare: str, goes: int, old: bytes, lease: "_Lease") -> bool:
        """Exchange two names; if what came out is not what should, put it back: a person has saved it."""
        placed = self._inode(spare)
        if not exchange_names(folder=self.folder, one=spare, other=self.name):
            return True
        came_out = self._inode(spare)
        is_right = came_out == os.fstat(goes).st_ino and _read_all(goes) == old
        if is_right and not (lease is _Lease.HELD and _is_wanted(goes)):
            os.unlink(spare, dir_fd=self.folder)
            return True
        while True:  # until what comes out is what was put in: they may save again at any time
            exchange_names(folder=self.folder, one=spare, other=self.name)
            expected, placed, came_out = placed, came_out, self._inode(spare)
            if came_out == expected:  # ours, or what they have saved over since
                os.unlink(spare, dir_fd=self.folder)
                return False

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _inode(self, name: str) -> int:
        return os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_ino

    def _open(self, name: str) -> int:
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _as_unsafe(name, error) from error
        try:
            _check_is_file(opened, name)
        except UnsafePath:
            os.close(opened)
            raise
        return opened


@dataclass(frozen=True, slots=True)
class _Descriptor:
    """An open file, for `closing`."""

    number: int

    def close(self) -> None:
        os.close(self.number)


def _read_all(opened: int) -> bytes:
    size = os.fstat(opened).st_size
    if size > MOST_BYTES:
        raise UnsafePath(f"The file has {size} bytes, more than {MOST_BYTES}: this is no MEMORY.md.")
    read, place = bytearray(), 0
    while block := os.pread(opened, 1 << 20, place):
        read += block
        place += len(block)
    return bytes(read)


def _check_is_file(opened: int, name: str) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise UnsafePath(f"{name} is no ordinary file.")


def _as_unsafe(name: str, error: OSError) -> Exception:
    is_link = error.errno in (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO)
    return UnsafePath(f"{name} is a link, or no ordinary file.") if is_link else error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


class _Lease(Enum):
    """What the system says of a file that is about to be replaced."""

    HELD = "held"  # nobody writes it, and who wants to waits until we are done
    REFUSED = "refused"  # somebody has it open to write into it
    UNKNOWN = "unknown"  # this system, or its file system, cannot tell


def _take_lease(opened: int) -> _Lease:
    if not hasattr(fcntl, "F_SETLEASE"):
        return _Lease.UNKNOWN
    try:
        fcntl.fcntl(opened, _F_SETSIG, signal.SIGURG)  # tells that somebody waits; by itself it does nothing
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return _Lease.REFUSED if error.errno == errno.EAGAIN else _Lease.UNKNOWN
    return _Lease.HELD


_F_SETSIG = 10  # Linux: which signal tells of a lease that somebody waits for


def _is_wanted(opened: int) -> bool:
    """Tell of a lease that is held whether somebody waits to write."""
    return fcntl.fcntl(opened, fcntl.F_GETLEASE) == fcntl.F_UNLCK


def exchange_names(*, folder: int, one: str, other: str) -> bool:
    """Let two files of a folder change names in one step; raise FileNotFoundError where one is missing.

    Where the file system cannot, the first takes the other's name, and the other is gone: then return False.
    """
    call, flags = _exchange_call()
    if call is not None:
        if call(folder, os.fsencode(one), folder, os.fsencode(other), flags) == 0:
            return True
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise OSError(number, os.strerror(number), one)
    os.rename(one, other, src_dir_fd=folder, dst_dir_fd=folder)
    return False


@cache
def _exchange_call() -> tuple[Callable[..., int] | None, int]:
    """Return the system's call: renameat2 with RENAME_EXCHANGE of Linux, renameatx_np with RENAME_SWAP of macOS."""
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    return call, 2
