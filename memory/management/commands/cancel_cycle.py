"""Cancel a cycle by hand (B22)."""

import getpass
from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.finish import cancel_cycle
from memory.domain.identity import Actor, ActorKind
from memory.management.command_line import ServiceCommand, usage_error
from memory.models import Cycle


class Command(ServiceCommand):
    help = "Cancel a queued or running cycle: what is complete is applied, the rest goes back."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="cy_…")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = Actor(kind=ActorKind.COMMAND, name=f"cancel_cycle of {getpass.getuser()}")
        try:
            cycle = cancel_cycle(cycle_id=options["id"], actor=actor)
        except Cycle.DoesNotExist:
            raise usage_error(f"There is no cycle {options['id']}.") from None
        self.stdout.write(f"{cycle.pk} {cycle.state}" + ("; it ends soon." if cycle.finished_at is None else "."))
