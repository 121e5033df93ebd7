"""Propose beliefs that say the same to the next cycle's merge gate (R7, B13)."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.facts.reflection import propose_merges
from memory.management.command_line import Report, WorkspaceCommand, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "Have the next cycle ask whether beliefs that are near enough, and that no rule tells apart, are one. Its gate "
        "decides, and a model; nothing is merged here."
    )

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        proposed = propose_merges(workspace=workspace, now=now)
        lines = [f"{pair.ids[0]} and {pair.ids[1]}: {pair.similarity:.2f} alike" for pair in proposed]
        return Report(
            values=[asdict(pair) for pair in proposed],
            lines=[*lines, f"{pluralize(len(proposed), 'pair')} proposed to the next cycle."],
        )
