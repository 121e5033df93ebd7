"""Recompute every belief from its evidence and report what differs."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from memory.access import find_workspace
from memory.ledger.confidence import Drift, find_drift
from memory.management.command_line import ServiceCommand, pluralize
from memory.models import Workspace


class Command(ServiceCommand):
    help = "Recompute α and β of every belief from its evidence rows and report drift (exit 1 if there is any)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", help="only this workspace; all of them without")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        named = options["workspace"]
        workspaces = [find_workspace(name=named)] if named else list(Workspace.objects.order_by("pk"))
        checked, drifts = 0, list[Drift]()
        for workspace in workspaces:
            count, found = find_drift(workspace=workspace)
            checked, drifts = checked + count, drifts + found
        if options["json"]:
            told = {"workspaces": len(workspaces), "checked": checked, "drift": drifts}
            self.stdout.write(json.dumps(told, cls=DjangoJSONEncoder))
        else:
            for drift in drifts:
                self.stdout.write(
                    f"{drift['id']}: {drift['column']} is {drift['stored']}, evidence gives {drift['given']}"
                )
            whose = named or f"{pluralize(len(workspaces), 'workspace')}"
            self.stdout.write(
                f"{pluralize(checked, 'belief')} of {whose} checked, {pluralize(len(drifts), 'difference')}"
            )
        if drifts:
            raise CommandError("Some beliefs differ from their evidence.", returncode=1)
