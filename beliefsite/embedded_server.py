"""A server that the processes of one checkout share: the first starts it, the last stops it.

Below the server stand its files, the file locks by which processes share it, and the account that runs it where we
are root.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import pwd
import re
import shutil
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar


class EmbeddedServiceError(RuntimeError):
    """An embedded server cannot be used; the message says which, why, and what its log says."""


START_SECONDS = 60.0  # recovery after a crash replays the log first
STOP_SECONDS = 60.0
POLL_SECONDS = 0.02
LONGEST_LOG = 8 * 1024 * 1024  # bytes, looked at on each start
TAIL_LINES = 12


class ServerStartError(EmbeddedServiceError):
    """The server ended, or did not answer in time, while it was started."""


class ServerStopError(EmbeddedServiceError):
    """The server went on running although it was told to stop."""


class FolderError(EmbeddedServiceError):
    """A folder belongs to somebody else, or holds what we did not make."""


class BinariesMissingError(EmbeddedServiceError):
    """No installed package, nor the PATH, has the server for this platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a running server says about itself."""

    name: str
    version: str
    pid: int
    socket: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version}, process {self.pid}, {self.socket}"


class EmbeddedServer(ABC):
    """One server in a folder of its own, reached through a private socket, shared by way of three lock files."""

    title: ClassVar[str]

    def __init__(self, *, layout: ServerFiles) -> None:
        self.layout = layout
        self._use: BinaryIO | None = None

    def start(self) -> None:
        """Start the server, or adopt it, and use it until `stop`, or until this process and its forks have ended."""
        self._make_folder()
        with hold_lock(self.layout.start_lock):
            self._use = self._use or share_lock(self.layout.uses_lock)
            try:
                self._start_or_adopt()
            except ServerStartError:  # it may still be replaying its log: the next start waits again
                self.let_go()
                raise
            except BaseException:  # an interrupt, most likely
                self._leave()
                raise

    def stop(self) -> bool:
        """Stop using the server; the last user stops it. Return whether it was stopped."""
        if self._use is None:
            return False
        with hold_lock(self.layout.start_lock):
            return self._leave()

    def let_go(self) -> None:
        """Stop using the server and leave it as it is: what a fork does with a server its parent started."""
        if self._use is not None:
            self._use.close()
            self._use = None

    @abstractmethod
    def answers(self) -> bool:
        """Return whether the server takes commands now."""

    @abstractmethod
    def facts(self) -> ServerFacts:
        """Ask the running server for its version and process id."""

    @abstractmethod
    def _prepare(self, lock: BinaryIO) -> None:
        """Make the data and clear away what a dead server left; whatever this runs inherits the server's lock."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def _ask_to_stop(self) -> None:
        """Tell the server to end cleanly, if it can hear; telling it twice does no harm."""

    @abstractmethod
    def _account(self) -> Account | None:
        """Return the account that must run the server, None for our own."""

    def _complete(self) -> None:  # noqa: B027  most servers need nothing more
        """Finish what only an answering server can do."""

    def _leave(self) -> bool:
        """Let go, and stop the server if nobody else uses it. Call it only while holding the start lock."""
        self.let_go()
        alone = try_lock(self.layout.uses_lock)
        if alone is None:
            return False
        with alone:
            return self._stop_server()

    def _start_or_adopt(self) -> None:
        lock = self._await_answer_or_end()
        if lock is not None:
            with lock:
                self._make_socket_folder()
                self._prepare(lock)
                self._spawn(lock)
            self._await_start()
        self._complete()

    def _await_answer_or_end(self) -> BinaryIO | None:
        """Return None once a running server answers, or the server's lock once there is none."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.answers():
                return None
            if lock := try_lock(self.layout.server_lock):
                return lock
            time.sleep(POLL_SECONDS)
        raise self._error(ServerStartError, f"runs on {self.layout.data} but does not answer at {self.layout.socket}")

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if not self._lives():
                raise self._error(ServerStartError, "ended while it was starting")
            if time.monotonic() > deadline:
                raise self._error(ServerStartError, f"does not answer after {START_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def _stop_server(self) -> bool:
        if not self._lives():
            return False
        deadline = time.monotonic() + STOP_SECONDS
        while self._lives():
            self._ask_to_stop()  # again and again: one that is just starting does not hear the first
            if time.monotonic() > deadline:
                raise self._error(ServerStopError, f"still runs {STOP_SECONDS:.0f} s after it was told to stop")
            time.sleep(POLL_SECONDS)
        if self.layout.sockets.parent != self.layout.folder:
            shutil.rmtree(self.layout.sockets, ignore_errors=True)
        return True

    def _lives(self) -> bool:
        """Return whether any process of the server is left. Call it only while holding the start lock."""
        lock = try_lock(self.layout.server_lock)
        if lock is None:
            return True
        lock.close()
        return False

    def _spawn(self, lock: BinaryIO) -> None:
        """Run the server in the background, child of nobody here, holding its lock through an inherited descriptor."""
        if self.layout.log.stat().st_size > LONGEST_LOG:
            os.truncate(self.layout.log, 0)
        self._run("/bin/sh", "-c", '"$0" "$@" &', *self._command(), lock=lock)

    def _run(self, *command: str | Path, lock: BinaryIO) -> None:
        """Run a command to its end, with output to the log: a pipe would stay open as long as the server lives."""
        with self.layout.log.open("ab") as log:
            completed = subprocess.run(  # noqa: S603  our own words
                [*self._prefix(), *command],
                check=False,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
        if completed.returncode != 0:
            raise self._error(ServerStartError, f"cannot be started: {Path(command[0]).name} failed")

    def _prefix(self) -> Sequence[str | Path]:
        account = self._account()
        return setpriv_prefix(account, binary=Path(self._command()[0])) if account else []

    def _own(self, path: Path) -> None:
        """Make a folder for the server's account, which then owns it."""
        path.mkdir(mode=0o700, exist_ok=True)
        if account := self._account():
            os.chown(path, account.uid, account.gid)

    def _make_folder(self) -> None:
        """Make the folder, which only its owner may enter; root may work in anybody's."""
        folder = self.layout.folder
        try:
            make_private_folder(folder)
            self._make_shared_files()
        except PermissionError as error:
            user = os.geteuid()
            raise FolderError(f"{self.title}: {folder} is closed to user {user}; run as its owner: {error}") from error
        except OSError as error:
            raise FolderError(f"{self.title}: cannot make {folder}: {error}") from error

    def _make_shared_files(self) -> None:
        """Make the files that each user of the server opens, as the folder's owner even where we are root."""
        owner = owner_of(self.layout.folder) if os.geteuid() == 0 else None
        for path in (self.layout.start_lock, self.layout.uses_lock, self.layout.server_lock, self.layout.log):
            if not path.exists():
                path.touch()
                if owner:
                    os.chown(path, owner.uid, owner.gid)

    def _make_socket_folder(self) -> None:
        """Make the socket's folder, or refuse one that others can enter or that somebody else made first."""
        sockets, account = self.layout.sockets, self._account()
        sockets.mkdir(mode=0o700, exist_ok=True)
        found = sockets.lstat()
        ours = {os.geteuid(), account.uid if account else os.geteuid()}
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours or found.st_mode & 0o077:
            raise FolderError(f"{self.title}: {sockets} is not a private folder of ours; remove it")
        self._own(sockets)
        if sockets.parent != self.layout.folder:
            (self.layout.folder / "sockets-are-in").write_text(f"{sockets}\n")

    def _error(self, kind: type[EmbeddedServiceError], what: str) -> EmbeddedServiceError:
        return kind(f"{self.title} {what}. {log_tail(self.layout.log)}")


