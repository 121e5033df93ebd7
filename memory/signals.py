"""The seam to the processes that run the memory: wake-up signals that workers listen to, so that rows need not know
who does the work, and whether this process is shutting down, which long work asks before each new piece.
"""

from collections.abc import Callable

from django.dispatch import Signal

cycle_ready = Signal()  # cycle_id: str, attempt: int; sent inside the transaction that made the work
turns_due = Signal()  # conversation_ids: list[int]; sent inside the transaction that made the work
remembrance_ready = Signal()  # remembrance_id: int; likewise
_ask: Callable[[], bool] = lambda: False  # noqa: E731  (replaced by who runs the process)


def is_shutting_down() -> bool:
    """Tell whether the process was asked to end; what is under way may still be finished."""
    return _ask()


def set_shutdown_check(ask: Callable[[], bool]) -> None:
    """Say how to find out; a worker's children learn it from their parent."""
    global _ask
    _ask = ask
