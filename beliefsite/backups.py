"""Backups: the database and the settings in one file, and the way back.

`write_backup` dumps one snapshot while everything runs on. `restore_backup` puts a backup in the place of the database
in one transaction, checked before and after. The file is a ZIP with PostgreSQL's own dump and a manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.conninfo import make_conninfo

from beliefsite.embedded import postgres_programs
from memory import VERSION
from memory.domain.policy import FORMER_NAMES
from memory.environment import known_variables
from memory.ledger.confidence import find_drift
from memory.models import Workspace

_DUMP_OPTIONS = ("--format=custom", "--no-owner", "--no-privileges", "--no-comments", "--no-password")


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
            _write_archive(target, now=now, with_secrets=with_secrets, on_bytes=on_bytes)
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


def _write_archive(target: IO[bytes], *, now: datetime, with_secrets: bool, on_bytes: Callable[[int], object]) -> None:
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
            release=VERSION,
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
    archive: zipfile.ZipFile, *, programs: PostgresPrograms, snapshot: str, on_bytes: Callable[[int], object]
) -> HashedWriter:
    words = [*_DUMP_OPTIONS, f"--snapshot={snapshot}", f"--dbname={programs.target}"]
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


def _server_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])


# Migrations fill these by themselves, and processes that only run leave signs of life.
_FILLED_BY_THEMSELVES = {
    "django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions",
    "memory_heartbeat", "memory_metriccounter",
}  # fmt: skip
_EMPTY_THE_SCHEMA = (Path(__file__).parent / "empty_schema.sql").read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds: migrations as (app, name), rows by table, settings, and the names of those left out."""

    made_at: str
    release: str
    postgresql: str
    migrations: list[list[str]]
    tables: dict[str, int]
    settings: dict[str, str]
    left_out: list[str]
    dump_bytes: int
    dump_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came of a restore: where the settings and the former data were written, if anywhere."""

    manifest: Manifest
    beliefs: int
    settings_file: Path | None
    former: Path | None


def restore_backup(
    *, file: Path, now: datetime, force: bool, settings_file: Path, on_step: Callable[[str], object] = lambda _: None
) -> Restored:
    """Put a backup in the place of an empty database, with `force` of any of ours, which is backed up first."""
    on_step("reading the backup")
    manifest = inspect_backup(file=file)
    _check_migrations(manifest)
    former = _back_up_present_data(manifest, now=now, force=force, on_step=on_step)
    on_step("restoring")
    _replace_database(file, programs=programs_for_database())
    on_step("checking")
    beliefs = _check_restored(manifest, former=former)
    kept = write_settings(kept=manifest.settings, file=settings_file)
    return Restored(manifest=manifest, beliefs=beliefs, settings_file=kept, former=former)


def _check_migrations(manifest: Manifest) -> None:
    """Refuse what a newer release has made: this one would not know its tables."""
    ours = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = ours.keys() | {replaced for migration in ours.values() for replaced in migration.replaces}
    unknown = [".".join(key) for key in map(tuple, manifest.migrations) if key not in known]
    if unknown:
        raise BackupError(f"The backup was made by another release: {unknown[0]} is not known here.")


def _back_up_present_data(
    manifest: Manifest, *, now: datetime, force: bool, on_step: Callable[[str], object]
) -> Path | None:
    """Make sure that nothing is lost and nobody is disturbed; return the backup of what is there."""
    present = count_rows()
    foreign = present.keys() - manifest.tables.keys() - _own_tables()
    if foreign:
        raise BackupError(f"The database holds a table that is not Engram's: {min(foreign)}. Give Engram its own.")
    others = _count_other_connections()
    if others:
        raise BackupError(f"The database is in use by {others} other connections: stop web, workers and beat first.")
    full = sorted(name for name, count in present.items() if count and name not in _FILLED_BY_THEMSELVES)
    if not full:
        return None
    if not force:
        raise BackupError(f"The database is not empty ({full[0]} has rows): --force backs it up, and replaces it.")
    on_step("backing up what is there")
    return write_backup(to=settings.DATA_DIR / f"before-restore-{now:%Y%m%d-%H%M%S}.backup", now=now)


def _own_tables() -> set[str]:
    models = apps.get_models(include_auto_created=True)
    return {model._meta.db_table for model in models} | {"django_migrations"}


def _count_other_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def _replace_database(file: Path, *, programs: PostgresPrograms) -> None:
    """Empty the schema and fill it from the dump in one transaction, committed only after the dump's last line."""
    connection.close()
    with TemporaryDirectory(dir=settings.DATA_DIR) as folder:
        dump = Path(folder) / "database.dump"
        extract_dump(file=file, to=dump)
        words = ["--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1", f"--dbname={programs.target}"]
        with programs.running("psql", *words, stdin=subprocess.PIPE) as psql:
            assert psql.stdin is not None
            try:
                psql.stdin.write(_EMPTY_THE_SCHEMA)
                _stream_dump(dump, programs=programs, to=psql)
                psql.stdin.write(b"COMMIT;\n")
                psql.stdin.close()
            except BrokenPipeError:
                psql.wait()  # it has failed, and says why


