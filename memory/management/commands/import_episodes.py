"""Import episodes from a file of JSON Lines."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from memory.ingest.json_lines import ImportReport, read_batches, read_file, replay_lines, store_file_lines
from memory.ingest.schemas import IngestContext
from memory.management.command_line import (
    IMPORT_STOPPED,
    NoWorkerHint,
    Report,
    WorkspaceCommand,
    checked_slug,
    exit_on_interrupt,
    pluralize,
    usage_error,
)
from memory.models import Cycle, Workspace


class Command(WorkspaceCommand):
    help = (
        "Import episodes from a file with one JSON object a line. Importing it again adds nothing, so that an import "
        "that was broken off is simply repeated. A text that is longer than an episode may be becomes several, and "
        "counts as one. Bad lines are reported and left out: exit status 1."
    )
    json_help = "report as JSON"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.jsonl")
        parser.add_argument("--project", help="of lines that name none; created if unknown")
        parser.add_argument(
            "--replay",
            action="store_true",
            help="live through it: store each episode at the time at which it happened, with cycles in between",
        )

    def run(
        self,
        *,
        file: Path,
        workspace: Workspace,
        project: str | None,
        replay: bool,
        now: datetime,
        as_json: bool,
        **options: Any,
    ) -> Report:
        arrival = IngestContext(
            workspace=workspace, now=now, default_project=checked_slug(project), file_name=file.name
        )
        with _open(file) as stream, exit_on_interrupt(out=self.stderr, message=lambda: IMPORT_STOPPED):
            if replay:
                report = _replay(stream, arrival, on_look=NoWorkerHint(out=self.stderr))
            else:
                report = _import(stream, arrival, size=file.stat().st_size)
        for number, rejected in report.rejected if not as_json else ():
            self.stderr.write(f"line {number}: {rejected.detail}")
        return Report(values=_as_json(report), lines=[_told(report)], has_failed=bool(report.rejected))


def _told(report: ImportReport) -> str:
    counts = [f"{pluralize(report.stored, 'episode')} stored", f"{report.deduplicated} known already"]
    counts += [f"{report.forgotten} of these forgotten"] if report.forgotten else []
    counts += [f"{report.split} split into parts"] if report.split else []
    counts += [f"{len(report.rejected)} refused"] if report.rejected else []
    counts += [f"{pluralize(len(report.cycles), 'cycle')} run"] if report.cycles else []
    return ", ".join(counts) + "."


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
