"""The commands `export_workspace` and `import_workspace`."""

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from memory.models import Cycle, Episode, Workspace
from tests import factories
from tests.export.files import exported
from tests.recall.memories import remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(db: None) -> Workspace:
    workspace = factories.workspace(name="mill")
    remembered("Mara drinks tea.", workspace=workspace, user="mara")
    return workspace


def test_a_memory_goes_to_a_file_and_comes_back(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R14: the same to the last byte."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    call_command("export_workspace", str(first), "--workspace", "mill")
    workspace.delete()
    factories.workspace(name="forge")
    call_command("import_workspace", str(first), "--workspace", "forge")
    call_command("export_workspace", str(second), "--workspace", "forge", "--json")
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().out == (
        f"2 rows written to {first}.\n1 episode, 0 beliefs, 0 cycles read, 2 rows in all.\n"
        + json.dumps({"file": str(second), "rows": 2}) + "\n"
    )  # fmt: skip


def test_a_users_data_go_to_a_file(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "mara.jsonl"
    call_command("export_workspace", str(file), "--workspace", "mill", "--user", "mara")
    assert file.read_bytes() == exported(workspace, user="mara")


def test_no_file_is_overwritten(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("mine")
    with pytest.raises(CommandError, match="exists already") as failed:
        call_command("export_workspace", str(file), "--workspace", "mill")
    assert (failed.value.returncode, file.read_text()) == (1, "mine")


def test_an_open_cycle_leaves_no_file(workspace: Workspace, tmp_path: Path) -> None:
    """R14: nor half of one."""
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=Now())
    with pytest.raises(CommandError, match=cycle.pk) as failed:
        call_command("export_workspace", str(tmp_path / "x.jsonl"), "--workspace", "mill")
    assert (failed.value.returncode, list(tmp_path.iterdir())) == (1, [])


def test_a_broken_file_fails_with_its_line(workspace: Workspace, tmp_path: Path) -> None:
    """R14."""
    file = tmp_path / "broken.jsonl"
    file.write_bytes(exported(workspace)[:-10])
    workspace.delete()
    factories.workspace(name="forge")
    with pytest.raises(CommandError, match=r"line 3: is not JSON.*Nothing was read") as failed:
        call_command("import_workspace", str(file), "--workspace", "forge")
    assert (failed.value.returncode, Episode.objects.count()) == (1, 0)


def test_it_tells_machines_what_was_read(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(exported(workspace))
    workspace.delete()
    factories.workspace(name="forge")
    call_command("import_workspace", str(file), "--workspace", "forge", "--json")
    told = {"episodes": 1, "beliefs": 0, "cycles": 0, "evidence": 0, "rows": 2, "recomputed": 0, "with_secrets": 0}
    assert json.loads(capsys.readouterr().out) == told


@pytest.mark.parametrize(
    "words",
    [
        ["export_workspace", "x.jsonl", "--workspace", "mine"],
        ["export_workspace", "/nowhere/x.jsonl", "--workspace", "mill"],
        ["export_workspace", "x.jsonl", "--workspace", "mill", "--user", ""],
        ["import_workspace", "/nowhere/x.jsonl", "--workspace", "mill"],
    ],
)
def test_what_is_not_there_is_bad_usage(workspace: Workspace, words: list[str]) -> None:
    with pytest.raises(CommandError) as failed:
        call_command(*words)
    assert failed.value.returncode == 2
