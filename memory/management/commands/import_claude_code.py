"""Import the sessions that Claude Code keeps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.ingest.conversation_formats import ImportItem, list_transcripts, read_transcript
from memory.management.command_line import Report, usage_error
from memory.management.importing import ImportCommand, existing_path


class Command(ImportCommand):
    help = (
        "Import the transcripts (*.jsonl) in a folder and below it, as Claude Code keeps them, usually in "
        "~/.claude/projects. What person and agent said comes in; tools, thoughts, attachments and helpers are left "
        "out and counted. Importing again adds nothing, nor does what the plugin has sent already under the same "
        "project and user. A message that is longer than a turn may be comes in as several. A last line that is still "
        "being written is left for the next time. Other lines that cannot be read are reported: exit status 1."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        super().add_options(parser)
        parser.add_argument(
            "--project-from-folder",
            action="store_true",
            help="each session is of the project named by the folder that it began in, as with the plugin's "
            "ENGRAM_PROJECT_FROM_FOLDER=1; --project is for those that name no folder",
        )

    def run(self, *, folder: Path, project_from_folder: bool, **options: Any) -> Report:
        files = list_transcripts(folder=existing_path(folder, is_folder=True))
        if not files:
            raise usage_error(f"{folder}: It holds no transcripts (*.jsonl).")

        def read(on_read: Callable[[int], object]) -> Iterator[ImportItem]:
            for file in files:
                with file.open("rb") as stream:
                    place = str(file.relative_to(folder))
                    yield from read_transcript(
                        stream=stream, place=place, on_read=on_read, by_folder=project_from_folder
                    )

        size = sum(file.stat().st_size for file in files)
        return self.import_found(read=read, size=size, command="import_claude_code", **options)
