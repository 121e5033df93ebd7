"""P8, P12: weighty memories stand in the file, what has no room in an archive, and what is forgotten in neither."""

import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.forgetting import forget_episode
from memory.models import Episode, EpisodeAccess, GraduatedEpisode, MemoryFile, Workspace
from memory.publishing.folders import UnsafePath
from memory.publishing.graduation import count_without_room
from memory.publishing.memory_files import disable_file, enable_file
from memory.publishing.publish import NoMemoryFile, publish_due, publish_episode, publish_workspace
from memory.publishing.section import GraduatedMemory, render_memories
from memory.publishing.writing import archive_path
from tests import factories
from tests.publishing.passes import MINE, NOW, cycle

OLD = NOW - timedelta(days=20)
LENA = Actor(kind=ActorKind.PERSON, name="lena")


def memory(workspace: Workspace, text: str, **given: Any) -> Episode:
    """Store what a person said, weighty and old enough to graduate."""
    fields = {"text": text, "source": "human", "importance": 0.9, "created_at": OLD, "occurred_at": OLD}
    return factories.episode(workspace=workspace, **fields | given)


def kept_in(path: Path) -> list[str]:
    """Read the memories of a file, without bullets and dates."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return [line[2:].partition("\N{NO-BREAK SPACE}(")[0] for line in lines if "\N{NO-BREAK SPACE}(" in line]


def archived_by(file: MemoryFile) -> list[str]:
    return kept_in(archive_path(Path(file.path)))


def test_a_weighty_memory_stands_below_what_a_person_wrote(workspace: Workspace, file: MemoryFile) -> None:
    memory(workspace, "The spare key hangs behind the boiler.")
    assert cycle(workspace)["graduated"] == 1
    assert (
        Path(file.path).read_bytes()
        == MINE
        + (
            "<!-- ENGRAM:MEMORIES:BEGIN -->\n"
            f"## {NOW:%Y-%m-%d}\n\n"
            f"- The spare key hangs behind the boiler.\N{NO-BREAK SPACE}({OLD:%Y-%m-%d})\n\n"
            "<!-- ENGRAM:MEMORIES:END -->\n"
        ).encode()
    )
    assert cycle(workspace)["graduated"] == 0
    assert archived_by(file) == []
    assert not archive_path(Path(file.path)).exists()


@pytest.mark.parametrize(
    "given",
    [
        {"importance": 0.79},
        {"source": "ai"},
        {"source": "interaction"},
        {"source": "ingest"},
        {"created_at": NOW - timedelta(days=13)},
        {"is_derived": True},
        {"user": "mia"},
        {"status": "forgotten"},
        {"status": "superseded"},
        {"feedback": -0.5},
        {"verification": "disputed"},
        {"lifecycle_state": "stale"},
        {"valid_until": NOW - timedelta(days=1)},
    ],
    ids=lambda given: "-".join(given),
)
def test_what_does_not_matter_enough_stays_out(workspace: Workspace, file: MemoryFile, given: dict[str, Any]) -> None:
    memory(workspace, "The spare key hangs behind the boiler.", **given)
    assert cycle(workspace)["graduated"] == 0
    assert Path(file.path).read_bytes() == MINE


def test_what_was_recalled_three_times_need_not_be_old(workspace: Workspace, file: MemoryFile) -> None:
    episode = memory(workspace, "The spare key hangs behind the boiler.", created_at=NOW)
    EpisodeAccess.objects.create(episode=episode, workspace=workspace, accessed_at=NOW, access_count=2)
    assert cycle(workspace)["graduated"] == 0
    EpisodeAccess.objects.update(access_count=3)
    assert cycle(workspace)["graduated"] == 1


def test_at_most_ten_graduate_in_a_cycle_the_weightiest_first(workspace: Workspace, file: MemoryFile) -> None:
    for number in range(15):
        memory(workspace, f"Matter {number}.", importance=0.8 + number / 100)
    assert cycle(workspace)["graduated"] == 10
    assert sorted(kept_in(Path(file.path))) == sorted(f"Matter {number}." for number in range(5, 15))
    assert cycle(workspace)["graduated"] == 5


def test_between_cycles_nothing_graduates(workspace: Workspace, file: MemoryFile) -> None:
    memory(workspace, "The spare key hangs behind the boiler.")
    publish_workspace(workspace_id=workspace.pk, now=NOW)
    assert Path(file.path).read_bytes() == MINE


def test_a_file_takes_its_users_memories_and_nobodys_and_a_projects_none(workspace: Workspace, root: Path) -> None:
    """P2: memories of a project graduate into no file by themselves."""
    project = factories.project(workspace=workspace)
    for scope in (None, project):
        for user in ("", "mia", "otis"):
            memory(workspace, f"Of {user or 'nobody'} in {scope or 'no project'}.", user=user, project=scope)
    for name, scope, user in (("all", None, ""), ("mia", None, "mia"), ("project", project, "")):
        enable_file(workspace=workspace, path=root / f"{name}.md", project=scope, user=user, now=NOW)
    cycle(workspace)
    assert kept_in(root / "all.md") == ["Of nobody in no project."]
    assert sorted(kept_in(root / "mia.md")) == ["Of mia in no project.", "Of nobody in no project."]
    assert kept_in(root / "project.md") == []


def test_what_has_no_room_goes_to_the_archive_the_oldest_first(workspace: Workspace, file: MemoryFile) -> None:
    """And the person's own words, and the beliefs above them, are neither moved nor counted."""
    for day in range(25):
        for number in range(10):
            memory(workspace, f"Day {day}, matter {number}.", created_at=OLD + timedelta(seconds=number))
        assert cycle(workspace, days=day)["graduated"] == 10
    content = Path(file.path).read_bytes()
    section = content.removeprefix(MINE).decode().splitlines()
    assert content.startswith(MINE)
    assert 190 < len(section) <= 200
    here, beside = kept_in(Path(file.path)), archived_by(file)
    assert beside + here == [f"Day {day}, matter {number}." for day in range(25) for number in range(10)]
    cycle(workspace, days=25)
    assert (kept_in(Path(file.path)), archived_by(file)) == (here, beside)


