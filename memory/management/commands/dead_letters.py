"""List the episodes, turns or remembered texts that failed too often, with why, and have them tried again."""

from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.episode_states import list_dead_letters, retry_dead_letters
from memory.facts.job import list_failed, retry_failed
from memory.ingest.scheduling import list_dead_turns, retry_dead_turns
from memory.management.command_line import Report, WorkspaceCommand, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = "List a workspace's dead letters (what failed too often); with --retry, let them take part again."

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="only these episodes")
        others = parser.add_mutually_exclusive_group()
        others.add_argument("--turns", action="store_true", help="turns of conversations instead of episodes")
        others.add_argument("--remembered", action="store_true", help="texts that were to be remembered at once")
        parser.add_argument("--retry", action="store_true", help="as if they had never failed, from the next cycle on")

    def run(
        self, *, workspace: Workspace, ids: list[str], turns: bool, remembered: bool, retry: bool, **options: Any
    ) -> Report:
        listed = _turns if turns else _remembered if remembered else _episodes
        rows, retried = listed(workspace, ids, retry=retry)
        lines = [f"{row['id']}  {row['dead_at']}  {row['reason']}" for row in rows]
        told = f"{pluralize(len(rows), 'dead letter')}, {retried} to be tried again"
        return Report(values={"dead_letters": rows, "retried": retried}, lines=[*lines, told])


def _episodes(workspace: Workspace, ids: list[str], *, retry: bool) -> tuple[list[dict[str, Any]], int]:
    letters = list_dead_letters(workspace_id=workspace.pk)
    if ids:
        letters = letters.filter(pk__in=ids)
    rows = [
        {"id": row.pk, "reason": row.state_reason, "failures": row.failures, "dead_at": f"{row.dead_at:%F %T} UTC"}
        for row in letters
    ]
    return rows, retry_dead_letters(letters=letters) if retry else 0


def _remembered(workspace: Workspace, ids: list[str], *, retry: bool) -> tuple[list[dict[str, Any]], int]:
    """List texts by their episodes."""
    failed = list_failed(workspace_id=workspace.pk)
    if ids:
        failed = failed.filter(episode__in=ids)
    rows = [{"id": row.episode_id, "reason": row.state_reason, "dead_at": f"{row.due_at:%F %T} UTC"} for row in failed]
    return rows, retry_failed(remembrances=failed) if retry else 0


def _turns(workspace: Workspace, ids: list[str], *, retry: bool) -> tuple[list[dict[str, Any]], int]:
    """List turns by their numbers in the database."""
    turns = list_dead_turns(workspace_id=workspace.pk)
    if ids:
        turns = turns.filter(pk__in=[int(key) for key in ids if key.isdecimal()])
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
    return rows, retry_dead_turns(turns=turns) if retry else 0
