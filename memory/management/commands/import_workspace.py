"""Import a workspace's memory that was exported here or elsewhere (R14)."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.domain.errors import EngramError
from memory.export.importer import ImportResult, import_workspace
from memory.management.command_line import (
    Report,
    WorkspaceCommand,
    command_actor,
    exit_on_interrupt,
    pluralize,
    progress_bar,
    usage_error,
)
from memory.models import Workspace

_STOPPED = "Stopped. Nothing was read."


class Command(WorkspaceCommand):
    help = (
        "Read a file of `export_workspace` into a workspace that has no memories: all of it, or nothing. Make the "
        "workspace with create_workspace first."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.jsonl")

    def run(self, *, file: Path, workspace: Workspace, now: datetime, as_json: bool, **options: Any) -> Report:
        try:
            with file.open("rb") as stream, exit_on_interrupt(out=self.stderr, message=lambda: _STOPPED):
                size = file.stat().st_size
                with progress_bar(of=workspace.name, unit="B", as_json=as_json, unit_scale=True, total=size) as bar:
                    done = import_workspace(
                        workspace=workspace,
                        stream=stream,
                        actor=command_actor("import_workspace"),
                        now=now,
                        on_bytes=bar.update,
                    )
        except OSError as error:
            raise usage_error(f"{file}: {error.strerror}") from None
        except EngramError as error:
            told = f"{str(error).removesuffix('.')}. Nothing was read."
            raise CommandError(told, returncode=error.exit_status) from None
        return Report(values=done.counts, lines=[_told(done)])


def _told(done: ImportResult) -> str:
    found = done.counts
    told = [pluralize(found[f"{noun}s"], noun) for noun in ("episode", "belief", "cycle")]
    recomputed = f" {pluralize(found['recomputed'], 'belief')} computed anew." if found["recomputed"] else ""
    secrets = " Memories that seem to hold secrets, as they did in the file: {with_secrets}.".format_map(found)
    said = secrets if found["with_secrets"] else ""
    return f"{', '.join(told)} read, {pluralize(found['rows'], 'row')} in all.{recomputed}{said}"
