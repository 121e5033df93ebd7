"""Maintain a workspace's memory now (L8)."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.maintenance.maintain import maintain_workspace
from memory.management.command_line import Report, WorkspaceCommand
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = "Link what is new, merge entities and notes that are one, let edges fade, and seal boxes; and say how much."

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        done = maintain_workspace(workspace_id=workspace.pk, now=now)
        changed = ["no time left" if one.changed is None else f"{one.changed} changed" for one in done]
        return Report(
            values={"steps": [asdict(one) for one in done]},
            lines=[f"{one.step}: {told}, {one.seconds:.1f} s" for one, told in zip(done, changed, strict=True)],
        )
