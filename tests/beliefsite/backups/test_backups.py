"""A backup is the memory as it was; restoring it gives everything or changes nothing."""

import hashlib
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environ
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from beliefsite.backups import (
    DUMP,
    MANIFEST,
    BackupError,
    count_rows,
    inspect_backup,
    read_settings,
    restore_backup,
    write_backup,
)
from memory.models import Belief, BeliefEmbedding, Episode, Heartbeat, Workspace
from tests import factories
from tests.beliefsite.backups.conftest import MIGRATED, Move
from tests.beliefsite.backups.databases import EMPTY

pytestmark = pytest.mark.usefixtures("data_dir")


@pytest.fixture
def backup(memory: Move, tmp_path: Path) -> Path:
    return write_backup(to=tmp_path, now=factories.NOW)


def _restore(file: Path, **given: Any) -> Any:
    options: dict[str, Any] = {"now": factories.NOW, "force": False, "settings_file": file.parent / "restored.env"}
    return restore_backup(file=file, **options | given)


def _rows() -> dict[str, Any]:
    """Read what matters of a memory, vectors included."""
    return {
        "counts": count_rows(),
        "beliefs": list(Belief.objects.order_by("pk").values()),
        "episodes": list(Episode.objects.order_by("pk").values()),
        "vectors": [list(row.vector) for row in BeliefEmbedding.objects.order_by("pk")],
    }


def test_a_new_database_gets_everything_back(memory: Move, backup: Path) -> None:
    """B22: rows, vectors, constraints and triggers; beliefs equal their evidence."""
    before = _rows()
    memory(EMPTY)
    restored = _restore(backup)
    assert _rows() == before
    assert (restored.beliefs, restored.former) == (1, None)
    with pytest.raises(Exception, match="Cannot update"):
        Episode.objects.update(text="Something else.")


def test_a_database_that_is_migrated_and_empty_is_as_good(memory: Move, backup: Path) -> None:
    before = _rows()
    memory(MIGRATED)
    Heartbeat.objects.create(name="sweep")
    _restore(backup)
    assert _rows() == before


def test_what_is_stored_meanwhile_is_in_neither_the_dump_nor_its_counts(memory: Move, tmp_path: Path) -> None:
    """One snapshot: a backup under way is not disturbed by those who go on writing."""
    counted = count_rows()

    def write_on(_: int) -> None:
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute("INSERT INTO memory_heartbeat (name) VALUES ('later') ON CONFLICT DO NOTHING")
        other.close()

    file = write_backup(to=tmp_path, now=factories.NOW, on_bytes=write_on)
    assert inspect_backup(file=file).tables == counted
    assert count_rows() != counted
    memory(EMPTY)
    _restore(file)
    assert count_rows() == counted


def test_a_database_with_a_memory_in_it_is_left_alone(memory: Move, backup: Path) -> None:
    memory(MIGRATED)
    factories.workspace(name="other")
    with pytest.raises(BackupError, match="not empty"):
        _restore(backup)
    assert list(Workspace.objects.values_list("name", flat=True)) == ["other"]


def test_force_replaces_it_and_keeps_what_was_there(memory: Move, backup: Path) -> None:
    memory(MIGRATED)
    factories.workspace(name="other")
    restored = _restore(backup, force=True)
    assert list(Workspace.objects.values_list("name", flat=True)) == ["kept"]
    memory(EMPTY)
    _restore(restored.former)
    assert list(Workspace.objects.values_list("name", flat=True)) == ["other"]


def test_a_table_of_somebody_else_is_never_touched(memory: Move, backup: Path) -> None:
    memory(EMPTY)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE ledger_of_somebody (id int)")
    with pytest.raises(BackupError, match="ledger_of_somebody"):
        _restore(backup, force=True)
    assert count_rows() == {"ledger_of_somebody": 0}


