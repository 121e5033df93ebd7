"""Undo a cycle, or release the episodes that are held since (B22)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.undo import undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.management.command_line import Report, ReportCommand, command_actor, named_cycle, pluralize


class Command(ReportCommand):
    help = (
        "Take back all that a cycle did, and hold its episodes; with --release, let the episodes of a cycle that was "
        "undone take part again."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("id", help="cy_…")
        parser.add_argument("--reason", default="", help="kept in the history of the beliefs that go back")
        parser.add_argument("--release", action="store_true", help="undo nothing, release what undoing it held")

    def run(self, *, id: str, reason: str, release: bool, now: datetime, **options: Any) -> Report:
        cycle = named_cycle(id)
        if release:
            done = {"released": release_quarantined(episodes=select_quarantined(cycle=cycle))}
        else:
            done = undo_cycle(cycle_id=id, actor=command_actor("undo_cycle"), now=now, reason=reason).counts
        return Report(values={"id": id, **done}, lines=[_told(id, done)])


def _told(cycle_id: str, done: dict[str, int]) -> str:
    if "released" in done:
        return f"{cycle_id}: {pluralize(done['released'], 'episode')} released."
    return (
        f"{cycle_id} undone: {pluralize(done['restored'], 'belief')} as before, {done['invalidated']} invalidated, "
        f"{pluralize(done['evidence'], 'row')} of evidence taken back, {pluralize(done['held'], 'episode')} held."
    )
