"""Publish the most trusted beliefs into MEMORY.md files, begin to, or end it (P2, P11)."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memory.management.command_line import Report, WorkspaceCommand, named_project, named_user, usage_error
from memory.models import MemoryFile, Project, Workspace
from memory.publishing.publish import disable_file, enable_file, publish_workspace

GLOBAL_PATH = Path("~/.claude-memory/MEMORY.md")
PROJECT_PATH = Path(".claude/memory/MEMORY.md")


class Command(WorkspaceCommand):
    help = (
        "Write a workspace's most trusted beliefs into its MEMORY.md files. With --enable, one more is written from"
        " now on; with --remove, our sections are taken out of the files, and they are left alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--enable", action="store_true", help="write one more file from now on")
        either.add_argument("--remove", action="store_true", help="take our sections out, and write no more")
        parser.add_argument(
            "--path", type=Path, help=f"the file to enable; by default {GLOBAL_PATH}, or {PROJECT_PATH} of the project"
        )
        parser.add_argument("--project", help="slug: the file of this project's beliefs")
        parser.add_argument("--user", help="the file of this user's beliefs and those of no user")

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        project = named_project(workspace=workspace, slug=options["project"]) if options["project"] else None
        user = named_user(options["user"])
        if options["remove"]:
            return _remove(workspace, project, user)
        if options["enable"]:
            path = (options["path"] or _usual_path(project)).expanduser()
            enable_file(workspace=workspace, path=path, project=project, user=user or "", now=now)
        elif options["path"] or project or user:
            raise usage_error("--path, --project and --user name a file to --enable or to --remove.")
        done = publish_workspace(workspace_id=workspace.pk, now=now, may_graduate=True)
        files = MemoryFile.objects.for_workspace(workspace).order_by("path")
        told = [f"{file.path}: {file.problem or 'up to date'}" for file in files]
        counts = {name: getattr(done, name) for name in ("graduated", "promoted", "demoted", "removed")}
        return Report(
            values={
                "files": [{"path": file.path, "problem": file.problem} for file in files],
                **counts,
                "written": done.written,
            },
            lines=[*told, ", ".join(f"{count} {name}" for name, count in counts.items())],
            has_failed=done.failed > 0,
        )


def _usual_path(project: Project | None) -> Path:
    if project is None:
        return GLOBAL_PATH
    if not project.path:
        raise usage_error(f"--enable: project {project.slug} has no path; give one with --path.")
    return Path(project.path) / PROJECT_PATH


def _remove(workspace: Workspace, project: Project | None, user: str | None) -> Report:
    files = MemoryFile.objects.for_workspace(workspace).order_by("path")
    files = files.filter(project=project) if project else files
    files = files.filter(user=user) if user else files
    paths = [file.path for file in files]
    for file in files:
        disable_file(file=file)
    return Report(values={"removed": paths}, lines=[f"{path}: our sections are taken out" for path in paths])