def test_a_database_that_others_use_is_left_alone(memory: Move, backup: Path) -> None:
    memory(MIGRATED)
    other = connection.copy()
    other.ensure_connection()
    with pytest.raises(BackupError, match="in use by 1 other"):
        _restore(backup)
    other.close()


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flip(file: Path) -> None:
    """Change one byte in the middle of the dump."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def _rewrite(file: Path, **changed: Any) -> None:
    """Write the file anew with other members of its manifest."""
    with zipfile.ZipFile(file) as archive:
        manifest, dump = json.loads(archive.read(MANIFEST)), archive.read(DUMP)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(DUMP, dump)
        archive.writestr(MANIFEST, json.dumps(manifest | changed))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _other_zip(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("letter.txt", "Dear Mara,")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_cut, "is no backup of Engram, or is damaged"),
        (_empty, "is no backup of Engram, or is damaged"),
        (_flip, "damaged"),
        (_other_zip, "is no backup of Engram"),
        (lambda file: _rewrite(file, version=99), "has version 99"),
        (lambda file: _rewrite(file, format="other"), "is no backup of Engram"),
        (lambda file: _rewrite(file, dump_sha256="0" * 64), "is damaged"),
        (lambda file: _rewrite(file, migrations=[["memory", "9999_later"]]), "another release: memory.9999_later"),
    ],
)
def test_a_broken_or_foreign_file_is_refused_and_nothing_is_lost(
    memory: Move, backup: Path, spoil: Callable[[Path], None], said: str
) -> None:
    before = _rows()
    spoil(backup)
    with pytest.raises(BackupError, match=said):
        _restore(backup, force=True)
    assert _rows() == before


def test_a_dump_that_cannot_be_read_to_its_end_changes_nothing(memory: Move, backup: Path) -> None:
    """The transaction is committed only after the dump's last line."""
    before = _rows()
    with zipfile.ZipFile(backup) as archive:
        dump = archive.read(DUMP)
    half = dump[: len(dump) * 2 // 3]
    with zipfile.ZipFile(backup) as archive:
        manifest = json.loads(archive.read(MANIFEST))

    with zipfile.ZipFile(backup, "w") as archive:
        archive.writestr(DUMP, half)
        archive.writestr(MANIFEST, json.dumps(manifest | {"dump_sha256": hashlib.sha256(half).hexdigest()}))
    with pytest.raises(BackupError, match="pg_restore failed"):
        _restore(backup, force=True)
    assert _rows() == before


def test_a_file_that_is_there_is_never_overwritten(memory: Move, backup: Path) -> None:
    content = backup.read_bytes()
    with pytest.raises(BackupError, match="is there already"):
        write_backup(to=backup, now=factories.NOW)
    assert backup.read_bytes() == content


def test_only_its_owner_may_read_a_backup(backup: Path) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [path.name for path in backup.parent.glob("*.unfinished")] == []


def test_settings_come_along_and_secrets_stay_behind(
    memory: Move, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_PRICES", '{"m": [0.4, 1.6]}')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://mara:pw@models.example/v1")
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/db")
    file = write_backup(to=tmp_path / "one.backup", now=factories.NOW)
    manifest = inspect_backup(file=file)
    assert manifest.settings["ENGRAM_PRICES"] == '{"m": [0.4, 1.6]}'
    assert manifest.left_out == ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
    assert b"sk-of-mine" not in file.read_bytes()
    assert "DATABASE_URL" not in manifest.settings

    monkeypatch.delenv("ENGRAM_PRICES")
    memory(EMPTY)
    restored = _restore(file, settings_file=tmp_path / ".env")
    assert restored.settings_file == tmp_path / ".env"
    environ.Env.read_env(str(restored.settings_file))
    assert environ.Env().json("ENGRAM_PRICES") == {"m": [0.4, 1.6]}


def test_what_is_set_under_a_former_name_comes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """B24: whoever restores the backup has the same numbers."""
    monkeypatch.setenv("ENGRAM_RIVALS_BATCH", "10")
    kept, _ = read_settings(with_secrets=False)
    assert kept["ENGRAM_RIVALS_BATCH"] == "10"


def test_secrets_come_along_when_asked_for(memory: Move, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    file = write_backup(to=tmp_path / "all.backup", now=factories.NOW, with_secrets=True)
    assert inspect_backup(file=file).settings["OPENAI_API_KEY"] == "sk-of-mine"


def test_settings_of_a_person_are_left_as_they_are(
    memory: Move, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_WORKERS", "7")
    file = write_backup(to=tmp_path / "one.backup", now=factories.NOW)
    monkeypatch.setenv("ENGRAM_WORKERS", "3")
    (tmp_path / ".env").write_text("ENGRAM_WORKERS=3\n")
    memory(EMPTY)
    restored = _restore(file, settings_file=tmp_path / ".env")
    assert (tmp_path / ".env").read_text() == "ENGRAM_WORKERS=3\n"
    assert restored.settings_file == tmp_path / ".env.restored"


def test_the_commands_say_what_they_did(memory: Move, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("backup", str(tmp_path), json=True)
    wrote = json.loads(capsys.readouterr().out)
    memory(EMPTY)
    call_command("restore", wrote["file"], json=True, settings_file=tmp_path / "restored.env")
    assert json.loads(capsys.readouterr().out)["beliefs"] == 1
    with pytest.raises(CommandError, match="There is no file"):
        call_command("restore", str(tmp_path / "nowhere.backup"))
