"""Waiting for workers: say so when none comes, and end quietly when the person has waited enough."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import OutputWrapper

from memory.domain.lifecycle import CycleState
from memory.models import Cycle

_HINT_SECONDS = 10.0
_HINT = (
    "No worker has taken cycle {cycle} up for {seconds:.0f} s; it waits for one. "
    "`make up` in another terminal starts the workers."
)


class WorkerHint:
    """Looks at a cycle again and again, and says once that no worker takes it up."""

    def __init__(self, *, out: OutputWrapper) -> None:
        self._out = out
        self._waiting_for = ""
        self._since = 0.0
        self._is_said = False

    def __call__(self, cycle: Cycle) -> None:
        if cycle.pk != self._waiting_for:
            self._waiting_for, self._since = cycle.pk, time.monotonic()
        has_waited = time.monotonic() - self._since > _HINT_SECONDS
        if cycle.state == CycleState.QUEUED and has_waited and not self._is_said:
            self._out.write(_HINT.format(cycle=cycle.pk, seconds=_HINT_SECONDS))
            self._is_said = True


@contextmanager
def ending_on_interrupt(*, out: OutputWrapper, message: Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C into one line and the exit status that shells give to it (130)."""
    try:
        yield
    except KeyboardInterrupt:
        out.write(message())
        sys.exit(128 + signal.SIGINT)