@given(days=st.lists(st.integers(1, 12), max_size=40), lines=st.integers(0, 60))
def test_the_section_has_as_many_lines_at_most_and_as_many_memories_as_fit(days: list[int], lines: int) -> None:
    dates = [NOW + timedelta(days=day) for day, count in enumerate(days) for _ in range(count)]

    def height(kept: list[Any]) -> int:
        memories = [GraduatedMemory(text="x", occurred_on=NOW.date(), graduated_on=at.date()) for at in kept]
        return len(render_memories(memories=memories).splitlines())

    over = count_without_room(dates=dates, lines=lines)
    assert height(dates[over:]) <= lines or not dates[over:]
    assert over == 0 or height(dates[over - 1 :]) > lines


@pytest.mark.parametrize(("lines", "place"), [(200, "file"), (0, "archive")])
def test_what_is_forgotten_leaves_both_with_the_next_look(
    workspace: Workspace, file: MemoryFile, settings: Settings, lines: int, place: str
) -> None:
    settings.POLICY = replace(settings.POLICY, publishing=replace(settings.POLICY.publishing, memory_lines=lines))
    episode = memory(workspace, "The spare key is gone.")
    cycle(workspace)
    assert (kept_in(Path(file.path)) if place == "file" else archived_by(file)) == ["The spare key is gone."]
    publish_due(now=NOW)
    forget_episode(episode=episode, actor=LENA, now=NOW)
    assert publish_due(now=NOW) == [workspace.pk]
    assert kept_in(Path(file.path)) + archived_by(file) == []
    assert not GraduatedEpisode.objects.exists()


