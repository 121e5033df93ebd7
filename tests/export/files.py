"""Files of a workspace in memory."""

import io
import json
from collections.abc import Callable
from typing import Any

from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import remove_workspace
from memory.export.exporter import export_workspace
from memory.export.importer import ImportResult, import_workspace
from memory.models import Workspace
from tests import factories

LENA = Actor(kind=ActorKind.PERSON, name="lena")


def exported(workspace: Workspace, *, user: str | None = None) -> bytes:
    """Return a workspace's file."""
    return b"".join(block.data for block in export_workspace(workspace=workspace, user=user))


def imported(file: bytes, *, workspace: Workspace) -> ImportResult:
    """Read a file into a workspace."""
    return import_workspace(workspace=workspace, stream=io.BytesIO(file), actor=LENA, now=factories.NOW)


def moved(workspace: Workspace) -> tuple[bytes, Workspace]:
    """Export a workspace, remove it, and read its file into a new one."""
    file = exported(workspace)
    remove_workspace(name=workspace.name)
    fresh = factories.workspace()
    imported(file, workspace=fresh)
    return file, fresh


def edited(file: bytes, change: Callable[[list[Any]], object]) -> bytes:
    """Return a file after a change of its lines as JSON."""
    lines = [json.loads(line) for line in file.splitlines()]
    change(lines)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
