"""Propose beliefs that say the same to the next cycle's merge gate (R7, B13)."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.reflection import propose_merges
from memory.management.command_line import ServiceCommand, pluralize


class Command(ServiceCommand):
    help = (
        "Have the next cycle ask whether beliefs that are near enough, and that no rule tells apart, are one. Its gate "
        "decides, and a model; nothing is merged here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, as_json: bool, **options: Any) -> None:
        proposed = propose_merges(workspace=find_workspace(name=workspace), now=timezone.now())
        if as_json:
            self.stdout.write(json.dumps([asdict(pair) for pair in proposed]))
            return
        for pair in proposed:
            self.stdout.write(f"{pair.ids[0]} and {pair.ids[1]}: {pair.similarity:.2f} alike")
        self.stdout.write(f"{pluralize(len(proposed), 'pair')} proposed to the next cycle.")