def test_an_erased_phrase_is_found_nowhere_below_the_root(workspace: Workspace, file: MemoryFile, root: Path) -> None:
    """By `grep -r`: neither in the file, nor in its archive, nor in what writing leaves beside them."""
    phrase = "quicksilver marmalade"
    for number in range(12):
        memory(workspace, f"The {phrase} stands on shelf {number}.")
    archived = GraduatedEpisode.objects.filter(file=file)
    cycle(workspace)
    archived.update(archived_at=NOW)
    cycle(workspace)
    Path(file.path).with_name("MEMORY.md.rescued-0123").write_bytes(Path(file.path).read_bytes())
    assert phrase in Path(file.path).read_text()
    assert phrase in archive_path(Path(file.path)).read_text()

    erase_memories(workspace=workspace, episodes=Episode.objects.for_workspace(workspace), actor=LENA, now=NOW)
    publish_due(now=NOW)

    found = subprocess.run(["grep", "-r", "-l", phrase, str(root)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    assert Path(file.path).read_bytes() == Path(file.path).with_name("MEMORY.md.rescued-0123").read_bytes() == MINE


def test_what_runs_out_leaves_with_the_next_cycle(workspace: Workspace, file: MemoryFile) -> None:
    memory(workspace, "The lift is out of order.", valid_until=NOW + timedelta(days=2))
    cycle(workspace)
    assert kept_in(Path(file.path)) == ["The lift is out of order."]
    cycle(workspace, days=3)
    assert kept_in(Path(file.path)) == []


def test_a_memory_that_is_merged_into_another_stays(workspace: Workspace, file: MemoryFile) -> None:
    memory(workspace, "The spare key hangs behind the boiler.")
    cycle(workspace)
    Episode.objects.update(status="merged")
    publish_due(now=NOW)
    assert kept_in(Path(file.path)) == ["The spare key hangs behind the boiler."]


def test_ending_it_takes_memories_out_of_both_files(workspace: Workspace, file: MemoryFile) -> None:
    for number in range(2):
        memory(workspace, f"Matter {number}.")
        cycle(workspace)
    GraduatedEpisode.objects.filter(episode__text="Matter 0.").update(archived_at=NOW)
    cycle(workspace)
    archive = archive_path(Path(file.path))
    assert kept_in(archive) == ["Matter 0."]
    disable_file(file=file)
    assert Path(file.path).read_bytes() == MINE
    assert archive.read_bytes() == b""


def test_an_archives_name_is_no_file_of_its_own(workspace: Workspace, root: Path) -> None:
    with pytest.raises(UnsafePath, match="archive"):
        enable_file(workspace=workspace, path=root / "MEMORY-archive.md", project=None, user="", now=NOW)


# --- P12: what a person wants in the file now


def test_a_memory_is_put_into_the_file_of_its_scope(workspace: Workspace, file: MemoryFile, root: Path) -> None:
    project = factories.project(workspace=workspace)
    enable_file(workspace=workspace, path=root / "project.md", project=project, user="", now=NOW)
    light = {"importance": 0.1, "created_at": NOW, "source": "interaction"}
    publish_episode(episode=memory(workspace, "Bins go out on Monday.", **light), now=NOW)
    publish_episode(episode=memory(workspace, "Tests run twice.", project=project, **light), now=NOW)
    assert kept_in(Path(file.path)) == ["Bins go out on Monday."]
    assert kept_in(root / "project.md") == ["Tests run twice."]
    cycle(workspace)
    assert kept_in(Path(file.path)) == ["Bins go out on Monday."]


def test_without_a_file_of_its_scope_it_stands_in_none(workspace: Workspace, file: MemoryFile) -> None:
    """Least of all what is one user's in a file that others read."""
    with pytest.raises(NoMemoryFile):
        publish_episode(episode=memory(workspace, "Bins go out on Monday.", user="mia"), now=NOW)
    assert Path(file.path).read_bytes() == MINE
    assert not GraduatedEpisode.objects.exists()


def test_where_the_file_cannot_be_written_nothing_is_kept(workspace: Workspace, file: MemoryFile) -> None:
    Path(file.path).unlink()
    Path(file.path).symlink_to("elsewhere.md")
    with pytest.raises(UnsafePath):
        publish_episode(episode=memory(workspace, "Bins go out on Monday."), now=NOW)
    assert not GraduatedEpisode.objects.exists()


def test_what_is_in_the_archive_comes_back_when_it_is_wanted(workspace: Workspace, file: MemoryFile) -> None:
    episode = memory(workspace, "Bins go out on Monday.")
    cycle(workspace)
    GraduatedEpisode.objects.update(archived_at=NOW)
    publish_episode(episode=episode, now=NOW)
    assert (kept_in(Path(file.path)), archived_by(file)) == (["Bins go out on Monday."], [])
