"""Connect the wake-up signals of memory to a dispatch on commit."""

import gc
from typing import Any

from django.apps import AppConfig
from django.db import transaction


class WorkersConfig(AppConfig):
    name = "workers"

    def ready(self) -> None:
        """Connect the signals; this application is the last, and what is loaded by now stays (see settings)."""
        gc.freeze()
        gc.enable()
        from memory.signals import cycle_ready, remembrance_ready, turns_due

        cycle_ready.connect(dispatch_on_commit, dispatch_uid="workers")
        turns_due.connect(dispatch_turns_on_commit, dispatch_uid="workers")
        remembrance_ready.connect(remember_on_commit, dispatch_uid="workers")


def dispatch_on_commit(*, cycle_id: str, attempt: int, **_: Any) -> None:
    """Send the cycle's first step once its rows are committed; the sweeper covers what is lost in between."""
    from workers import tasks  # reads models, which are not loaded when this module is

    def send() -> None:  # not a partial: Django names a callback that failed, and a partial has no name
        tasks.start_cycle(cycle_id=cycle_id, attempt=attempt)

    transaction.on_commit(send, robust=True)


def dispatch_turns_on_commit(*, conversation_ids: list[int], **_: Any) -> None:
    """Have conversations read once their turns are committed; the sweeper covers what is lost in between."""
    from workers import tasks

    def send() -> None:
        tasks.read_conversations(conversation_ids=conversation_ids)

    transaction.on_commit(send, robust=True)


def remember_on_commit(*, remembrance_id: int, **_: Any) -> None:
    """Send a remembrance once its row is committed, or at once; the sweeper covers what is lost in between."""

    def send() -> None:
        from workers.tasks import remember

        remember.delay(remembrance_id)

    transaction.on_commit(send, robust=True)
