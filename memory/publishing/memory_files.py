"""Begin to publish into a MEMORY.md, move it, and end it (P2, P11)."""

from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from memory.domain.errors import EngramError
from memory.models import MemoryFile, Project, Workspace
from memory.publishing.publish import copy_to_beliefs, publish_file
from memory.publishing.writing import SectionStays, check_target, take_sections_out


class PathTaken(EngramError):
    """A path that another workspace, project or user publishes into, or a scope that has another path."""

    status = HTTPStatus.CONFLICT
    field = "path"


def enable_file(*, workspace: Workspace, path: Path, project: Project | None, user: str, now: datetime) -> MemoryFile:
    """Have a workspace publish into a path from now on; raise UnsafePath or PathTaken."""
    real = check_target(path)
    try:
        with transaction.atomic():
            return MemoryFile.objects.create(
                workspace=workspace, project=project, user=user, path=str(real), created_at=now
            )
    except IntegrityError as error:
        raise PathTaken(_why_taken(real, workspace)) from error


def _why_taken(path: Path, workspace: Workspace) -> str:
    if MemoryFile.objects.for_workspace(workspace).filter(path=str(path)).exists():
        return f"{path} is written for another project or user of this workspace."
    if MemoryFile.objects.filter(path=str(path)).exists():
        return f"{path} is written for another workspace."
    return "This project and user have another file."


@transaction.atomic
def disable_file(*, file: MemoryFile) -> None:
    """End publishing into a file: take our sections out of it, and its beliefs' dates with them (P11).

    Where the file or its folder is gone, there is nothing to take out. Raise SectionStays, and leave all as it was.
    """
    held = MemoryFile.objects.select_for_update().filter(pk=file.pk).first()
    if held is None:
        return
    ids = list(held.beliefs.values_list("belief", flat=True))
    take_sections_out(Path(held.path))
    held.delete()
    copy_to_beliefs(ids)


@transaction.atomic
def disable_files(*, files: QuerySet[MemoryFile]) -> None:
    """End publishing into files, before what they are of is deleted in the same transaction (P11).

    Raise SectionStays: then nothing is to be deleted. Files that were done before come back with the next cycle.
    """
    for file in files.order_by("pk"):
        disable_file(file=file)


@transaction.atomic
def move_file(*, file: MemoryFile, path: Path, now: datetime) -> bool:
    """Publish into another path from now on: write our section there, then take it out of the old file (P11).

    Return whether it is another one. Raise UnsafePath, PathTaken, SectionStays, or what kept the new file from being
    written: all is as it was then.
    """
    new = check_target(path)
    held = MemoryFile.objects.select_for_update().get(pk=file.pk)
    if str(new) == held.path:
        return False
    try:
        with transaction.atomic():
            MemoryFile.objects.filter(pk=held.pk).update(path=str(new))
    except IntegrityError as error:
        raise PathTaken(f"{new} is published into already.") from error
    try:
        publish_file(held.pk, now, None, may_graduate=False)
        take_sections_out(Path(held.path))
    except (EngramError, OSError):
        with suppress(SectionStays):
            take_sections_out(new)
        raise
    return True
