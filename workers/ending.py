"""Tell a worker's children that it is about to end, so that their steps begin no further model call.

Children do not hear the signal that their parent is ended by. A page of memory that they share with it says so.
"""

import mmap
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from memory.ending import ask_by

_ENDINGS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT)


def share_page() -> mmap.mmap:
    """Make the page, before children are forked, and let steps of this process and its children ask it."""
    page = mmap.mmap(-1, 1)
    ask_by(lambda: page[0] != 0)
    return page


def note_endings(*, page: mmap.mmap) -> None:
    """Note on the page that a signal has come, before Celery's own handler, which may sleep, goes on with it."""
    for number in _ENDINGS:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _noting(page, handler))


def _noting(page: mmap.mmap, handler: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], Any]:
    def note(number: int, frame: FrameType | None) -> Any:
        page[0] = 1
        return handler(number, frame)

    return note
