"""Create a project."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import create_project, find_workspace
from memory.management.command_line import ServiceCommand, fail_on_invalid


class Command(ServiceCommand):
    help = "Create a project: a named body of work in a workspace, with an optional folder on disk."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workspace")
        parser.add_argument("slug", help="letters, digits, - and _")
        parser.add_argument("--path", type=Path, help="the project's folder")

    def handle(self, *, workspace: str, slug: str, path: Path | None, **options: Any) -> None:
        owner = find_workspace(name=workspace)
        folder = str(path.expanduser().resolve()) if path else ""
        with fail_on_invalid():
            project = create_project(workspace=owner, slug=slug, path=folder, now=timezone.now())
        self.stdout.write(f"Created project {project.slug} in workspace {owner.name}.")
