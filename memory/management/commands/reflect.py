"""Look at all beliefs: which may say the same, and which have faded (R7, R7d)."""

import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.reflection import Reflection, reflect
from memory.management.command_line import ServiceCommand, pluralize


class Command(ServiceCommand):
    help = "Report beliefs that may say the same, and beliefs that have faded; nothing is changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, as_json: bool, **options: Any) -> None:
        most = settings.POLICY.reflection.pairs
        reflection = reflect(workspace=find_workspace(name=workspace), now=timezone.now(), most=most)
        if as_json:
            self.stdout.write(json.dumps(asdict(reflection)))
        else:
            self._show(reflection)

    def _show(self, reflection: Reflection) -> None:
        for pair in reflection.duplicates:
            same = "" if pair.passes_guard else ", but a rule tells them apart: they may contradict each other"
            self.stdout.write(f"{pair.similarity:.2f} alike{same}")
            for key, statement in zip(pair.ids, pair.statements, strict=True):
                self.stdout.write(f"  {key} {statement}")
        for one in reflection.faded:
            what = "may be pruned" if one.is_prunable else "stale"
            self.stdout.write(f"{one.id} {what}: {one.effective_confidence:.3f} left. {one.statement}")
        duplicates, faded = pluralize(reflection.duplicate_count, "pair"), reflection.faded_count
        self.stdout.write(f"{pluralize(reflection.beliefs, 'belief')}, {duplicates} alike, {faded} faded.")
