"""List the notes that were hidden for others and, by today's reader, should not be; bring them back (L18)."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from memory.llm.onnx_models import ModelUnavailable
from memory.maintenance.notes import find_doubtful, restore_notes
from memory.management.command_line import Report, WorkspaceCommand, command_actor, fail_on, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "List the merged and superseded notes that say what the note that stayed for them does not, and are not ended "
        "by it, as far as the reader can tell today; with --restore, make them active again."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--restore", action="store_true", help="bring these notes back")

    def run(self, *, workspace: Workspace, restore: bool, now: datetime, **options: Any) -> Report:
        with fail_on(ModelUnavailable):
            doubtful = find_doubtful(workspace_id=workspace.pk)
        restored: list[str] = []
        if restore:
            actor = command_actor("review_merges")
            restored = restore_notes(workspace_id=workspace.pk, notes=doubtful, actor=actor, now=now)
        lines = [
            line
            for note in doubtful
            for line in (
                f"{note.id}  {note.status}: {note.text}",
                f"  {note.kept or 'gone':<15}  stays: {note.kept_text}",
            )
        ]
        told = f"{pluralize(len(doubtful), 'note')} in doubt, {len(restored)} brought back"
        return Report(values={"notes": [asdict(note) for note in doubtful], "restored": restored}, lines=[*lines, told])
