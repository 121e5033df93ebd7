"""Every place in which a word could be found after it was said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from beliefsite.backups import programs_for_database
from beliefsite.embedded_server import ServerFiles
from tests.faults.windows import broker


def dump() -> str:
    """Return the whole database as SQL in plain text."""
    programs = programs_for_database()
    with programs.running("pg_dump", "--dbname", programs.target) as process:
        assert process.stdout
        return str(process.stdout.read(), "utf-8")


def broker_contents() -> Iterator[str]:
    """Yield every key and value of the broker, and what it wrote into its files."""
    with broker() as client:
        for key in client.scan_iter():
            yield f"{key!r} {_value(client, key)!r}"
    for file in (settings.DATA_DIR / "broker").rglob("*"):
        if file.is_file() and not file.is_socket():
            yield file.read_bytes().decode(errors="replace")


def _value(client: Any, key: bytes) -> object:
    readers = {
        b"string": lambda: client.get(key),
        b"list": lambda: client.lrange(key, 0, -1),
        b"set": lambda: client.smembers(key),
        b"zset": lambda: client.zrange(key, 0, -1),
        b"hash": lambda: client.hgetall(key),
    }
    return readers[client.type(key)]()


def database_log() -> str:
    """Return what the embedded server has logged; nothing where another one is used."""
    if not settings.EMBEDDED_DATABASE:
        return ""
    log: Path = ServerFiles(folder=settings.DATA_DIR / "postgres", socket_name="").log
    return log.read_text(errors="replace")


def database_files() -> list[Path]:
    """List the files of the database's tables and indexes; skip where they are on another machine."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        folder = Path(cursor.fetchone()[0])
        cursor.execute("SELECT oid FROM pg_database WHERE datname = current_database()")
        files = folder / "base" / str(cursor.fetchone()[0])
    if not files.is_dir():
        pytest.skip("the database's files are not on this machine")
    return [file for file in files.iterdir() if file.is_file()]
