"""Recompute every belief from its evidence and report what differs."""

from typing import Any

from django.core.management.base import CommandParser

from memory.access import find_workspace
from memory.ledger.confidence import Drift, find_drift
from memory.management.command_line import Report, ReportCommand, pluralize
from memory.models import Workspace


class Command(ReportCommand):
    help = "Recompute α and β of every belief from its evidence rows and report drift (exit 1 if there is any)."

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", help="only this workspace; all of them without")

    def run(self, *, workspace: str | None, **options: Any) -> Report:
        workspaces = [find_workspace(name=workspace)] if workspace else list(Workspace.objects.order_by("pk"))
        checked, drifts = 0, list[Drift]()
        for one in workspaces:
            count, found = find_drift(workspace=one)
            checked, drifts = checked + count, drifts + found
        whose = workspace or pluralize(len(workspaces), "workspace")
        told = f"{pluralize(checked, 'belief')} of {whose} checked, {pluralize(len(drifts), 'difference')}"
        return Report(
            values={"workspaces": len(workspaces), "checked": checked, "drift": drifts},
            lines=[*(_drift_in_words(drift) for drift in drifts), told],
            failure="Some beliefs differ from their evidence." if drifts else "",
        )


def _drift_in_words(drift: Drift) -> str:
    return f"{drift['id']}: {drift['column']} is {drift['stored']}, evidence gives {drift['given']}"
