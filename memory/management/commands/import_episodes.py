"""Import episodes from a file of JSON Lines."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access import find_workspace
from memory.ingest.json_lines import ImportReport, read_batches, read_file, replay_lines, store_file_lines
from memory.ingest.schemas import IngestContext, is_slug
from memory.management.command_line import NoWorkerHint, ServiceCommand, exit_on_interrupt, pluralize, usage_error
from memory.models import Cycle

_INTERRUPTED = "Stopped. What was imported stays, and the same command goes on where this one stopped."


class Command(ServiceCommand):
    help = (
        "Import episodes from a file with one JSON object a line. Importing it again adds nothing, so that an import "
        "that was broken off is simply repeated. A text that is longer than an episode may be becomes several, and "
        "counts as one. Bad lines are reported and left out: exit status 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.jsonl")
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--project", help="of lines that name none; created if unknown")
        parser.add_argument(
            "--replay",
            action="store_true",
            help="live through it: store each episode at the time at which it happened, with cycles in between",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="report as JSON")

    def handle(
        self, *, file: Path, workspace: str, project: str | None, replay: bool, as_json: bool, **options: Any
    ) -> None:
        arrival = IngestContext(
            workspace=find_workspace(name=workspace),
            now=timezone.now(),
            default_project=_checked_project(project),
            file_name=file.name,
        )
        with _open(file) as stream, exit_on_interrupt(out=self.stderr, message=lambda: _INTERRUPTED):
            if replay:
                report = _replay(stream, arrival, on_look=NoWorkerHint(out=self.stderr))
            else:
                report = _import(stream, arrival, size=file.stat().st_size)
        self._show(report, as_json=as_json)
        if report.rejected:
            sys.exit(1)

    def _show(self, report: ImportReport, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(_as_json(report)))
            return
        for number, rejected in report.rejected:
            self.stderr.write(f"line {number}: {rejected.detail}")
        counts = [f"{pluralize(report.stored, 'episode')} stored", f"{report.deduplicated} known already"]
        counts += [f"{report.forgotten} of these forgotten"] if report.forgotten else []
        counts += [f"{report.split} split into parts"] if report.split else []
        counts += [f"{len(report.rejected)} refused"] if report.rejected else []
        counts += [f"{pluralize(len(report.cycles), 'cycle')} run"] if report.cycles else []
        self.stdout.write(", ".join(counts) + ".")


def _checked_project(slug: str | None) -> str | None:
    if slug is not None and not is_slug(slug):
        raise usage_error(f"--project: {slug!r} cannot name a project; letters, digits, - and _ can, no key.")
    return slug


def _open(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise usage_error(f"{file}: {error.strerror}") from None


def _import(stream: IO[bytes], arrival: IngestContext, *, size: int) -> ImportReport:
    """Store a file batch by batch, however long it is."""
    report = ImportReport()
    with tqdm(total=size, unit="B", unit_scale=True, desc="importing", disable=None) as bar:
        for batch in read_batches(stream=stream, arrival=arrival):
            store_file_lines(lines=batch, arrival=arrival, report=report)
            bar.update(sum(line.bytes for line in batch))
    return report


def _replay(stream: IO[bytes], arrival: IngestContext, *, on_look: Callable[[Cycle], None]) -> ImportReport:
    """Live through a file, which is read as a whole: what happened first may stand last."""
    report = ImportReport()
    lines = list(read_file(stream=stream, arrival=arrival))
    with tqdm(total=len(lines), unit="episode", desc="replaying", disable=None) as bar:
        replay_lines(lines=lines, arrival=arrival, report=report, on_batch=bar.update, on_look=on_look)
    return report


def _as_json(report: ImportReport) -> dict[str, Any]:
    return {
        "stored": report.stored,
        "deduplicated": report.deduplicated,
        "forgotten": report.forgotten,
        "split": report.split,
        "rejected": [
            {"line": number, "status": rejected.status, "detail": rejected.detail, "errors": rejected.errors}
            for number, rejected in report.rejected
        ],
        "cycles": report.cycles,
    }
