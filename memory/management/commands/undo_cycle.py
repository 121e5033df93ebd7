"""Undo a cycle, or release the episodes that are held since (B22)."""

import getpass
import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.consolidation.undo import (
    release_quarantined,
    select_quarantined,
    undo_cycle,
)
from memory.domain.identity import Actor, ActorKind
from memory.management.command_line import ServiceCommand, pluralize, usage_error
from memory.models import Cycle


class Command(ServiceCommand):
    help = (
        "Take back all that a cycle did, and hold its episodes; with --release, let the episodes of a cycle that was "
        "undone take part again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="cy_…")
        parser.add_argument("--reason", default="", help="kept in the history of the beliefs that go back")
        parser.add_argument("--release", action="store_true", help="undo nothing, release what undoing it held")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = _release(options["id"]) if options["release"] else _undo(options["id"], options["reason"])
        except Cycle.DoesNotExist:
            raise usage_error(f"There is no cycle {options['id']}.") from None
        self.stdout.write(json.dumps({"id": options["id"], **done}) if options["json"] else _told(options["id"], done))


def _undo(cycle_id: str, reason: str) -> dict[str, int]:
    actor = Actor(kind=ActorKind.COMMAND, name=f"undo_cycle of {getpass.getuser()}")
    return undo_cycle(cycle_id=cycle_id, actor=actor, now=timezone.now(), reason=reason).counts


def _release(cycle_id: str) -> dict[str, int]:
    held = select_quarantined(cycle=Cycle.objects.get(pk=cycle_id))
    return {"released": release_quarantined(episodes=held)}


def _told(cycle_id: str, done: dict[str, int]) -> str:
    if "released" in done:
        return f"{cycle_id}: {pluralize(done['released'], 'episode')} released."
    return (
        f"{cycle_id} undone: {pluralize(done['restored'], 'belief')} as before, {done['invalidated']} invalidated, "
        f"{pluralize(done['evidence'], 'row')} of evidence taken back, {pluralize(done['held'], 'episode')} held."
    )
