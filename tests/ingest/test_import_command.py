"""import_episodes."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.ingest import files
from memory.models import Episode, Workspace
from tests import factories
from tests.ingest.history import write_history, write_lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace(name="acme")


def run(file: Path, *options: str, workspace: str = "acme") -> tuple[int, str, str]:
    """Run the command; return its exit status and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command("import_episodes", str(file), "--workspace", workspace, *options, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def report(file: Path, *options: str) -> tuple[int, Any]:
    code, out, _ = run(file, "--json", *options)
    return code, json.loads(out)


def test_file_is_imported_once(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L4: importing the same file again adds nothing."""
    monkeypatch.setattr(files, "BATCH", 10)
    file = write_history(tmp_path, count=25)
    assert report(file) == (0, {"stored": 25, "deduplicated": 0, "rejected": [], "cycles": []})
    assert report(file) == (0, {"stored": 0, "deduplicated": 25, "rejected": [], "cycles": []})
    assert Episode.objects.count() == 25


def test_bad_lines_are_named_and_the_good_are_kept(workspace: Workspace, tmp_path: Path) -> None:
    """Bad input: exit 1, with line number and reason; blank lines do not count."""
    file = write_lines(
        tmp_path, b'\xef\xbb\xbf{"text": "One."}', "", "{", '{"text": "", "x": 1}', b"\xff", '{"text": "Two."}'
    )
    code, out, err = run(file)
    assert code == 1
    assert out == "2 episodes stored, 0 known already, 3 refused.\n"
    assert [line.split(":")[0] for line in err.splitlines()] == ["line 3", "line 4", "line 5"]
    assert "text: The text is empty.; x: There is no such field." in err
    assert set(Episode.objects.values_list("text", flat=True)) == {"One.", "Two."}


def test_bad_lines_in_json(workspace: Workspace, tmp_path: Path) -> None:
    code, answer = report(write_lines(tmp_path, '{"text": "One.", "importance": NaN}', "[]"))
    assert code == 1
    assert [(line["line"], line["status"]) for line in answer["rejected"]] == [(1, 422), (2, 422)]
    assert answer["rejected"][0]["errors"] == {"importance": ["Input should be a finite number"]}


def test_line_without_session_and_time_has_the_file_as_document(workspace: Workspace, tmp_path: Path) -> None:
    """Origin: a line of a file with neither session nor occurred_at has the file's name as document."""
    lines = [
        {"text": "One."},
        {"text": "Two.", "session": "s"},
        {"text": "Three.", "occurred_at": "2026-01-01T00:00:00Z"},
        {"text": "Four.", "document": "d"},
    ]
    run(write_lines(tmp_path, *map(json.dumps, lines)))
    assert dict(Episode.objects.values_list("text", "origin")) == {
        "One.": "document:history.jsonl",
        "Two.": "session:s",
        "Three.": "day:2026-01-01:interaction:",
        "Four.": "document:d",
    }


def test_project_is_of_lines_that_name_none(workspace: Workspace, tmp_path: Path) -> None:
    run(write_lines(tmp_path, '{"text": "One."}', '{"text": "Two.", "project": "own"}'), "--project", "given")
    assert dict(Episode.objects.values_list("text", "project__slug")) == {"One.": "given", "Two.": "own"}


def test_replay_runs_cycles(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clock: --replay lives through the file and names its cycles."""
    from memory.ingest import replay
    from memory.models import Cycle
    from tests.consolidation.inline import run_steps

    monkeypatch.setattr(replay, "wait_for_cycle", lambda cycle_id: run_steps(Cycle.objects.get(pk=cycle_id)))
    code, answer = report(write_history(tmp_path, count=5), "--replay")
    assert (code, answer["stored"]) == (0, 5)
    assert answer["cycles"] == [Cycle.objects.get().pk]


@pytest.mark.parametrize("options", [("--project", "no spaces"), ("--colour", "blue")])
def test_bad_options_are_bad_usage(workspace: Workspace, tmp_path: Path, options: tuple[str, str]) -> None:
    with pytest.raises(CommandError) as error:
        run(write_history(tmp_path, count=1), *options)
    assert error.value.returncode == 2 or "unrecognized" in str(error.value)
    assert not Episode.objects.exists()


def test_missing_file_and_workspace_are_bad_usage(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file") as no_file:
        run(tmp_path / "none.jsonl")
    with pytest.raises(CommandError, match="There is no workspace 'other'") as no_workspace:
        run(write_history(tmp_path, count=1), workspace="other")
    assert (no_file.value.returncode, no_workspace.value.returncode) == (2, 2)
