"""Waiting for something that other processes do."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.02


def wait_until(
    is_so: Callable[[], bool], *, what: str, seconds: float = PATIENCE_SECONDS, every: float = _POLL_SECONDS
) -> None:
    """Return as soon as something is so; fail, naming it, if it does not become so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(every)
