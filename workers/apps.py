"""Connect the one wake-up signal of memory to a dispatch on commit."""

from typing import Any

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    name = "workers"

    def ready(self) -> None:
        from memory.signals import cycle_ready

        cycle_ready.connect(dispatch_on_commit, dispatch_uid="workers")


def dispatch_on_commit(*, cycle_id: str, attempt: int, **_: Any) -> None:
    """Send the cycle's first step once its rows are committed; the sweeper covers what is lost in between."""
    from functools import partial

    from django.db import transaction

    from workers.canvas import start

    transaction.on_commit(partial(start, cycle_id=cycle_id, attempt=attempt), robust=True)
