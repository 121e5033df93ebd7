"""Read the episodes of before there were claims (E1)."""

import json
import sys
from argparse import ArgumentTypeError
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access import find_workspace
from memory.claims import CatchUpResult, catch_up_claims
from memory.llm.call_log import DailyCapReached
from memory.llm.types import CallFailed
from memory.management.command_line import ServiceCommand, pluralize
from memory.models import Workspace


class Command(ServiceCommand):
    help = (
        "Read the episodes that wait in the pool, and the facts of conversations, into claims where nobody has; what "
        "is settled stays as it is. Killed and started again, it goes on where it was."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--limit", type=_at_least_one, help="most episodes to read")
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(name=options["workspace"])
        try:
            found = self._read(workspace, most=options["limit"], show=not options["json"])
        except (CallFailed, DailyCapReached) as error:
            raise CommandError(f"{error} What was read is kept: start it again to go on.", returncode=1) from error
        told = {"workspace": workspace.name, **asdict(found)}
        self.stdout.write(json.dumps(told) if options["json"] else _told(found))

    def _read(self, workspace: Workspace, *, most: int | None, show: bool) -> CatchUpResult:
        with tqdm(desc=workspace.name, unit="episode", disable=not (show and sys.stderr.isatty()), leave=False) as bar:

            def step(read: int, left: int) -> None:
                bar.update(read)
                bar.total = bar.n + left

            return catch_up_claims(workspace=workspace, now=timezone.now(), most=most, on_progress=step)


def _told(found: CatchUpResult) -> str:
    if not found.episodes:
        return "Nothing to read."
    line = f"{pluralize(found.episodes, 'episode')} read into {pluralize(found.claims, 'claim')}"
    return f"{line}, {pluralize(found.facts, 'fact')} as they stand; {found.left} left."


def _at_least_one(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise ArgumentTypeError("a whole number of 1 or more")
    return int(given)
