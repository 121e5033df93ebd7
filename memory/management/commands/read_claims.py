"""Have the pooled messages of before read anew, by today's reader (F7)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.read import let_pooled_be_read
from memory.management.command_line import Report, WorkspaceCommand, add_limit, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "Let the messages that wait in the pool be read once more, by today's reader: the next cycles take them up, "
        "within their caps. What is evidence of a belief stays as it is."
    )
    json_help = "print one JSON document instead of lines"

    def add_options(self, parser: CommandParser) -> None:
        add_limit(parser, help="most messages to let be read")

    def run(self, *, workspace: Workspace, limit: int | None, now: datetime, as_json: bool, **options: Any) -> Report:
        waiting, left = let_pooled_be_read(workspace_id=workspace.pk, most=limit)
        line = "Nothing to read." if not waiting else f"{pluralize(waiting, 'message')} will be read; {left} left."
        return Report(values={"workspace": workspace.name, "episodes": waiting, "left": left}, lines=[line])
