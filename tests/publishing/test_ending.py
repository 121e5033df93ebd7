"""P11: whatever ends the publishing of beliefs takes our section out of the file, and leaves nothing half done."""

import errno
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from memory.erasure.erase import erase_user, erase_workspace, remove_workspace
from memory.models import Belief, MemoryFile, Project, Workspace
from memory.publishing.folders import FolderMissing, UnsafePath
from memory.publishing.memory_files import PathTaken, disable_file, enable_file, move_file
from memory.publishing.publish import publish_due, publish_workspace
from memory.publishing.writing import SectionStays
from tests import factories
from tests.publishing.passes import MINE, NOW, cycle, trusted
from tests.publishing.test_publish import LENA

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(settings: Settings, tmp_path: Path) -> Path:
    """Allow one folder."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    return tmp_path


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def belief(workspace: Workspace) -> Belief:
    return trusted(workspace, "Mia prefers the train.")


@pytest.fixture
def file(workspace: Workspace, root: Path, belief: Belief) -> MemoryFile:
    """Publish a belief into a file that a person has written in."""
    return publish(workspace, root / "MEMORY.md")


def publish(workspace: Workspace, path: Path, *, project: Project | None = None, user: str = "") -> MemoryFile:
    """Publish into a person's file."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(MINE)
    file = enable_file(workspace=workspace, path=path, project=project, user=user, now=NOW)
    publish_workspace(workspace_id=workspace.pk, now=NOW)
    assert path.read_bytes() != MINE
    return file


def spoil(path: Path) -> None:
    """Put a link in a file's place: nothing of ours writes through it."""
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def dates_of(belief: Belief) -> list[object]:
    """Read how a belief says that it stands in a file."""
    belief.refresh_from_db()
    return [belief.promoted_at, belief.demoted_at, belief.published_confidence]


def test_erasing_a_workspace_takes_its_sections_out(workspace: Workspace, root: Path, file: MemoryFile) -> None:
    trusted(workspace, "Of Otis.", user="otis")
    other = publish(workspace, root / "otis.md", user="otis")
    erase_workspace(workspace=workspace, actor=LENA)
    assert [Path(one.path).read_bytes() for one in (file, other)] == [MINE, MINE]
    assert not MemoryFile.objects.exists()


def test_deleting_a_workspace_takes_its_sections_out(workspace: Workspace, file: MemoryFile) -> None:
    elsewhere = factories.workspace()
    trusted(elsewhere, "Of another workspace.")
    other = publish(elsewhere, Path(file.path).with_name("other.md"))
    assert remove_workspace(name=workspace.name)
    assert Path(file.path).read_bytes() == MINE
    assert "Of another workspace." in Path(other.path).read_text()
    assert MemoryFile.objects.get() == other


@pytest.mark.parametrize(
    "end",
    [
        lambda workspace: erase_workspace(workspace=workspace, actor=LENA),
        lambda workspace: remove_workspace(name=workspace.name),
    ],
)
def test_nothing_is_erased_while_a_file_would_keep_it(
    end: Callable[[Workspace], object], workspace: Workspace, file: MemoryFile, belief: Belief
) -> None:
    spoil(Path(file.path))
    before = Path(file.path).read_bytes()
    with pytest.raises(SectionStays, match=r"MEMORY\.md: .*link"):
        end(workspace)
    assert Path(file.path).read_bytes() == before
    assert dates_of(belief) == [NOW, None, belief.confidence]
    assert MemoryFile.objects.filter(pk=file.pk).exists()


def test_a_section_that_came_out_before_another_could_not_is_back_with_the_next_cycle(
    workspace: Workspace, root: Path, file: MemoryFile
) -> None:
    other = publish(workspace, root / "otis.md", user="otis")
    spoil(Path(other.path))
    with pytest.raises(SectionStays):
        erase_workspace(workspace=workspace, actor=LENA)
    cycle(workspace, days=1)
    assert "Mia prefers the train." in Path(file.path).read_text()


def test_erasing_a_user_empties_their_part_of_their_file(workspace: Workspace, root: Path, file: MemoryFile) -> None:
    """The file stays theirs: what is said of nobody in particular still stands there."""
    gone = trusted(workspace, "Of Otis.", user="otis")
    path = Path(publish(workspace, root / "otis.md", user="otis").path)
    assert "Of Otis." in path.read_text()
    erase_user(workspace=workspace, user="otis", actor=LENA, now=NOW)
    assert publish_due(now=NOW) == [workspace.pk]
    assert not Belief.objects.filter(pk=gone.pk).exists()
    assert path.read_text().startswith(Path(file.path).read_text().removesuffix(MINE.decode()))
    assert "Of Otis." not in path.read_text()


def test_the_file_moves_with_all_that_stands_in_it(
    workspace: Workspace, root: Path, file: MemoryFile, belief: Belief
) -> None:
    old, new = Path(file.path), root / "elsewhere" / "NOTES.md"
    section = old.read_bytes().removesuffix(MINE)
    (root / "elsewhere").mkdir()
    new.write_bytes(b"# Other notes\n")
    move_file(file=file, path=new, now=NOW + timedelta(days=1))
    file.refresh_from_db()
    assert (file.path, file.published_at, file.problem) == (str(new), NOW + timedelta(days=1), "")
    assert (old.read_bytes(), new.read_bytes()) == (MINE, section + b"# Other notes\n")
    assert dates_of(belief) == [NOW, None, belief.confidence]


