"""Create a workspace."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memory.access.workspaces import create_workspace
from memory.management.failures import failing_on_invalid


class Command(BaseCommand):
    help = "Create a workspace: a tenant with memories of its own."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **options: Any) -> None:
        with failing_on_invalid():
            workspace = create_workspace(name=name, now=timezone.now())
        self.stdout.write(f"Created workspace {workspace.name}.")
