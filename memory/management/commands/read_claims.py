"""Read the episodes of before there were claims (E1)."""

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from memory.claims import CatchUpResult, catch_up_claims
from memory.llm.call_log import DailyCapReached
from memory.llm.types import CallFailed
from memory.management.command_line import (
    Report,
    WorkspaceCommand,
    add_limit,
    advance,
    fail_on,
    pluralize,
    progress_bar,
)
from memory.models import Workspace

_GO_ON = " What was read is kept: start it again to go on."


class Command(WorkspaceCommand):
    help = (
        "Read the episodes that wait in the pool, and the facts of conversations, into claims where nobody has; what "
        "is settled stays as it is. Killed and started again, it goes on where it was."
    )
    json_help = "print one JSON document instead of lines"

    def add_options(self, parser: CommandParser) -> None:
        add_limit(parser, help="most episodes to read")

    def run(self, *, workspace: Workspace, limit: int | None, now: datetime, as_json: bool, **options: Any) -> Report:
        bar = progress_bar(of=workspace.name, unit="episode", as_json=as_json)
        with fail_on(CallFailed, DailyCapReached, then=_GO_ON), bar:
            found = catch_up_claims(workspace=workspace, now=now, most=limit, on_progress=partial(advance, bar))
        return Report(values={"workspace": workspace.name, **asdict(found)}, lines=[_told(found)])


def _told(found: CatchUpResult) -> str:
    if not found.episodes:
        return "Nothing to read."
    line = f"{pluralize(found.episodes, 'episode')} read into {pluralize(found.claims, 'claim')}"
    return f"{line}, {pluralize(found.facts, 'fact')} as they stand; {found.left} left."