def test_a_file_moves_though_its_old_folder_is_gone(workspace: Workspace, root: Path, belief: Belief) -> None:
    file = publish(workspace, root / "gone" / "MEMORY.md")
    shutil.rmtree(root / "gone")
    move_file(file=file, path=root / "MEMORY.md", now=NOW)
    assert "Mia prefers the train." in (root / "MEMORY.md").read_text()
    assert not (root / "gone").exists()


def test_a_file_that_moves_to_where_it_is_stays_as_it_is(file: MemoryFile) -> None:
    before = Path(file.path).read_bytes()
    move_file(file=file, path=Path(file.path), now=NOW)
    assert Path(file.path).read_bytes() == before


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("no/such/folder/MEMORY.md", FolderMissing), ("link.md", UnsafePath), ("../MEMORY.md", UnsafePath),
        ("taken.md", PathTaken),
    ],
)  # fmt: skip
def test_what_cannot_move_stays(
    path: str, error: type[Exception], workspace: Workspace, root: Path, file: MemoryFile, belief: Belief
) -> None:
    (root / "link.md").symlink_to(root / "real.md")
    publish(workspace, root / "taken.md", user="otis")
    before = {each.name: each.read_bytes() for each in root.glob("*.md") if each.is_file()}
    with pytest.raises(error):
        move_file(file=file, path=root / path, now=NOW + timedelta(days=1))
    assert {each.name: each.read_bytes() for each in root.glob("*.md") if each.is_file()} == before
    was = file.path
    file.refresh_from_db()
    assert (file.path, file.published_at) == (was, NOW)
    assert dates_of(belief) == [NOW, None, belief.confidence]


def test_where_the_old_file_keeps_its_section_the_new_one_has_none(root: Path, file: MemoryFile) -> None:
    spoil(Path(file.path))
    (root / "NEW.md").write_bytes(MINE)
    with pytest.raises(SectionStays):
        move_file(file=file, path=root / "NEW.md", now=NOW)
    assert (root / "NEW.md").read_bytes() == MINE
    assert "Mia prefers the train." in Path(file.path).read_text()
    assert MemoryFile.objects.get(pk=file.pk).path == file.path


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_what_is_gone_has_nothing_to_take_out(gone: str, workspace: Workspace, root: Path, belief: Belief) -> None:
    file = publish(workspace, root / "place" / "MEMORY.md")
    if gone == "file":
        Path(file.path).unlink()
    else:
        shutil.rmtree(root / "place")
    call_command("write_memory_md", workspace=workspace.name, remove=True)
    assert not MemoryFile.objects.exists()
    assert not Path(file.path).exists()
    assert dates_of(belief) == [None] * 3


def test_a_file_that_ended_meanwhile_is_nothing_to_end(file: MemoryFile) -> None:
    disable_file(file=MemoryFile.objects.get(pk=file.pk))
    disable_file(file=file)
    assert Path(file.path).read_bytes() == MINE


def test_the_command_moves_a_file(
    workspace: Workspace, root: Path, file: MemoryFile, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second time there is nothing to move."""
    new = root / "NEW.md"
    for times in (1, 0):
        call_command("write_memory_md", workspace=workspace.name, enable=True, path=new)
        assert capsys.readouterr().out.count(f"{file.path}: our sections are taken out") == times
        assert "Mia prefers the train." in new.read_text()
        assert Path(file.path).read_bytes() == MINE
    assert MemoryFile.objects.get().path == str(new)


def test_the_command_tells_why_the_disk_refuses_a_move(
    workspace: Workspace, root: Path, file: MemoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(opened: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = Path(file.path).read_bytes()
    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(CommandError, match="No space left"):
        call_command("write_memory_md", workspace=workspace.name, enable=True, path=root / "NEW.md")
    assert not (root / "NEW.md").exists()
    assert Path(file.path).read_bytes() == before
    assert MemoryFile.objects.get().path == file.path


def test_the_command_takes_out_what_it_can_and_names_what_it_cannot(
    workspace: Workspace, root: Path, file: MemoryFile, capsys: pytest.CaptureFixture[str]
) -> None:
    other = publish(workspace, root / "A.md", user="otis")
    spoil(Path(other.path))
    with pytest.raises(SystemExit):
        call_command("write_memory_md", workspace=workspace.name, remove=True)
    told = capsys.readouterr().out
    assert f"cannot be taken out of {other.path}: A.md is a link" in told
    assert f"{file.path}: our sections are taken out" in told
    assert Path(file.path).read_bytes() == MINE
    assert MemoryFile.objects.get() == other


def test_the_command_removes_the_file_that_is_named_alone(workspace: Workspace, root: Path, file: MemoryFile) -> None:
    other = enable_file(workspace=workspace, path=root / "mia.md", project=None, user="mia", now=NOW)
    call_command("write_memory_md", workspace=workspace.name, remove=True, path=Path(other.path))
    assert list(MemoryFile.objects.all()) == [file]
    with pytest.raises(CommandError, match="No such file"):
        call_command("write_memory_md", workspace=workspace.name, remove=True, path=root / "typo.md")
    assert list(MemoryFile.objects.all()) == [file]


def test_a_folder_that_is_a_link_is_refused_before_anything_is_noted(workspace: Workspace, root: Path) -> None:
    (root / "real").mkdir()
    (root / "linked").symlink_to(root / "real")
    with pytest.raises(UnsafePath):
        enable_file(workspace=workspace, path=root / "linked" / "MEMORY.md", project=None, user="mia", now=NOW)
    assert not MemoryFile.objects.filter(user="mia").exists()
