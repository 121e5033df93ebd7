"""Write a backup: one snapshot of the database, while everything runs on."""

import os
import zipfile
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from beliefsite.backups.archive import CHUNK, DUMP, BackupError, HashedWriter, Manifest, write_manifest
from beliefsite.backups.kept_settings import read_settings
from beliefsite.backups.programs import Programs, programs_for_database

_OPTIONS = ("--format=custom", "--no-owner", "--no-privileges", "--no-comments", "--no-password")


def write_backup(
    *, to: Path, now: datetime, with_secrets: bool = False, on_bytes: Callable[[int], object] = lambda _: None
) -> Path:
    """Write a new file, or one named for the time into a folder; return its path. No file is ever overwritten.

    A file appears under its name only when it is whole.
    """
    file = to / f"engram-{now:%Y%m%d-%H%M%S}.backup" if to.is_dir() else to
    unfinished = file.with_name(f"{file.name}.unfinished")
    try:
        if file.exists():
            raise BackupError(f"{file} is there already.")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            _write(target, now=now, with_secrets=with_secrets, on_bytes=on_bytes)
            target.flush()
            os.fsync(target.fileno())
        os.link(unfinished, file)  # unlike a rename, refuses to replace what has come up meanwhile
    except FileExistsError as error:
        raise BackupError(f"{error.filename2 or error.filename} is there already.") from error
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return file


def _write(target: IO[bytes], *, now: datetime, with_secrets: bool, on_bytes: Callable[[int], object]) -> None:
    """Dump, and count in the same snapshot what a restored database must hold."""
    programs = programs_for_database()
    settings, left_out = read_settings(with_secrets=with_secrets)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT pg_export_snapshot()")
            snapshot = cursor.fetchone()[0]
        dumped = _dump(archive, programs=programs, snapshot=snapshot, on_bytes=on_bytes)
        manifest = Manifest(
            made_at=now.isoformat(),
            release=release(),
            postgresql=_server_version(),
            migrations=[list(key) for key in sorted(MigrationRecorder(connection).applied_migrations())],
            tables=count_rows(),
            settings=settings,
            left_out=left_out,
            dump_bytes=dumped.bytes,
            dump_sha256=dumped.sha256,
        )
        write_manifest(archive=archive, manifest=manifest)


def _dump(
    archive: zipfile.ZipFile, *, programs: Programs, snapshot: str, on_bytes: Callable[[int], object]
) -> HashedWriter:
    words = [*_OPTIONS, f"--snapshot={snapshot}", f"--dbname={programs.target}"]
    with archive.open(DUMP, "w", force_zip64=True) as member, programs.running("pg_dump", *words) as process:
        writer = HashedWriter(member)
        assert process.stdout is not None
        while chunk := process.stdout.read(CHUNK):
            writer.write(chunk)
            on_bytes(len(chunk))
        return writer


def count_rows() -> dict[str, int]:
    """Count the rows of every table."""
    with connection.cursor() as cursor:
        names = sorted(table.name for table in connection.introspection.get_table_list(cursor) if table.type == "t")
        counts = {}
        for name in names:
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(name)}")  # noqa: S608  (a table's own name)
            counts[name] = cursor.fetchone()[0]
    return counts


def release() -> str:
    """Return the release of Engram; it is run from its checkout, and need not be installed as a package."""
    try:
        return version("engram")
    except PackageNotFoundError:
        return "unpackaged"


def _server_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])
