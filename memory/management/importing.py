"""What the commands that import conversations share: their options, their progress and their report."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser, OutputWrapper
from django.utils import timezone
from tqdm import tqdm

from memory.access import find_workspace
from memory.domain.identity import Actor, ActorKind
from memory.ingest.conversation_files import TurnReport, import_turns
from memory.ingest.conversation_formats import ImportItem
from memory.ingest.schemas import IngestContext, is_slug
from memory.management.command_line import exit_on_interrupt, pluralize, usage_error

_INTERRUPTED = "Stopped. What was imported stays, and the same command goes on where this one stopped."


def add_import_arguments(parser: CommandParser) -> None:
    """Add the options of every import of conversations."""
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--project", help="of turns that name none; created if unknown")
    parser.add_argument("--user", default="", help="whose conversations they are, inside the workspace")
    parser.add_argument("--dry-run", action="store_true", help="store nothing, and say what would come in")
    parser.add_argument("--json", action="store_true", dest="as_json", help="report as JSON")


def run_import(
    *,
    read: Callable[[Callable[[int], object]], Iterable[ImportItem]],
    size: int,
    command: str,
    out: OutputWrapper,
    err: OutputWrapper,
    options: dict[str, Any],
) -> None:
    """Import what `read` finds, which tells how many bytes it has read of `size`; exit with 1 if something was bad."""
    project = options["project"]
    if project is not None and not is_slug(project):
        raise usage_error(f"--project: {project!r} cannot name a project; letters, digits, - and _ can, no key.")
    arrival = IngestContext(
        workspace=find_workspace(name=options["workspace"]),
        now=timezone.now(),
        default_project=project,
        actor=Actor(kind=ActorKind.COMMAND, name=command),
    )
    report = TurnReport()
    bar = tqdm(total=size, unit="B", unit_scale=True, desc="importing", disable=None)
    with exit_on_interrupt(out=err, message=lambda: _INTERRUPTED), bar:
        import_turns(
            found=read(bar.update),
            arrival=arrival,
            user=options["user"],
            report=report,
            is_rehearsal=options["dry_run"],
        )
    _print_report(report, out, err, options)
    if report.rejected:
        sys.exit(1)


def _print_report(report: TurnReport, out: OutputWrapper, err: OutputWrapper, options: dict[str, Any]) -> None:
    if options["as_json"]:
        out.write(json.dumps(_report_as_json(report, is_rehearsal=options["dry_run"])))
        return
    for place, rejected in report.rejected:
        err.write(f"{place}: {rejected.detail}")
    verb = "would be stored" if options["dry_run"] else "stored"
    roles = ", ".join(f"{count:,} {role}" for role, count in sorted(report.stored.items()))
    of_whom = f" ({roles})" if roles else ""
    turns, conversations = pluralize(report.stored.total(), "turn"), pluralize(len(report.sessions), "conversation")
    counts = [f"{turns} of {conversations} {verb}{of_whom}", f"{report.known} known already"]
    counts += [f"{report.split:,} of these in parts"] if report.split else []
    counts += [f"{report.erased:,} refused: erased"] if report.erased else []
    counts += [f"{len(report.rejected)} refused"] if report.rejected else []
    out.write(", ".join(counts) + ".")
    if report.stored and not options["dry_run"]:
        minutes = settings.POLICY.turns.age_minutes
        out.write(f"Workers read them as they read all turns: what is said last within {minutes:g} minutes.")
    if report.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(report.left_out.items()))
        out.write(f"Left out: {reasons}.")


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
