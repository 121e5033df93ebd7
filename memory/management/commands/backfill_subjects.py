"""Give beliefs without a subject the one that their statement names (R13)."""

from datetime import datetime
from typing import Any

from memory.facts.reflection import backfill_subjects
from memory.management.command_line import Report, WorkspaceCommand, command_actor, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = "Read the subject of beliefs that have none off their statements; done again, it finds nothing to do."

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        found = backfill_subjects(workspace=workspace, actor=command_actor("backfill_subjects"), now=now)
        lines = [f"{key}: {subject}" for key, subject in found.items()]
        return Report(values=found, lines=[*lines, f"{pluralize(len(found), 'subject')} filled in."])
