"""The file of a backup: a ZIP with PostgreSQL's own dump and a manifest that says what must come out of it."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

FORMAT = "engram-backup"
VERSION = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"
CHUNK = 1024 * 1024


class BackupError(Exception):
    """A backup that cannot be written, read or restored; nothing has been changed unless the message says so."""


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
    content = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    archive.writestr(MANIFEST, json.dumps(content, indent=1))


def inspect_backup(*, file: Path) -> Manifest:
    """Read a backup's manifest, and its dump to the last byte; raise BackupError where anything is not as written."""
    with _opened(file) as archive:
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
    with _opened(file) as archive, archive.open(DUMP) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target, CHUNK)


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
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
    if name != FORMAT:
        raise BackupError(f"{file} is no backup of Engram.")
    if version != VERSION:
        raise BackupError(f"{file} has version {version} of the format, and this release reads {VERSION}.")
    try:
        manifest = Manifest(**content)
    except TypeError as error:
        raise BackupError(f"{file} has a manifest that is not as written: {error}.") from error
    if DUMP not in archive.namelist():
        raise BackupError(f"{file} is damaged: it has no dump.")
    return manifest
