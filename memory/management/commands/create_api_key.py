"""Create a key for the API."""

import argparse
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import create_key, find_workspace
from memory.management.command_line import ServiceCommand, named_project
from memory.models import Permission


def read_permissions(text: str) -> list[Permission]:
    """Read a list such as `read,write`."""
    try:
        return sorted({Permission(name.strip()) for name in text.split(",")}, key=list(Permission).index)
    except ValueError:
        names = ", ".join(Permission.values)
        raise argparse.ArgumentTypeError(f"{text!r} has something other than {names}") from None


class Command(ServiceCommand):
    help = "Create an API key. It is printed once, alone on the last line, and stored only as a hash."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workspace")
        parser.add_argument(
            "--permissions",
            type=read_permissions,
            default="read,write",
            help="of read, write, curate and owner, joined by commas (default: read,write)",
        )
        parser.add_argument(
            "--project", dest="projects", nargs="+", action="extend", default=[], metavar="SLUG", help="limit the key"
        )
        parser.add_argument("--name", default="", help="what the key is for")

    def handle(
        self, *, workspace: str, permissions: list[Permission], projects: list[str], name: str, **options: Any
    ) -> None:
        owner = find_workspace(name=workspace)
        limits = [named_project(workspace=owner, slug=slug) for slug in projects]
        _, text = create_key(workspace=owner, permissions=permissions, projects=limits, name=name, now=timezone.now())
        scope = f", projects: {', '.join(projects)}" if projects else ""
        self.stdout.write(f"Created a key of workspace {owner.name} ({', '.join(permissions)}{scope}). Keep it:")
        self.stdout.write(text)
