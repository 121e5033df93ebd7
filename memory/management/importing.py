"""What the commands that import conversations share: their options, their progress and their report."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from tqdm import tqdm

from memory.domain.identity import Actor, ActorKind
from memory.ingest.conversation_files import TurnReport, import_turns
from memory.ingest.conversation_formats import ImportItem
from memory.ingest.schemas import IngestContext
from memory.management.command_line import (
    IMPORT_STOPPED,
    Report,
    WorkspaceCommand,
    checked_slug,
    exit_on_interrupt,
    pluralize,
    usage_error,
)
from memory.models import Workspace


class ImportCommand(WorkspaceCommand):
    """An import of conversations."""

    json_help = "report as JSON"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--project", help="of turns that name none; created if unknown")
        parser.add_argument("--user", default="", help="whose conversations they are, inside the workspace")
        parser.add_argument("--dry-run", action="store_true", help="store nothing, and say what would come in")

    def import_found(
        self,
        *,
        read: Callable[[Callable[[int], object]], Iterable[ImportItem]],
        size: int,
        command: str,
        workspace: Workspace,
        project: str | None,
        user: str,
        dry_run: bool,
        now: datetime,
        as_json: bool,
        **options: Any,
    ) -> Report:
        """Import what `read` finds, which tells how many bytes it has read of `size`; fail if something was bad."""
        arrival = IngestContext(
            workspace=workspace,
            now=now,
            default_project=checked_slug(project),
            actor=Actor(kind=ActorKind.COMMAND, name=command),
        )
        report = TurnReport()
        bar = tqdm(total=size, unit="B", unit_scale=True, desc="importing", disable=None)
        with exit_on_interrupt(out=self.stderr, message=lambda: IMPORT_STOPPED), bar:
            import_turns(found=read(bar.update), arrival=arrival, user=user, report=report, is_rehearsal=dry_run)
        for place, rejected in report.rejected if not as_json else ():
            self.stderr.write(f"{place}: {rejected.detail}")
        return Report(
            values=_report_as_json(report, is_rehearsal=dry_run),
            lines=_in_lines(report, is_rehearsal=dry_run),
            has_failed=bool(report.rejected),
        )


def _in_lines(report: TurnReport, *, is_rehearsal: bool) -> Iterator[str]:
    verb = "would be stored" if is_rehearsal else "stored"
    roles = ", ".join(f"{count:,} {role}" for role, count in sorted(report.stored.items()))
    of_whom = f" ({roles})" if roles else ""
    turns, conversations = pluralize(report.stored.total(), "turn"), pluralize(len(report.sessions), "conversation")
    counts = [f"{turns} of {conversations} {verb}{of_whom}", f"{report.known} known already"]
    counts += [f"{report.split:,} of these in parts"] if report.split else []
    counts += [f"{report.erased:,} refused: erased"] if report.erased else []
    counts += [f"{len(report.rejected)} refused"] if report.rejected else []
    yield ", ".join(counts) + "."
    if report.stored and not is_rehearsal:
        minutes = settings.POLICY.turns.age_minutes
        yield f"Workers read them as they read all turns: what is said last within {minutes:g} minutes."
    if report.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(report.left_out.items()))
        yield f"Left out: {reasons}."


def _report_as_json(report: TurnReport, *, is_rehearsal: bool) -> dict[str, Any]:
    return {
        "dry_run": is_rehearsal,
        "conversations": len(report.sessions),
        "stored": dict(sorted(report.stored.items())),
        "known": report.known,
        "split": report.split,
        "erased": report.erased,
        "left_out": {reason.value: count for reason, count in sorted(report.left_out.items())},
        "rejected": [
            {"place": place, "status": rejected.status, "detail": rejected.detail, "errors": rejected.errors}
            for place, rejected in report.rejected
        ],
    }


def existing_path(path: Path, *, is_folder: bool) -> Path:
    """Return a path that can be read; raise a usage error if it is not there, or not of the kind wanted."""
    if is_folder and not path.is_dir():
        raise usage_error(f"{path}: {'A folder is expected.' if path.exists() else 'No such folder.'}")
    if not path.exists():
        raise usage_error(f"{path}: No such file or folder.")
    return path
