"""PostgreSQL's own programs: from the embedded server's package, or from the PATH where they fit the server better."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from django.db import connection
from psycopg.conninfo import make_conninfo

from beliefsite.backups.archive import BackupError
from beliefsite.embedded.postgres import programs_folder

_TARGET = {"host", "port", "user", "dbname", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """A folder with pg_dump, pg_restore and psql of one version, and the database they are to work on."""

    folder: Path
    major: int
    target: str
    password: str | None

    @contextmanager
    def running(self, name: str, *words: str, stdin: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program on the database while the body reads what it says; raise BackupError where it fails."""
        environment = os.environ | ({"PGPASSWORD": self.password} if self.password else {})
        with TemporaryFile() as complaints:
            process = subprocess.Popen(  # noqa: S603  (PostgreSQL's own programs, our own words)
                [self.folder / name, *words],
                stdin=stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE if stdin is None else subprocess.DEVNULL,
                stderr=complaints,
                env=environment,
            )
            try:
                yield process
                process.wait()
            finally:
                _end(process)
            if process.returncode:
                raise BackupError(f"{name} failed: {_tail(complaints)}")


def programs_for_database() -> Programs:
    """Choose the programs for the server that Django uses: of its own version, else the next newer.

    Older ones refuse a newer server.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    fitting = [(major, folder) for major, folder in _candidates() if major >= server]
    if not fitting:
        raise BackupError(f"There are no pg_dump, pg_restore and psql for PostgreSQL {server} on the PATH.")
    major, folder = min(fitting, key=lambda candidate: candidate[0])
    parameters = connection.get_connection_params()
    target = make_conninfo("", **{name: parameters[name] for name in _TARGET & parameters.keys()})
    return Programs(folder=folder, major=major, target=target, password=parameters.get("password"))


def _candidates() -> Iterator[tuple[int, Path]]:
    on_path = shutil.which("pg_dump")
    for folder in (programs_folder(), Path(on_path).parent if on_path else None):
        if folder and all((folder / name).exists() for name in ("pg_dump", "pg_restore", "psql")):
            yield _major(folder / "pg_dump"), folder


def _major(program: Path) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    found = re.search(r"\b(\d+)[.\d]*", said)
    return int(found[1]) if found else 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let nothing of an unfinished program go on."""
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def _tail(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    return " ".join(lines[-3:]) or "it said nothing."
