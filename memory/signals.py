"""The wake-ups: workers listen, so that rows need not know who does the work."""

from django.dispatch import Signal

cycle_ready = Signal()  # cycle_id: str, attempt: int; sent inside the transaction that made the work
turns_due = Signal()  # conversation_ids: list[int]; sent inside the transaction that made the work
remembrance_ready = Signal()  # remembrance_id: int; likewise
