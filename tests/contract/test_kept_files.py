"""What older code exported and backed up is read today: all of it, with the same numbers (R14, B22)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from beliefsite.backups import inspect_backup, restore_backup
from memory.export.exporter import export_workspace
from memory.models import Belief, Workspace
from memory.recall.query import RecallQuery
from memory.recall.recall import recall
from tests.beliefsite.backups.databases import EMPTY
from tests.contract import kept_files
from tests.contract.callers import WORKSPACE
from tests.contract.keeping import RECORDED, Keeper, as_text
from tests.contract.scenes import OPENING
from tests.recall.memories import scope_of


@pytest.fixture
def held() -> dict[str, Any]:
    """Return what stands in both files."""
    read: dict[str, Any] = json.loads(kept_files.HELD.read_text(encoding="utf-8"))
    return read


def as_read(workspace: Workspace) -> Any:
    """Return what a workspace holds, as it would be read from a file."""
    return json.loads(as_text(kept_files.describe(workspace)))


@pytest.mark.django_db
def test_an_export_is_recorded_where_that_is_asked_for(keeper: Keeper) -> None:
    """The only test that writes it: `python -m tests.contract --files`."""
    if keeper.is_recording_files:
        keeper.keep(kept_files.HELD, kept_files.write_export())
    assert kept_files.EXPORT.stat().st_size < 500_000


@pytest.mark.django_db
def test_an_older_export_is_read_with_the_same_numbers(held: dict[str, Any]) -> None:
    workspace, imported = kept_files.read_export()
    assert as_read(workspace) == held
    assert kept_files.drift(workspace) == []
    assert imported.recomputed == 1  # a curator's word has its day since then


@pytest.mark.django_db
def test_what_was_read_is_recalled() -> None:
    workspace, _ = kept_files.read_export()
    question = RecallQuery(query="What does Agnes bind her books in?", limit=3)
    found = recall(scope=scope_of(workspace=workspace), question=question, now=OPENING)
    assert "linen" in found.results[0].text


@pytest.mark.django_db
def test_an_export_of_today_has_the_columns_that_were_recorded(keeper: Keeper, tmp_path: Path) -> None:
    """Programs that read exports rely on what each kind of row has."""
    workspace, _ = kept_files.read_export()
    again = tmp_path / "again.jsonl"
    again.write_bytes(b"".join(block.data for block in export_workspace(workspace=workspace)))
    keeper.keep(RECORDED / "export_columns.json", kept_files.columns_of(again))


def test_an_older_backup_is_restored_with_the_same_numbers(
    keeper: Keeper, held: dict[str, Any], django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path: Path,
    settings: Settings,
) -> None:  # fmt: skip
    settings.DATA_DIR = tmp_path
    with django_db_blocker.unblock():
        if keeper.is_recording_files:
            kept_files.write_small_backup()
        with kept_files.other_database("contract_restored", like=EMPTY):
            given: dict[str, Any] = {"now": OPENING, "force": False, "settings_file": tmp_path / "restored.env"}
            restored = restore_backup(file=kept_files.BACKUP, **given)
            workspace = Workspace.objects.get(name=WORKSPACE)
            assert (as_read(workspace), kept_files.drift(workspace)) == (held, [])
            assert restored.beliefs == Belief.objects.count()
    assert kept_files.BACKUP.stat().st_size < 500_000


def test_the_backup_tells_nothing_of_where_it_was_made() -> None:
    manifest = inspect_backup(file=kept_files.BACKUP)
    assert set(manifest.settings) <= {"ENGRAM_LLM", "ENGRAM_EMBEDDINGS", "ENGRAM_KEEP_CONNECTIONS"}
    assert os.sep not in "".join(manifest.settings.values())
