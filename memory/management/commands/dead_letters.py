"""List the episodes that failed too often, with why, and have them tried again."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memory.consolidation.dead_letters import list_dead_letters, retry_dead_letters
from memory.management.failures import named_workspace
from memory.management.wording import counted


class Command(BaseCommand):
    help = "List a workspace's dead letters (episodes that failed too often); with --retry, let them take part again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="only these episodes")
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--retry", action="store_true", help="as if they had never failed, from the next cycle on")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        letters = list_dead_letters(workspace_id=named_workspace(options["workspace"]).pk)
        if options["ids"]:
            letters = letters.filter(pk__in=options["ids"])
        rows = [
            {"id": row.pk, "reason": row.state_reason, "failures": row.failures, "dead_at": f"{row.dead_at:%F %T} UTC"}
            for row in letters
        ]
        retried = retry_dead_letters(letters=letters) if options["retry"] else 0
        if options["json"]:
            self.stdout.write(json.dumps({"dead_letters": rows, "retried": retried}))
            return
        for row in rows:
            self.stdout.write(f"{row['id']}  {row['dead_at']}  {row['reason']}")
        self.stdout.write(f"{counted(len(rows), 'dead letter')}, {retried} to be tried again")
