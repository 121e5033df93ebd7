"""Import a workspace's memory that was exported here or elsewhere (R14)."""

import getpass
import json
import sys
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access import find_workspace
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, ActorKind
from memory.export.importer import ImportResult, import_workspace
from memory.management.command_line import ServiceCommand, exit_on_interrupt, pluralize, usage_error
from memory.models import Workspace

_STOPPED = "Stopped. Nothing was read."


class Command(ServiceCommand):
    help = (
        "Read a file of `export_workspace` into a workspace that has no memories: all of it, or nothing. Make the "
        "workspace with create_workspace first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.jsonl")
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, file: Path, workspace: str, as_json: bool, **options: Any) -> None:
        place = find_workspace(name=workspace)
        try:
            with file.open("rb") as stream, exit_on_interrupt(out=self.stderr, message=lambda: _STOPPED):
                done = _read(place, stream, size=file.stat().st_size, show=not as_json)
        except OSError as error:
            raise usage_error(f"{file}: {error.strerror}") from None
        except EngramError as error:
            raise CommandError(
                f"{str(error).removesuffix('.')}. Nothing was read.", returncode=error.exit_status
            ) from None
        self.stdout.write(json.dumps(done.counts) if as_json else _told(done))


def _read(workspace: Workspace, stream: IO[bytes], *, size: int, show: bool) -> ImportResult:
    actor = Actor(kind=ActorKind.COMMAND, name=f"import_workspace of {getpass.getuser()}")
    hidden = not (show and sys.stderr.isatty())
    with tqdm(total=size, unit="B", unit_scale=True, desc=workspace.name, disable=hidden, leave=False) as bar:
        return import_workspace(
            workspace=workspace, stream=stream, actor=actor, now=timezone.now(), on_bytes=bar.update
        )


def _told(done: ImportResult) -> str:
    found = done.counts
    told = [pluralize(found[f"{noun}s"], noun) for noun in ("episode", "belief", "cycle")]
    recomputed = f" {pluralize(found['recomputed'], 'belief')} computed anew." if found["recomputed"] else ""
    secrets = " Memories that seem to hold secrets, as they did in the file: {with_secrets}.".format_map(found)
    said = secrets if found["with_secrets"] else ""
    return f"{', '.join(told)} read, {pluralize(found['rows'], 'row')} in all.{recomputed}{said}"
