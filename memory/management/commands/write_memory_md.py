"""Publish the most trusted beliefs into MEMORY.md files, begin to, or end it (P2, P11)."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.management.command_line import Report, WorkspaceCommand, fail_on, named_project, named_user, usage_error
from memory.models import MemoryFile, Project, Workspace
from memory.publishing.memory_files import disable_file, enable_file, move_file
from memory.publishing.publish import publish_workspace
from memory.publishing.writing import SectionStays

GLOBAL_PATH = Path("~/.claude-memory/MEMORY.md")
PROJECT_PATH = Path(".claude/memory/MEMORY.md")


class Command(WorkspaceCommand):
    help = (
        "Write a workspace's most trusted beliefs into its MEMORY.md files. With --enable, one more is written from now"
        " on, or the file that these beliefs have moves; with --remove, our sections are taken out of the files, and"
        " they are left alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        either = parser.add_mutually_exclusive_group()
        either.add_argument(
            "--enable", action="store_true", help="write this file from now on, and no other of these beliefs"
        )
        either.add_argument("--remove", action="store_true", help="take our sections out, and write no more")
        parser.add_argument(
            "--path",
            type=Path,
            help=f"the file to enable, by default {GLOBAL_PATH}, or {PROJECT_PATH} of the project; "
            "or the only one to remove",
        )
        parser.add_argument("--project", help="slug: the file of this project's beliefs")
        parser.add_argument("--user", help="the file of this user's beliefs and those of no user")

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        project = named_project(workspace=workspace, slug=options["project"]) if options["project"] else None
        user = named_user(options["user"])
        if options["remove"]:
            return _remove(workspace, project, user, options["path"])
        moved = []
        if options["enable"]:
            path = (options["path"] or _usual_path(project)).expanduser()
            with fail_on(OSError):
                moved = _enable(workspace, path, project, user or "", now)
        elif options["path"] or project or user:
            raise usage_error("--path, --project and --user name a file to --enable or to --remove.")
        done = publish_workspace(workspace_id=workspace.pk, now=now, may_graduate=True)
        files = MemoryFile.objects.for_workspace(workspace).order_by("path")
        told = [f"{file.path}: {_how_it_stands(file)}" for file in files] or ["No file is written; --enable names one."]
        counts = {name: getattr(done, name) for name in ("graduated", "promoted", "demoted", "removed")}
        return Report(
            values={
                "files": [{"path": file.path, "problem": file.problem} for file in files],
                **counts,
                "written": done.written,
            },
            lines=[*moved, *told, ", ".join(f"{count} {name}" for name, count in counts.items())],
            has_failed=done.failed > 0,
        )


def _how_it_stands(file: MemoryFile) -> str:
    if file.problem:
        return str(file.problem)
    return "up to date" if Path(file.path).exists() else "nothing to write yet"


def _enable(workspace: Workspace, path: Path, project: Project | None, user: str, now: datetime) -> list[str]:
    """Begin to write a file, or move the one that these beliefs have and say so."""
    before = MemoryFile.objects.for_workspace(workspace).filter(project=project, user=user).first()
    if before is None:
        enable_file(workspace=workspace, path=path, project=project, user=user, now=now)
        return []
    return [f"{before.path}: our sections are taken out"] if move_file(file=before, path=path, now=now) else []


def _usual_path(project: Project | None) -> Path:
    if project is None:
        return GLOBAL_PATH
    if not project.path:
        raise usage_error(f"--enable: project {project.slug} has no path; give one with --path.")
    return Path(project.path) / PROJECT_PATH


def _remove(workspace: Workspace, project: Project | None, user: str | None, path: Path | None) -> Report:
    files = MemoryFile.objects.for_workspace(workspace).order_by("path")
    files = files.filter(project=project) if project else files
    files = files.filter(user=user) if user else files
    if path:
        files = files.filter(path__in={str(path.expanduser()), str(path.expanduser().resolve())})
    if not files:
        raise CommandError("No such file is written.", returncode=1)
    removed, told = [], []
    for file in files:
        try:
            disable_file(file=file)
        except SectionStays as error:
            told.append(str(error))
        else:
            removed.append(file.path)
            told.append(f"{file.path}: our sections are taken out")
    return Report(values={"removed": removed}, lines=told, has_failed=len(told) > len(removed))
