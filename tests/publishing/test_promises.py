"""What is promised of MEMORY.md, one test for each promise, on real files."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from memory.models import MemoryFile, PublicationStep, Workspace
from memory.publishing.memory_files import enable_file
from memory.publishing.publish import publish_episode, publish_workspace
from memory.publishing.section import BELIEFS_BEGIN, BELIEFS_END, MEMORIES_BEGIN
from tests import factories
from tests.publishing.passes import MINE, NOW, cycle, trusted
from tests.publishing.test_publish import doubt

STATEMENT = "Mia prefers the train."


def content_of(file: MemoryFile) -> str:
    return Path(file.path).read_text()


def test_beliefs_above_the_threshold_appear(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, STATEMENT)
    assert cycle(workspace)["promoted"] == 1
    assert f"## Beliefs\n\n- {STATEMENT} (confidence: 0.83, evidence: 4)\n" in content_of(file)


def test_below_the_threshold_it_moves_to_the_former_beliefs(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, STATEMENT)
    cycle(workspace)
    doubt(belief, 0.6)
    assert cycle(workspace, days=1)["demoted"] == 1
    day = f"{NOW + timedelta(days=1):%Y-%m-%d}"
    former = f"- [NO LONGER TRUE] {STATEMENT} (was: 0.83, now: 0.60, demoted: {day})"
    assert f"## Former Beliefs\n\n{former}\n" in content_of(file)


def test_further_below_it_is_removed_and_logged(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, STATEMENT)
    cycle(workspace)
    doubt(belief, 0.4)
    cycle(workspace, days=1)
    assert cycle(workspace, days=2)["removed"] == 1
    assert STATEMENT not in content_of(file)
    assert list(PublicationStep.objects.order_by("pk").values_list("step", flat=True)) == [
        "promote",
        "demote",
        "remove",
    ]


def test_what_a_person_wrote_outside_the_markers_is_preserved(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, STATEMENT)
    cycle(workspace)
    with Path(file.path).open("ab") as notes:
        notes.write("\r\n- eigene Notiz\t\xa0 ohne Ende".encode())
    trusted(workspace, "Mia lives in Leeds.")
    cycle(workspace, days=1)
    theirs = Path(file.path).read_bytes().partition(f"{BELIEFS_END}\n".encode())[2]
    assert theirs == MINE + "\r\n- eigene Notiz\t\xa0 ohne Ende".encode()


def test_a_projects_beliefs_go_to_the_projects_own_file(workspace: Workspace, file: MemoryFile, root: Path) -> None:
    (root / "shop").mkdir()
    project = factories.project(workspace=workspace)
    target = root / "shop" / ".claude" / "memory" / "MEMORY.md"
    enable_file(workspace=workspace, path=target, project=project, user="", now=NOW)
    trusted(workspace, "Tests run twice.", project=project, scope="project")
    cycle(workspace)
    assert "- Tests run twice." in target.read_text()
    assert "Tests run twice." not in content_of(file)


def test_global_beliefs_go_to_the_global_file(workspace: Workspace, file: MemoryFile, root: Path) -> None:
    project = factories.project(workspace=workspace)
    enable_file(workspace=workspace, path=root / "project.md", project=project, user="", now=NOW)
    trusted(workspace, STATEMENT)
    cycle(workspace)
    assert f"- {STATEMENT}" in content_of(file)
    assert not (root / "project.md").exists()


def test_the_beliefs_take_thirty_lines_at_most(workspace: Workspace, file: MemoryFile) -> None:
    doubted = [trusted(workspace, f"Doubted {number}.") for number in range(8)]
    cycle(workspace)
    for belief in doubted:
        doubt(belief, 0.6)
    for number in range(15):
        trusted(workspace, f"Trusted\n\n- {number}\n")
    cycle(workspace, days=1)
    lines = content_of(file).splitlines()
    section = lines[lines.index(BELIEFS_BEGIN) : lines.index(BELIEFS_END) + 1]
    assert len(section) <= 30
    assert sum(line.startswith("- Trusted") for line in section) == 10
    assert sum(line.startswith("- [NO LONGER TRUE]") for line in section) == 5


@pytest.mark.django_db(transaction=True)
def test_a_memory_that_is_saved_during_a_pass_harms_neither(workspace: Workspace, file: MemoryFile) -> None:
    """Both write the one file at once, again and again."""
    beliefs = [trusted(workspace, f"Belief {number}.") for number in range(5)]
    episodes = [factories.episode(workspace=workspace, text=f"Memory {number}.") for number in range(10)]

    def save_all() -> None:
        for episode in episodes:
            publish_episode(episode=episode, now=NOW)
        connection.close()

    saving = threading.Thread(target=save_all)
    saving.start()
    for number in range(10):
        doubt(beliefs[0], 0.9 if number % 2 else 0.8)
        publish_workspace(workspace_id=workspace.pk, now=NOW)
    saving.join()
    content = content_of(file)
    assert all(content.count(f"- Memory {number}.") == 1 for number in range(10))
    assert all(content.count(f"- Belief {number}.") == 1 for number in range(5))
    assert content.count(MINE.decode()) == content.count(BELIEFS_BEGIN) == content.count(MEMORIES_BEGIN) == 1


def test_graduation_and_its_archive_leave_the_beliefs_at_the_top(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, STATEMENT)
    old = NOW - timedelta(days=20)
    for number in range(240):
        factories.episode(workspace=workspace, text=f"Memory {number}.", source="human", importance=0.9, created_at=old)
    for day in range(24):
        cycle(workspace, days=day)
    archive = Path(file.path).with_name("MEMORY-archive.md").read_text()
    assert content_of(file).startswith(f"{BELIEFS_BEGIN}\n## Beliefs\n\n- {STATEMENT}")
    assert (STATEMENT in archive, BELIEFS_BEGIN in archive, archive.count("- Memory") > 0) == (False, False, True)


def test_a_projects_belief_without_a_file_stands_in_none(workspace: Workspace, file: MemoryFile) -> None:
    trusted(workspace, "Tests run twice.", project=factories.project(workspace=workspace, path=""), scope="project")
    assert cycle(workspace)["promoted"] == 0
    assert Path(file.path).read_bytes() == MINE


def test_a_project_folder_that_is_not_there_is_left_out(workspace: Workspace, file: MemoryFile, root: Path) -> None:
    project = factories.project(workspace=workspace)
    target = root / "gone" / ".claude" / "memory" / "MEMORY.md"
    gone = enable_file(workspace=workspace, path=target, project=project, user="", now=NOW)
    trusted(workspace, "Tests run twice.", project=project, scope="project")
    trusted(workspace, STATEMENT)
    assert cycle(workspace)["promoted"] == 1
    assert STATEMENT in content_of(file)
    gone.refresh_from_db()
    assert "is not there" in gone.problem
    assert not (root / "gone").exists()


def test_what_recovers_is_promoted_again(workspace: Workspace, file: MemoryFile) -> None:
    belief = trusted(workspace, STATEMENT)
    cycle(workspace)
    doubt(belief, 0.6)
    cycle(workspace, days=1)
    doubt(belief, 0.9)
    assert cycle(workspace, days=2)["promoted"] == 1
    assert "NO LONGER TRUE" not in content_of(file)
    assert f"- {STATEMENT} (confidence: 0.90" in content_of(file)