def make_private_folder(folder: Path) -> None:
    """Make a folder and what is missing above it. What root makes in a user's folder is the user's, to go on with."""
    missing = list(itertools.takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    owner = owner_of(missing[-1].parent) if missing and os.geteuid() == 0 else None
    for path in reversed(missing):
        path.mkdir(mode=0o700 if path == folder else 0o755, exist_ok=True)
        if owner:
            os.chown(path, owner.uid, owner.gid)


def log_tail(log: Path) -> str:
    """Return a sentence with the last lines of a log."""
    if not log.exists():
        return f"It has written no log at {log}."
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join([f"The last lines of {log}:", *lines])


LONGEST_SOCKET_PATH = 103  # bytes: what macOS takes; Linux takes 107

# Anything else would need quoting in a libpq host, in a broker's URL or in the server's own settings.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")

# Not tempfile.gettempdir(): that follows TMPDIR, which may differ between two processes of one checkout.
SHORT_FOLDER = Path("/tmp")  # noqa: S108  a private folder is made in it, and its owner checked


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFiles:
    """The files of one server; `folder` is absolute, and only its owner may enter it."""

    folder: Path
    socket_name: str

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def start_lock(self) -> Path:
        """Held while somebody starts or stops the server."""
        return self.folder / "start.lock"

    @property
    def uses_lock(self) -> Path:
        """Shared by every process that uses the server."""
        return self.folder / "uses.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server and all its children: the kernel's word on whether it lives."""
        return self.folder / "server.lock"

    @property
    def sockets(self) -> Path:
        """Return the private folder of the socket, a short one outside where the path is too long or unusual."""
        beside = self.folder / "sockets"
        path = os.fsencode(beside / self.socket_name)
        if len(path) <= LONGEST_SOCKET_PATH and PLAIN_PATH.fullmatch(os.fsdecode(path)):
            return beside
        return SHORT_FOLDER / f"engram-{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:20]}"

    @property
    def socket(self) -> Path:
        return self.sockets / self.socket_name


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock alone, waiting for it."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def share_lock(path: Path) -> BinaryIO:
    """Take a share in the lock, waiting while somebody holds it alone."""
    file = path.open("ab")
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def try_lock(path: Path) -> BinaryIO | None:
    """Take the lock alone, or return None at once if anybody else holds it."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


CAP_DAC_READ_SEARCH = 2  # bit numbers of capabilities(7)
CAP_SETPCAP = 8


class AccountError(EmbeddedServiceError):
    """There is no way to run a server as an unprivileged account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user and group by number."""

    uid: int
    gid: int


def owner_of(path: Path) -> Account | None:
    """Return the account a path belongs to, None if it is missing or root's."""
    if not path.exists():
        return None
    facts = path.stat()
    return Account(uid=facts.st_uid, gid=facts.st_gid) if facts.st_uid else None


def unprivileged_account() -> Account:
    """Return the account PostgreSQL runs as where we are root: initdb wants one that has a name."""
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise AccountError("root cannot run PostgreSQL, and this machine has neither a user postgres nor nobody")


def setpriv_prefix(account: Account, *, binary: Path) -> list[str]:
    """Return the words that, before a command, run it as the account but let it pass folders only root may enter."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise AccountError("root needs setpriv (util-linux) to run a server unprivileged; or run as an ordinary user")
    held = _effective_capabilities()
    passing = _passing_capability(held, binary)
    # access(2), by which PostgreSQL finds its programs, heeds capabilities only with this bit. It gives none: they
    # are what is left after the exec, the one above.
    access = ["--securebits=+no_setuid_fixup"] if _has_capability(held, CAP_SETPCAP) else []
    identity = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    rights = [f"--inh-caps=-all,+{passing}", f"--ambient-caps=+{passing}", "--no-new-privs", *access]
    return [setpriv, *identity, *rights, "--"]


def _passing_capability(held: int, binary: Path) -> str:
    """Prefer the right to read and pass; containers often have only the wider one, and it alone runs a 0700 binary."""
    is_enough = _has_capability(held, CAP_DAC_READ_SEARCH) and binary.stat().st_mode & stat.S_IXOTH
    return "dac_read_search" if is_enough else "dac_override"


def _effective_capabilities() -> int:
    """Return the capabilities of this process, as Linux's bit mask; setpriv exists nowhere else."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))


def _has_capability(held: int, capability: int) -> bool:
    return bool(held >> capability & 1)