def _stream_dump(dump: Path, *, programs: PostgresPrograms, to: subprocess.Popen[bytes]) -> None:
    options = ("--file=-", "--no-owner", "--no-privileges", "--no-comments")
    with programs.running("pg_restore", *options, str(dump)) as process:
        assert process.stdout is not None
        assert to.stdin is not None
        while chunk := process.stdout.read(CHUNK):
            to.stdin.write(chunk)


def _check_restored(manifest: Manifest, *, former: Path | None) -> int:
    """Compare every table with the manifest, bring the tables up to this release, and every belief to its evidence."""
    way_back = f" What was there before is in {former}." if former else ""
    missing = [name for name, count in manifest.tables.items() if count_rows().get(name) != count]
    if missing:
        raise BackupError(f"The restored database differs from the backup in {missing[0]}.{way_back}")
    call_command("migrate", verbosity=0)
    results = [find_drift(workspace=workspace) for workspace in Workspace.objects.order_by("pk")]
    drifts = [drift for _, found in results for drift in found]
    if drifts:
        raise BackupError(
            f"Restored as it was, but {len(drifts)} values differ from their evidence: see verify_beliefs.{way_back}"
        )
    return sum(checked for checked, _ in results)


BACKUP_FORMAT = "engram-backup"
BACKUP_VERSION = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"
CHUNK = 1024 * 1024


class BackupError(Exception):
    """A backup that cannot be written, read or restored; nothing has been changed unless the message says so."""


class HashedWriter:
    """A file that is only written to, and that knows the size and the SHA-256 of what went into it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash, self.bytes = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        """Write data on, and count it in."""
        self._file.write(data)
        self._hash.update(data)
        self.bytes += len(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_manifest(*, archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Put the manifest into the file, which is whole from then on."""
    content = {"format": BACKUP_FORMAT, "version": BACKUP_VERSION, **asdict(manifest)}
    archive.writestr(MANIFEST, json.dumps(content, indent=1))


def inspect_backup(*, file: Path) -> Manifest:
    """Read a backup's manifest, and its dump to the last byte; raise BackupError where anything is not as written."""
    with _open_archive(file) as archive:
        manifest = _read_manifest(file, archive)
        with archive.open(DUMP) as dump:
            seen = hashlib.sha256()
            while chunk := dump.read(CHUNK):
                seen.update(chunk)
        if seen.hexdigest() != manifest.dump_sha256:
            raise BackupError(f"{file} is damaged: its dump is not the one that was written.")
        return manifest


def extract_dump(*, file: Path, to: Path) -> None:
    """Copy the dump out of a backup."""
    with _open_archive(file) as archive, archive.open(DUMP) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK)


