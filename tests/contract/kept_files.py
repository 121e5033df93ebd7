"""An export and a backup of a small memory, as older code wrote them, and what must come out of them."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from beliefsite.backups import write_backup
from memory.domain.identity import Actor, ActorKind
from memory.export.exporter import export_workspace
from memory.export.importer import ImportResult, import_workspace
from memory.ledger.confidence import find_drift
from memory.models import Belief, Conversation, Cycle, Episode, Evidence, Lineage, Workspace
from tests.beliefsite.backups.databases import create_database, drop_databases, inside_database
from tests.contract.callers import WORKSPACE
from tests.contract.keeping import RECORDED, SCENES
from tests.contract.scenes import OPENING, Scene, play

EXPORT, BACKUP = RECORDED / "memory.jsonl", RECORDED / "memory.backup"
HELD = RECORDED / "memory.json"  # what both hold
SCENE = Scene(file=SCENES / "a_small_memory.jsonl")

_LENA = Actor(kind=ActorKind.PERSON, name="lena")


def write_export() -> dict[str, Any]:
    """Live through the scene, write its export, and return what it holds."""
    play(SCENE)
    workspace = Workspace.objects.get(name=WORKSPACE)
    EXPORT.write_bytes(b"".join(block.data for block in export_workspace(workspace=workspace)))
    return describe(workspace)


def write_small_backup() -> None:
    """Live through the scene in a database of its own, and back that up."""
    with other_database("contract_written", like=connection.settings_dict["NAME"]):
        play(SCENE)
        BACKUP.unlink(missing_ok=True)
        write_backup(to=BACKUP, now=OPENING)
        BACKUP.chmod(0o644)


def read_export() -> tuple[Workspace, ImportResult]:
    """Read the recorded export into a new workspace."""
    workspace = Workspace.objects.create(name="Read In", created_at=OPENING)
    stream = io.BytesIO(EXPORT.read_bytes())
    return workspace, import_workspace(workspace=workspace, stream=stream, actor=_LENA, now=OPENING)


@contextmanager
def other_database(name: str, *, like: str) -> Iterator[None]:
    """Work in a database of its own, a copy of another one, which is dropped afterwards."""
    create_database(name, like=like)
    try:
        with inside_database(name):
            yield
    finally:
        drop_databases(name)


def describe(workspace: Workspace) -> dict[str, Any]:
    """Return what a workspace holds, as far as a reader of its files relies on it."""
    counted = (Episode, Belief, Evidence, Cycle, Lineage, Conversation)
    beliefs = Belief.objects.for_workspace(workspace).order_by("statement")
    return {
        "counts": {model.__name__: model.objects.for_workspace(workspace).count() for model in counted},
        "beliefs": {
            belief.statement: {"alpha": belief.alpha, "beta": belief.beta, "status": belief.status}
            for belief in beliefs
        },
        "episodes": sorted(Episode.objects.for_workspace(workspace).values_list("text", "status", "state")),
        "evidence": sorted(
            Evidence.objects.for_workspace(workspace).values_list("belief__statement", "episode__text", "verdict")
        ),
    }


def drift(workspace: Workspace) -> list[Any]:
    """Return what `verify_beliefs` finds."""
    return list(find_drift(workspace=workspace)[1])


def columns_of(file: Path) -> dict[str, list[str]]:
    """Return what each kind of row of an export has."""
    found: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        [(kind, row)] = json.loads(line).items()
        found.setdefault(kind, set()).update(row)
    return {kind: sorted(names) for kind, names in sorted(found.items())}
