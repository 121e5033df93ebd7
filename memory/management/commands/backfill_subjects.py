"""Give beliefs without a subject the one that their statement names (R13)."""

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.reflection import backfill_subjects
from memory.management.command_line import ServiceCommand, command_actor, pluralize


class Command(ServiceCommand):
    help = "Read the subject of beliefs that have none off their statements; done again, it finds nothing to do."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, as_json: bool, **options: Any) -> None:
        found = backfill_subjects(
            workspace=find_workspace(name=workspace), actor=command_actor("backfill_subjects"), now=timezone.now()
        )
        if as_json:
            self.stdout.write(json.dumps(found))
            return
        for key, subject in found.items():
            self.stdout.write(f"{key}: {subject}")
        self.stdout.write(f"{pluralize(len(found), 'subject')} filled in.")
