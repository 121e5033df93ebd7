"""A server that the processes of one checkout share: the first starts it, the last stops it."""

import itertools
import os
import shutil
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from beliefsite.embedded import locks
from beliefsite.embedded.account import Account, change_to, owner_of
from beliefsite.embedded.errors import EmbeddedServiceError
from beliefsite.embedded.layout import Layout

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

    def __init__(self, *, layout: Layout) -> None:
        self.layout = layout
        self._use: BinaryIO | None = None

    def start(self) -> None:
        """Start the server, or adopt it, and use it until `stop`, or until this process and its forks have ended."""
        self._make_folder()
        with locks.exclusive(self.layout.start_lock):
            self._use = self._use or locks.share(self.layout.uses_lock)
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
        with locks.exclusive(self.layout.start_lock):
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
        alone = locks.take(self.layout.uses_lock)
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
            if lock := locks.take(self.layout.server_lock):
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
        lock = locks.take(self.layout.server_lock)
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
        return change_to(account, binary=Path(self._command()[0])) if account else []

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
