"""Take out of recall the beliefs that have faded (R7d)."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.reflection import list_prunable
from memory.facts.reflection import prune as prune_faded
from memory.management.command_line import ServiceCommand, command_actor, pluralize


class Command(ServiceCommand):
    help = (
        "Prune beliefs of whose confidence less than 0.05 is left: never a pinned, published or well evidenced one. A "
        "curator can restore what was pruned."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--dry-run", action="store_true", help="list what would be pruned, and change nothing")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, dry_run: bool, as_json: bool, **options: Any) -> None:
        found, now = find_workspace(name=workspace), timezone.now()
        if dry_run:
            faded = list_prunable(workspace=found, now=now)
        else:
            faded = prune_faded(workspace=found, actor=command_actor("prune"), now=now)
        if as_json:
            self.stdout.write(json.dumps({"pruned": [asdict(one) for one in faded], "dry_run": dry_run}))
            return
        for one in faded:
            self.stdout.write(f"{one.id} {one.statement}")
        self.stdout.write(f"{pluralize(len(faded), 'belief')} {'would be ' if dry_run else ''}pruned.")
