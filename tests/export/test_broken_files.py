"""R14: a file that is no workspace's memory changes nothing, and what is wrong is named with its line."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from memory.export.file_format import BrokenFile
from memory.export.importer import IdTaken, WorkspaceNotEmpty
from memory.ledger.confidence import recompute_beliefs
from memory.models import Cycle, Episode, Project, Workspace
from tests import factories
from tests.export.files import edited, exported, imported
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db

Lines = list[Any]


@pytest.fixture
def file(db: None) -> bytes:
    """Return the file of a small workspace that is gone: a project, two episodes, a belief."""
    workspace = factories.workspace()
    project = factories.project(workspace=workspace, slug="mill")
    said = remembered("Mara drinks tea.", workspace=workspace, project=project, id="ep_000000000001")
    remembered("Mara drinks milk.", workspace=workspace, id="ep_000000000002")
    belief = believed("Mara drinks.", workspace=workspace, id="bl_000000000001", alpha=2.0)
    factories.evidence(belief=belief, episode=said)
    recompute_beliefs(beliefs=[belief], now=factories.NOW)
    file = exported(workspace)
    workspace.delete()
    return file


@pytest.fixture
def workspace(file: bytes) -> Workspace:
    return factories.workspace()


def test_the_file_itself_is_sound(file: bytes, workspace: Workspace) -> None:
    done = imported(file, workspace=workspace)
    assert (done.counts["episodes"], done.counts["beliefs"], done.recomputed) == (2, 1, 0)
    assert file.splitlines()[2].startswith(b'{"episode":')


def test_a_file_from_before_a_column_is_read(file: bytes, workspace: Workspace) -> None:
    """R14: what a later release keeps besides is empty, or as the database would have it."""

    def age(lines: Lines) -> None:
        for number in (0, 1):
            for name in ("confidence", "causes", "verbatim", "confirmations", "is_near_duplicate"):
                del of(lines, "episode", number)[name]

    imported(edited(file, age), workspace=workspace)

    episode = Episode.objects.get(pk="ep_000000000001")
    assert (episode.confidence, episode.causes, episode.verbatim, episode.confirmations) == (None, [], "", 0)


def of(lines: Lines, kind: str, number: int = 0) -> Any:
    return [line[kind] for line in lines if kind in line][number]


def change(kind: str, name: str, value: object, number: int = 0) -> Callable[[Lines], object]:
    def act(lines: Lines) -> None:
        of(lines, kind, number)[name] = value

    return act


def cut_short(lines: Lines) -> None:
    """Leave the header, the project and the episodes."""
    del lines[4:]


BROKEN: dict[str, tuple[Callable[[Lines], object], str]] = {
    "no header": (lambda lines: lines.pop(0), "line 1: is no header of an export"),
    "another format": (change("engram", "format", "mbox"), "line 1: says that this is not engram-workspace"),
    "a user's data": (change("engram", "format", "engram-user"), "line 1: says that this is one user's data"),
    "a later version": (change("engram", "version", 2), "line 1: says that this is not engram-workspace in version 1"),
    "an odd choice": (
        lambda lines: of(lines, "engram")["settings"].update(confidence_model="guess"),
        "line 1: settings.confidence_model",
    ),
    "a short key": (change("engram", "erasure_key", "AAAA"), "line 1: erasure_key"),
    "more than anybody has": (
        lambda lines: of(lines, "engram")["rows"].update(call=10**9), "line 1: rows: more than 10000000 of call"
    ),
    "a kind that is none": (lambda lines: lines.insert(2, {"dream": {}}), "line 3: 'dream' is not expected here"),
    "another order": (lambda lines: lines.insert(3, lines[1]), "line 4: 'project' is not expected here"),
    "a row too few": (lambda lines: lines.pop(2), "line 4: episode: 1 rows, where the header says 2"),
    "an end too soon": (cut_short, "line 5: the file ends before"),
    "rows that nobody promised": (
        lambda lines: lines.append({"erased": {"row": 1, "digest": "a" * 64}}),
        "erased: 1 rows, where the header says 0",
    ),
    "rows out of order": (change("evidence", "row", 2), "evidence: row: 1 is expected"),
    "a column too many": (change("episode", "colour", "red"), "line 3: episode: there is no column 'colour'"),
    "a column too few": (lambda lines: of(lines, "episode").pop("text"), "line 3: episode: text: it is missing"),
    "a text that is none": (change("episode", "text", 7, 1), "line 4: episode: text: a text"),
    "a text with NUL": (change("episode", "text", "a\0b"), "line 3: episode: text: a text"),
    "a text that is too long": (change("episode", "user", "x" * 201, 1), "line 4: episode: value too long"),
    "null where there must be something": (change("episode", "text", None), "line 3: episode: text: null"),
    "a number that is none": (change("episode", "importance", "high"), "line 3: episode: importance: a number"),
    "a number beyond its bounds": (change("episode", "importance", 1.5, 1), "line 4: episode: .*importance"),
    "a fraction": (change("belief", "importance", 1.5), "belief: importance: a whole number"),
    "a moment without an end": (change("episode", "created_at", "2026-03-01"), "line 3: episode: created_at: a time"),
    "a day that is none": (
        change("episode", "created_at", "2026-02-30T12:00:00.000000Z"), "line 3: episode: created_at: there is no such"
    ),
    "neither true nor false": (change("belief", "is_pinned", 1), "belief: is_pinned: true or false"),
    "no list": (change("episode", "tags", "red"), "line 3: episode: tags: a list of texts"),
    "a status that is none": (change("episode", "status", "lost", 1), "line 4: episode: .*status"),
    "a short vector": (change("episode_vector", "vector", "AAAA"), "line 5: episode_vector: vector: 768 finite"),
    "no base64": (change("episode_vector", "vector", "ä"), "line 5: episode_vector: vector: base64"),
    "a project that is not there": (change("episode", "project", "forge"), "line 3: episode: project: a project of"),
    "an episode that is not there": (
        change("evidence", "episode", "ep_000000000009"), "evidence: episode: the file has no ep_000000000009"
    ),
    "the same words twice": (
        lambda lines: of(lines, "episode", 1).update({**of(lines, "episode"), "id": "ep_000000000002"}),
        "line 4: episode: duplicate key",
    ),
    "a call that is not there": (change("evidence", "call", 1), "evidence: call: a number from 1 to 0"),
    "two rows in a line": (lambda lines: lines[2].update(project={}), "line 3: is not one row"),
    "no object": (lambda lines: lines.insert(1, 7), "line 2: is not one row"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_changes_nothing(file: bytes, workspace: Workspace, name: str) -> None:
    """R14: the message has the line and the reason."""
    act, message = BROKEN[name]
    with pytest.raises(BrokenFile, match=message):
        imported(edited(file, act), workspace=workspace)
    assert not Episode.objects.exists()
    assert not Project.objects.exists()
    workspace.refresh_from_db()
    assert (workspace.embedding_model, workspace.erasure_key) == ("", None)


def test_of_two_bad_lines_the_first_is_named(
    file: bytes, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: though the database is still at the first, and refuses it, when the second turns out to be bad."""
    monkeypatch.setattr("memory.export.importer._BATCH", 1)

    def spoil(lines: Lines) -> None:
        of(lines, "episode", 0)["importance"] = 1.5
        of(lines, "episode", 1)["text"] = 7

    with pytest.raises(BrokenFile, match=r"line 3: episode: .*importance"):
        imported(edited(file, spoil), workspace=workspace)
    assert not Episode.objects.exists()


