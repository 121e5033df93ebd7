"""Where a server keeps its files: computed from its folder alone, so that every process computes the same."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

LONGEST_SOCKET_PATH = 103  # bytes: what macOS takes; Linux takes 107
# Anything else would need quoting in a libpq host, in a broker's URL or in the server's own settings.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")
# Not tempfile.gettempdir(): that follows TMPDIR, which may differ between two processes of one checkout.
SHORT_FOLDER = Path("/tmp")  # noqa: S108  a private folder is made in it, and its owner checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
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
