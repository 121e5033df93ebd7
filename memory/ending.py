"""Whether this process is about to end: long work asks before each new piece, and begins none."""

from collections.abc import Callable

_ask: Callable[[], bool] = lambda: False  # noqa: E731  (replaced by who runs the process)


def is_ending() -> bool:
    """Tell whether the process was asked to end; what is under way may still be finished."""
    return _ask()


def ask_by(ask: Callable[[], bool]) -> None:
    """Say how to find out; a worker's children learn it from their parent."""
    global _ask
    _ask = ask
