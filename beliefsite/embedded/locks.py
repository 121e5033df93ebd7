"""File locks that the kernel lets go of when their last holder dies, however it dies.

A lock belongs to the open file, which forks and heirs of the descriptor share: so a lock is let go by closing the
file, never by unlocking it, which would take it away from them too.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock alone, waiting for it."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def share(path: Path) -> BinaryIO:
    """Take a share in the lock, waiting while somebody holds it alone."""
    file = path.open("ab")
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def take(path: Path) -> BinaryIO | None:
    """Take the lock alone, or return None at once if anybody else holds it."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
