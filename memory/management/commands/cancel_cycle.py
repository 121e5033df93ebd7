"""Cancel a cycle by hand (B22)."""

from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.finish import cancel_cycle
from memory.management.command_line import ServiceCommand, command_actor, named_cycle


class Command(ServiceCommand):
    help = "Cancel a queued or running cycle: what is complete is applied, the rest goes back."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="cy_…")

    def handle(self, *, id: str, **options: Any) -> None:
        cycle = cancel_cycle(cycle_id=named_cycle(id).pk, actor=command_actor("cancel_cycle"))
        self.stdout.write(f"{cycle.pk} {cycle.state}" + ("; it ends soon." if cycle.finished_at is None else "."))
