"""Print what bears on a task (R12)."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from memory.access import Viewer
from memory.management.command_line import Report, WorkspaceCommand, named_project, usage_error
from memory.models import Workspace
from memory.recall.prompt_lines import gather_context
from memory.recall.query import RecallScope
from memory.redaction.service import redact_name


class Command(WorkspaceCommand):
    help = "Print the beliefs, and the episodes near a query, that fit into so many tokens; they count as accessed."

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--project")
        parser.add_argument("--user", default="")
        parser.add_argument("--max-tokens", type=int)

    def run(
        self,
        *,
        query: str,
        workspace: Workspace,
        project: str | None,
        user: str,
        max_tokens: int | None,
        now: datetime,
        **options: Any,
    ) -> Report:
        most = settings.POLICY.context.max_tokens
        if max_tokens is not None and not 1 <= max_tokens <= most:
            raise usage_error(f"--max-tokens: 1 to {most} is expected.")
        if not query.strip():
            raise usage_error("The query is empty.")
        scope = RecallScope(
            viewer=Viewer(workspace=workspace),
            project_id=named_project(workspace=workspace, slug=project).pk if project else None,
            user=redact_name(user).text,
        )
        context = gather_context(scope=scope, query=query, max_tokens=max_tokens, now=now)
        return Report(values={"text": context.text, "ids": context.ids}, lines=[context.text])
