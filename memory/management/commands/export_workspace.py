"""Export a workspace's memory, or one user's data, as JSON Lines (R14)."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser

from memory.export.exporter import export_workspace
from memory.management.command_line import (
    Report,
    WorkspaceCommand,
    exit_on_interrupt,
    named_user,
    pluralize,
    progress_bar,
    usage_error,
)
from memory.models import Workspace

_STDOUT = "-"


class Command(WorkspaceCommand):
    help = (
        "Write a workspace's memory to a file of JSON Lines, vectors included: all that `import_workspace` needs to "
        "have it somewhere else as it is here. Nobody but you may read the file. It is refused while a cycle is open."
    )
    json_help = "report as JSON; with - as an error"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.jsonl", help="- for standard output; a file must not exist yet")
        parser.add_argument("--user", help="one user's data alone, which cannot be imported as a workspace's memory")

    def run(self, *, file: str, workspace: Workspace, user: str | None, as_json: bool, **options: Any) -> Report:
        owner = named_user(user)
        out = nullcontext(sys.stdout.buffer) if file == _STDOUT else _new_file(Path(file))
        with exit_on_interrupt(out=self.stderr, message=lambda: "Stopped. No file was left."), out as stream:
            rows = _write(workspace, stream, user=owner, as_json=as_json)
        if file == _STDOUT:
            self.stdout = self.stderr  # what was written fills the other
        told = f"{pluralize(rows, 'row')} written to {file}."
        return Report(values={"file": file, "rows": rows}, lines=[told])


def _write(workspace: Workspace, stream: IO[bytes], *, user: str | None, as_json: bool) -> int:
    rows = 0
    with progress_bar(of=workspace.name, unit="row", as_json=as_json) as bar:
        for block in export_workspace(workspace=workspace, user=user):
            stream.write(block.data)
            rows += block.rows
            bar.total = block.of
            bar.update(block.rows)
    return rows


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Write to a file that appears under its name when it is whole, and that only its owner may read."""
    if path.exists():
        raise CommandError(f"{path} exists already; no file is overwritten.", returncode=1)
    part = path.with_name(f"{path.name}.part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            yield stream
        part.rename(path)
    except OSError as error:
        raise usage_error(f"{error.filename or path}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