@contextmanager
def _open_archive(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except FileNotFoundError:
        raise BackupError(f"There is no file {file}.") from None
    except zipfile.BadZipFile as error:
        raise BackupError(f"{file} is no backup of Engram, or is damaged: {error}.") from error
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {error}.") from error


def _read_manifest(file: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        content: dict[str, Any] = json.loads(archive.read(MANIFEST))
        name, version = content.pop("format"), content.pop("version")
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise BackupError(f"{file} is no backup of Engram: it has no manifest that can be read.") from error
    if name != BACKUP_FORMAT:
        raise BackupError(f"{file} is no backup of Engram.")
    if version != BACKUP_VERSION:
        raise BackupError(f"{file} has version {version} of the format, and this release reads {BACKUP_VERSION}.")
    try:
        manifest = Manifest(**content)
    except TypeError as error:
        raise BackupError(f"{file} has a manifest that is not as written: {error}.") from error
    if DUMP not in archive.namelist():
        raise BackupError(f"{file} is damaged: it has no dump.")
    return manifest


# They say where this machine keeps things; on another they would lead commands to the wrong database.
SETTINGS_OF_THIS_MACHINE = {
    "DATABASE_URL",
    "REDIS_URL",
    "ENGRAM_DATA_DIR",
    "ENGRAM_TEST_DATABASE",
    "ENGRAM_REAL_TIMEOUTS",
}
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|AUTH)$")
_SECRET_VALUE = re.compile(r"://[^/@\s]+@")  # an address with a name and password in it


def read_settings(*, with_secrets: bool) -> tuple[dict[str, str], list[str]]:
    """Return what the environment sets, and the names of secrets that are left out."""
    kept = (known_variables() | FORMER_NAMES.keys()) - SETTINGS_OF_THIS_MACHINE
    given = {name: os.environ[name] for name in sorted(kept) if os.environ.get(name)}
    if with_secrets:
        return given | {"SECRET_KEY": settings.SECRET_KEY}, []
    left_out = [name for name, value in given.items() if is_secret(name, value)]
    return {name: value for name, value in given.items() if name not in left_out}, left_out


def is_secret(name: str, value: str) -> bool:
    """Tell whether a setting is nobody's business but the operator's."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def write_settings(*, kept: Mapping[str, str], file: Path) -> Path | None:
    """Write settings that differ from today's to a file that is not there yet; return it, None if none differ."""
    if all(os.environ.get(name) == value for name, value in kept.items()):
        return None
    target = next(path for path in _candidate_files(file) if not path.exists())
    lines = [f"{name}='{value}'\n" for name, value in kept.items()]
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.writelines(lines)
    return target


def _candidate_files(file: Path) -> list[Path]:
    """Name the file, and others beside it: what a person wrote is never overwritten."""
    beside = [file.with_name(f"{file.name}.restored{number}") for number in ("", *range(2, 1000))]
    return [file, *beside]


_TARGET = {"host", "port", "user", "dbname", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPrograms:
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
                _end_process(process)
            if process.returncode:
                raise BackupError(f"{name} failed: {_last_lines(complaints)}")


def programs_for_database() -> PostgresPrograms:
    """Choose the programs for the server that Django uses: of its own version, else the next newer.

    Older ones refuse a newer server.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    fitting = [(major, folder) for major, folder in _installed_programs() if major >= server]
    if not fitting:
        raise BackupError(f"There are no pg_dump, pg_restore and psql for PostgreSQL {server} on the PATH.")
    major, folder = min(fitting, key=lambda candidate: candidate[0])
    parameters = connection.get_connection_params()
    target = make_conninfo("", **{name: parameters[name] for name in _TARGET & parameters.keys()})
    return PostgresPrograms(folder=folder, major=major, target=target, password=parameters.get("password"))


def _installed_programs() -> Iterator[tuple[int, Path]]:
    on_path = shutil.which("pg_dump")
    for folder in (postgres_programs(), Path(on_path).parent if on_path else None):
        if folder and all((folder / name).exists() for name in ("pg_dump", "pg_restore", "psql")):
            yield _major_version(folder / "pg_dump"), folder


def _major_version(program: Path) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    found = re.search(r"\b(\d+)[.\d]*", said)
    return int(found[1]) if found else 0


def _end_process(process: subprocess.Popen[bytes]) -> None:
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


def _last_lines(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").strip().splitlines()
    return " ".join(lines[-3:]) or "it said nothing."
