"""Print what bears on a task (R12)."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import Viewer, find_workspace
from memory.management.command_line import ServiceCommand, named_project, usage_error
from memory.recall.prompt_lines import gather_context
from memory.recall.query import RecallScope
from memory.redaction.service import redact_name


class Command(ServiceCommand):
    help = "Print the beliefs, and the episodes near a query, that fit into so many tokens; they count as accessed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--project")
        parser.add_argument("--user", default="")
        parser.add_argument("--max-tokens", type=int)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(
        self,
        *,
        query: str,
        workspace: str,
        project: str | None,
        user: str,
        max_tokens: int | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        most = settings.POLICY.context.max_tokens
        if max_tokens is not None and not 1 <= max_tokens <= most:
            raise usage_error(f"--max-tokens: 1 to {most} is expected.")
        if not query.strip():
            raise usage_error("The query is empty.")
        found = find_workspace(name=workspace)
        scope = RecallScope(
            viewer=Viewer(workspace=found),
            project_id=named_project(workspace=found, slug=project).pk if project else None,
            user=redact_name(user).text,
        )
        context = gather_context(scope=scope, query=query, max_tokens=max_tokens, now=timezone.now())
        self.stdout.write(json.dumps({"text": context.text, "ids": context.ids}) if as_json else context.text)
