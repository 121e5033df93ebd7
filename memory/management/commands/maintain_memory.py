"""Maintain a workspace's memory now (L8)."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.maintenance.maintain import maintain_workspace
from memory.management.command_line import ServiceCommand


class Command(ServiceCommand):
    help = "Link what is new, merge entities and notes that are one, let edges fade, and seal boxes; and say how much."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(name=options["workspace"])
        done = maintain_workspace(workspace_id=workspace.pk, now=timezone.now())
        if options["json"]:
            self.stdout.write(json.dumps({"steps": [asdict(one) for one in done]}))
            return
        for one in done:
            told = "no time left" if one.changed is None else f"{one.changed} changed"
            self.stdout.write(f"{one.step}: {told}, {one.seconds:.1f} s")
