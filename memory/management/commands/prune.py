"""Take out of recall the beliefs that have faded (R7d)."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from memory.facts.reflection import list_prunable
from memory.facts.reflection import prune as prune_faded
from memory.management.command_line import Report, WorkspaceCommand, command_actor, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "Prune beliefs of whose confidence less than 0.05 is left: never a pinned, published or well evidenced one. A "
        "curator can restore what was pruned."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="list what would be pruned, and change nothing")

    def run(self, *, workspace: Workspace, dry_run: bool, now: datetime, **options: Any) -> Report:
        if dry_run:
            faded = list_prunable(workspace=workspace, now=now)
        else:
            faded = prune_faded(workspace=workspace, actor=command_actor("prune"), now=now)
        told = f"{pluralize(len(faded), 'belief')} {'would be ' if dry_run else ''}pruned."
        return Report(
            values={"pruned": [asdict(one) for one in faded], "dry_run": dry_run},
            lines=[*(f"{one.id} {one.statement}" for one in faded), told],
        )
