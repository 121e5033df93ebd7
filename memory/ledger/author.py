"""Who writes into the ledger."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from memory.domain.actor import Actor, cycle_actor
from memory.history.attribution import attribute_changes
from memory.models import Cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes into the ledger, why and when (domain time), and the cycle that it belongs to, if to one."""

    actor: Actor
    reason: str
    now: datetime
    cycle: Cycle | None = None

    @classmethod
    def of_cycle(cls, cycle: Cycle, *, reason: str) -> Self:
        """Return a cycle as author."""
        return cls(actor=cycle_actor(cycle.pk), reason=reason, now=cycle.now, cycle=cycle)

    def sign(self) -> None:
        """Attribute the changes from here on."""
        attribute_changes(actor=self.actor, reason=self.reason)
