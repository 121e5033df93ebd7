"""Wait for a cycle to end, sweeping meanwhile, since no beat may be running."""

import time
from collections.abc import Callable

from memory.consolidation.cycle import budget_policy
from memory.consolidation.sweep import sweep
from memory.models import Cycle

_POLL_SECONDS = 0.1


def wait_for_cycle(cycle_id: str, *, on_look: Callable[[Cycle], None] | None = None) -> Cycle:
    """Return the cycle once it has ended; `on_look` sees it at every look, for progress."""
    swept_at = time.monotonic()
    while True:
        cycle = Cycle.objects.get(pk=cycle_id)
        if on_look:
            on_look(cycle)
        if cycle.finished_at:
            return cycle
        if time.monotonic() - swept_at > budget_policy().sweep_seconds:
            sweep()
            swept_at = time.monotonic()
        time.sleep(_POLL_SECONDS)
