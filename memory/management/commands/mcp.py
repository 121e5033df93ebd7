"""Serve the tools for agents to one client, over standard input and output."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from memory.access import UNKNOWN_KEY, find_key
from memory.management.command_line import ServiceCommand, usage_error

VARIABLE = "ENGRAM_API_KEY"


class Command(ServiceCommand):
    help = (
        "Serve Engram's tools to an agent over standard input and output (Model Context Protocol). Clients start it "
        f"themselves. What it may do is what the key may, of --key or {VARIABLE}."
    )
    requires_system_checks = ()  # a client waits for the first answer

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--key", default="", help=f"an API key; better given as {VARIABLE}, which others cannot see"
        )

    def handle(self, *, key: str, **options: Any) -> None:
        text = key or settings.ENGRAM_API_KEY
        if not text:
            raise usage_error(f"A key is needed: set {VARIABLE}, or give --key. create_api_key makes one.")
        if find_key(text=text) is None:
            raise CommandError(UNKNOWN_KEY, returncode=1)
        from memory.mcp.server import build_server  # the SDK takes seconds to import

        build_server(key_text=text).run("stdio")
