"""Export a workspace's memory, or one user's data, as JSON Lines (R14)."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from memory.access import find_workspace
from memory.export.exporter import export_workspace
from memory.management.command_line import ServiceCommand, exit_on_interrupt, pluralize, usage_error
from memory.models import Workspace
from memory.redaction.service import redact_name

_STDOUT = "-"


class Command(ServiceCommand):
    help = (
        "Write a workspace's memory to a file of JSON Lines, vectors included: all that `import_workspace` needs to "
        "have it somewhere else as it is here. Nobody but you may read the file. It is refused while a cycle is open."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE.jsonl", help="- for standard output; a file must not exist yet")
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--user", help="one user's data alone, which cannot be imported as a workspace's memory")
        parser.add_argument("--json", action="store_true", dest="as_json", help="report as JSON; with - as an error")

    def handle(self, *, file: str, workspace: str, user: str | None, as_json: bool, **options: Any) -> None:
        if user == "":
            raise usage_error("--user: what belongs to nobody in particular is not one user's.")
        place = find_workspace(name=workspace)
        out = nullcontext(sys.stdout.buffer) if file == _STDOUT else _new_file(Path(file))
        with exit_on_interrupt(out=self.stderr, message=lambda: "Stopped. No file was left."), out as stream:
            rows = _write(place, stream, user=user, show=not as_json)
        report = self.stderr if file == _STDOUT else self.stdout
        told = f"{pluralize(rows, 'row')} written to {file}."
        report.write(json.dumps({"file": file, "rows": rows}) if as_json else told)


def _write(workspace: Workspace, stream: IO[bytes], *, user: str | None, show: bool) -> int:
    rows = 0
    with tqdm(unit="row", desc=workspace.name, disable=not (show and sys.stderr.isatty()), leave=False) as bar:
        for block in export_workspace(workspace=workspace, user=None if user is None else redact_name(user).text):
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
