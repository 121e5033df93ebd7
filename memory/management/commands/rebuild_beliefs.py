"""Make beliefs again from the recorded cycles and report what differed (B22)."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.consolidation.rebuild.service import CycleIsOpen, Rebuilt, rebuild_beliefs
from memory.management.failures import named_workspace
from memory.management.rebuilding import write_rebuilt
from memory.models import Workspace


class Command(BaseCommand):
    help = (
        "Make a workspace's beliefs again from its recorded cycles, without asking a model, and set right what differs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--dry-run", action="store_true", help="say what differs; write nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = named_workspace(options["workspace"])
        rebuilt = self._rebuild(workspace, is_dry_run=options["dry_run"], show=not options["json"])
        write_rebuilt(rebuilt, out=self.stdout, as_json=options["json"], is_dry_run=options["dry_run"])

    def _rebuild(self, workspace: Workspace, *, is_dry_run: bool, show: bool) -> Rebuilt:
        with tqdm(desc=workspace.name, unit="cycle", disable=not (show and sys.stderr.isatty()), leave=False) as bar:

            def step(total: int) -> None:
                bar.total = total
                bar.update()

            try:
                return rebuild_beliefs(workspace=workspace, now=timezone.now(), is_dry_run=is_dry_run, on_cycle=step)
            except CycleIsOpen as error:
                raise CommandError(str(error), returncode=1) from None
