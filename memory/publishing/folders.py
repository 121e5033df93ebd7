"""Open the folder of a published file: below an allowed root, and through no link."""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from memory.domain.errors import EngramError


class UnsafePath(EngramError):
    """A path that must not be written: outside the allowed roots, relative, or with a link or `..` in it."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    field = "path"


class FolderMissing(EngramError):
    """The folder that a path lies in is not there, and is not ours to make."""

    field = "path"


def check_path(*, path: Path, roots: Sequence[Path]) -> Path:
    """Return a path with its root's own links resolved; raise UnsafePath where no allowed root holds it.

    This reads nothing below the root: whether a link lies on the way is seen when the folder is opened.
    """
    if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise UnsafePath(f"{path} must be an absolute path without '..'.")
    for root in roots:
        real = Path(os.path.realpath(root))
        for start in (root, real):
            if start.is_absolute() and path.is_relative_to(start) and path != start:
                return real / path.relative_to(start)
    raise UnsafePath(f"{path} lies below none of the folders that ENGRAM_MEMORY_MD_ROOTS names.")


def open_folder(*, path: Path, roots: Sequence[Path], makes: int = 0) -> int:
    """Return a descriptor of a file's folder, whose last `makes` parts are made where they are missing.

    Every part of the way is opened by itself and must be a folder, never a link: nothing that changes meanwhile leads
    elsewhere. The caller closes it. Raises UnsafePath, FolderMissing or OSError.
    """
    parts = check_path(path=path, roots=roots).parent.parts
    folder = os.open("/", _FOLDER)
    for place, part in enumerate(parts[1:], start=1):
        try:
            inner = _open_part(folder, part, is_ours=place >= len(parts) - makes)
        except OSError as error:
            raise _refusal(Path(*parts[: place + 1]), error) from error
        finally:
            os.close(folder)
        folder = inner
    return folder


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_part(folder: int, part: str, *, is_ours: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not is_ours:
            raise
    with suppress(FileExistsError):  # another process has just made it
        os.mkdir(part, 0o755, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _refusal(path: Path, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return FolderMissing(f"{path} is not there.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return UnsafePath(f"{path} is a link, or no folder.")
    return error
