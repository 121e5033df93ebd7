"""List the episodes, turns or remembered texts that failed too often, with why, and have them tried again."""

import json
from typing import Any

from django.core.management.base import CommandParser

from memory.access import find_workspace
from memory.consolidation.episode_states import list_dead_letters, retry_dead_letters
from memory.facts.job import list_failed, retry_failed
from memory.ingest.scheduling import list_dead_turns, retry_dead_turns
from memory.management.command_line import ServiceCommand, pluralize


class Command(ServiceCommand):
    help = "List a workspace's dead letters (what failed too often); with --retry, let them take part again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="only these episodes")
        parser.add_argument("--workspace", required=True)
        others = parser.add_mutually_exclusive_group()
        others.add_argument("--turns", action="store_true", help="turns of conversations instead of episodes")
        others.add_argument("--remembered", action="store_true", help="texts that were to be remembered at once")
        parser.add_argument("--retry", action="store_true", help="as if they had never failed, from the next cycle on")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        listed = _turns if options["turns"] else _remembered if options["remembered"] else _episodes
        rows, retried = listed(options)
        if options["json"]:
            self.stdout.write(json.dumps({"dead_letters": rows, "retried": retried}))
            return
        for row in rows:
            self.stdout.write(f"{row['id']}  {row['dead_at']}  {row['reason']}")
        self.stdout.write(f"{pluralize(len(rows), 'dead letter')}, {retried} to be tried again")


def _episodes(options: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    letters = list_dead_letters(workspace_id=find_workspace(name=options["workspace"]).pk)
    if options["ids"]:
        letters = letters.filter(pk__in=options["ids"])
    rows = [
        {"id": row.pk, "reason": row.state_reason, "failures": row.failures, "dead_at": f"{row.dead_at:%F %T} UTC"}
        for row in letters
    ]
    return rows, retry_dead_letters(letters=letters) if options["retry"] else 0


def _remembered(options: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """List texts by their episodes."""
    failed = list_failed(workspace_id=find_workspace(name=options["workspace"]).pk)
    if options["ids"]:
        failed = failed.filter(episode__in=options["ids"])
    rows = [{"id": row.episode_id, "reason": row.state_reason, "dead_at": f"{row.due_at:%F %T} UTC"} for row in failed]
    return rows, retry_failed(remembrances=failed) if options["retry"] else 0


def _turns(options: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """List turns by their numbers in the database."""
    turns = list_dead_turns(workspace_id=find_workspace(name=options["workspace"]).pk)
    if options["ids"]:
        turns = turns.filter(pk__in=[int(key) for key in options["ids"] if key.isdecimal()])
    rows = [
        {
            "id": turn.pk,
            "session": turn.conversation.session,
            "number": turn.number,
            "reason": turn.state_reason,
            "dead_at": f"{turn.settled_at:%F %T} UTC",
        }
        for turn in turns
    ]
    return rows, retry_dead_turns(turns=turns) if options["retry"] else 0