@pytest.mark.parametrize(
    ("file_", "message"),
    [
        (b"", "line 1: is no header"),
        (b"\n", "line 1: is not JSON"),
        (b"{", "line 1: is not JSON; column 2"),
        (b'{"engram":"\xff"}', "line 1: is not JSON; byte 12 is no UTF-8"),
        (b"[" * 100_000, "line 1: is not JSON; it is nested too deeply"),
        (b'"' + b"x" * (8 * 2**20) + b'"', "line 1: is too long"),
    ],
    ids=["nothing", "an empty line", "half a line", "no UTF-8", "a deep nest", "a long line"],
)
def test_what_is_no_file_of_ours_is_refused(workspace: Workspace, file_: bytes, message: str) -> None:
    with pytest.raises(BrokenFile, match=message):
        imported(file_, workspace=workspace)


def test_a_file_that_breaks_off_in_a_line_is_refused(file: bytes, workspace: Workspace) -> None:
    with pytest.raises(BrokenFile, match="is not JSON"):
        imported(file[:-20], workspace=workspace)
    assert not Episode.objects.exists()


def test_a_memory_is_read_into_an_empty_workspace_only(file: bytes, workspace: Workspace) -> None:
    """R14: whatever it has; an episode is enough."""
    remembered("Tabs.", workspace=workspace)
    with pytest.raises(WorkspaceNotEmpty, match=workspace.name):
        imported(file, workspace=workspace)
    assert Episode.objects.count() == 1


def test_a_memory_is_in_a_database_once(file: bytes, workspace: Workspace) -> None:
    """R14: ids stay as they are, and the message names one."""
    imported(file, workspace=workspace)
    other = factories.workspace()
    with pytest.raises(IdTaken, match="ep_000000000001 exists in this database already"):
        imported(file, workspace=other)
    assert not Episode.objects.for_workspace(other).exists()


def test_rows_of_other_workspaces_cannot_be_drawn_in(file: bytes, workspace: Workspace) -> None:
    """R14, B21: though the database has them."""
    theirs = factories.workspace()
    factories.episode(workspace=theirs, id="ep_000000000009")
    Cycle.objects.create(
        workspace=theirs, id="cy_000000000009", trigger="person", now=factories.NOW, state="finished",
        finished_at=factories.NOW,
    )  # fmt: skip
    for kind, name, key in (("evidence", "episode", "ep_000000000009"), ("belief", "born_in", "cy_000000000009")):
        with pytest.raises(BrokenFile, match=f"the file has no {key}"):
            imported(edited(file, change(kind, name, key)), workspace=workspace)
    assert not Episode.objects.for_workspace(workspace).exists()


def test_projects_that_are_there_are_the_files(file: bytes, workspace: Workspace) -> None:
    """R14: keys may be limited to a project before its memory comes."""
    there = factories.project(workspace=workspace, slug="mill", path="/tmp")
    imported(file, workspace=workspace)
    [project] = Project.objects.all()
    assert (project.pk, project.path) == (there.pk, "")
    assert Episode.objects.get(pk="ep_000000000001").project == project


def test_the_lines_are_readable(file: bytes) -> None:
    """R14: the names of columns as people know them, times with their zone, vectors in base64."""
    lines = [json.loads(line) for line in file.splitlines()]
    assert lines[0]["engram"]["rows"]["episode"] == 2
    assert (of(lines, "episode")["project"], of(lines, "episode")["number"]) == ("mill", 1)
    assert of(lines, "episode")["created_at"] == "2026-03-01T12:00:00.000000Z"
    assert len(of(lines, "episode_vector")["vector"]) == 2048
