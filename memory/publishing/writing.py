"""Write our sections into a MEMORY.md and into the archive beside it, or take them out (P2, P3, P8)."""

import glob
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog
from django.conf import settings

from memory.domain.errors import EngramError
from memory.models import MemoryFile
from memory.publishing.files import LOCK_ENDING, RESCUED, change_file
from memory.publishing.folders import FolderMissing, UnsafePath, check_path, open_folder
from memory.publishing.graduation import render_graduates
from memory.publishing.section import put_sections, take_sections

log = structlog.get_logger(__name__)
_ARCHIVE = "-archive"


class SectionStays(EngramError):
    """A file from which our sections cannot be taken out; what was to end stands as it was."""

    field = "path"


def write_sections(*, file: MemoryFile, beliefs: str) -> bool:
    """Write what a file holds, and its archive before it: what had to make room is in one of them at any time.

    Return whether any byte changed. Raises what `change_file` raises.
    """
    memories, archived = render_graduates(file=file)
    path = Path(file.path)
    makes = _count_own_folders(path.parent)
    has_changed = _write_archive(path, partial(_put, "", archived), makes=makes, is_wanted=bool(archived))
    has_changed |= _write(path, partial(_put, beliefs, memories), makes=makes)
    try:
        _clean_rescued(path)
    except (EngramError, OSError) as error:
        log.warning("rescued_file_not_cleaned", workspace=file.workspace_id, file=file.pk, error=str(error))
    return has_changed


def take_sections_out(path: Path) -> None:
    """Take our sections out of a file and its archive; where they are gone there is nothing to do.

    Raise SectionStays.
    """
    try:
        _write_archive(path, _take)
        _write(path, _take)
        _clean_rescued(path)
    except FolderMissing:
        log.info("memory_file_is_gone")
    except (EngramError, OSError) as error:
        raise SectionStays(f"Our section cannot be taken out of {path}: {error}") from error


def _count_own_folders(folder: Path) -> int:
    """P9: count the folders at a path's end that are made where they are missing; a project's own is not."""
    if folder == settings.DEMO_DIR.resolve() or folder.name == ".claude-memory":
        return 1
    return 2 if folder.parts[-2:] == (".claude", "memory") else 0


def _clean_rescued(path: Path) -> None:
    """Take our section out of what was rescued for a person when a writer was killed: no erased word stays in it."""
    for own in (path, archive_path(path)):
        for rescued in path.parent.glob(f"{glob.escape(own.name)}{RESCUED}*"):
            if not rescued.name.endswith(LOCK_ENDING):
                _write(rescued, _take)


def check_target(path: Path) -> Path:
    """Return a path that may be written, with its root's own links resolved; raise UnsafePath."""
    real = check_path(path=path, roots=_roots())
    if real.stem.endswith(_ARCHIVE):
        raise UnsafePath(f"{real} is what the archive of another file would be called.")
    with suppress(FolderMissing):  # it may come
        os.close(open_folder(path=real, roots=_roots()))
    return real


def _roots() -> list[Path]:
    """P2: list the folders below which files may be written; the demo's is the server's own."""
    return [*settings.ENGRAM_MEMORY_MD_ROOTS, settings.DEMO_DIR]


def archive_path(path: Path) -> Path:
    """Return the archive of a file: MEMORY-archive.md of MEMORY.md."""
    return path.with_name(f"{path.stem}{_ARCHIVE}{path.suffix}")


def _write_archive(path: Path, change: Callable[[bytes], bytes], *, makes: int = 0, is_wanted: bool = False) -> bool:
    archive = archive_path(path)
    return (is_wanted or os.path.lexists(archive)) and _write(archive, change, makes=makes, like=path.name)


def _write(path: Path, change: Callable[[bytes], bytes], *, makes: int = 0, like: str = "") -> bool:
    return change_file(
        path=path,
        roots=_roots(),
        change=change,
        makes=makes,
        like=like,
        seconds=settings.POLICY.publishing.lock_seconds,
    )


def _put(beliefs: str, memories: str, content: bytes) -> bytes:
    return put_sections(content=content, beliefs=beliefs, memories=memories)


def _take(content: bytes) -> bytes:
    return take_sections(content=content)
