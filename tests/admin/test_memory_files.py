"""P2, P4, P11: MEMORY.md files in the admin: what stands in them, and who ends that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from pytest_django import Settings

from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, MemoryFile, Project, PublicationStep, PublishedBelief, Role, Workspace
from memory.publishing.publish import publish_workspace
from tests import factories
from tests.admin.scene import Scene, person
from tests.admin.test_isolation import list_of, page_of
from tests.factories import NOW
from tests.publishing.passes import MINE, trusted

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]
SECTION = b"<!-- ENGRAM:BELIEFS:BEGIN -->\n## Beliefs\n<!-- ENGRAM:BELIEFS:END -->\n"


@pytest.fixture
def path(ours: Scene, tmp_path: Path, settings: Settings) -> Path:
    """Let the scene's file be one that is there, with our section above what a person wrote."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    path = tmp_path / "MEMORY.md"
    path.write_bytes(SECTION + MINE)
    MemoryFile.objects.filter(pk=ours.file.pk).update(path=str(path))
    return path


def publish(file: MemoryFile, statement: str, **given: Any) -> Belief:
    """Let one more belief stand in a file."""
    belief = factories.belief(workspace=file.workspace, statement=statement)
    PublishedBelief.objects.create(
        workspace=file.workspace, file=file, belief=belief, confidence=0.8, promoted_at=NOW, **given
    )
    PublicationStep.objects.create(
        workspace=file.workspace, belief=belief, path=file.path, step="demote", confidence=0.4, at=NOW
    )
    return belief


def disable(client: Client, *files: MemoryFile, **given: str) -> str:
    """Run the action on files; return the page that comes of it."""
    posted = {"action": "disable", "_selected_action": [file.pk for file in files]} | given
    return client.post(list_of(MemoryFile), posted, follow=True).content.decode()


def test_the_list_tells_how_each_file_stands(ours: Scene, sign_in: SignIn) -> None:
    for number in range(3):
        publish(ours.file, f"Former {number}.", demoted_at=NOW)
    MemoryFile.objects.filter(pk=ours.file.pk).update(problem="No space left on device", project=ours.project)
    bare = MemoryFile.objects.create(workspace=ours.workspace, path="/notes/bare.md", created_at=NOW)
    page = sign_in(ours.workspace, Role.READER).get(list_of(MemoryFile))
    content = page.content.decode()
    for part in (ours.file.path, "user of ours", "project-of-ours", "No space left on device", "of no user alone"):
        assert part in content
    counts = {row.pk: (row.trusted_count, row.former_count) for row in page.context["cl"].result_list}
    assert counts == {ours.file.pk: (1, 3), bare.pk: (0, 0)}


def test_a_page_tells_what_stands_in_the_file_and_its_newest_steps(ours: Scene, sign_in: SignIn) -> None:
    former = publish(ours.file, "Mia drinks coffee.", demoted_at=NOW)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.file)).content.decode()
    content = page[page.index('id="content"') :]
    order = [content.rindex(part) for part in ("The statement of ours holds.", "Mia drinks coffee.")]
    assert order == sorted(order)
    for part in ("0.91", "2026-03-01 12:00 UTC", "promote", "demote", f">{ours.cycle.pk}</a>", "between cycles"):
        assert part in content
    for belief in (ours.belief, former):
        assert content.count(f'href="{page_of(belief)}"') == 2


def test_a_beliefs_page_names_the_files_it_stands_in(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.READER)
    assert f'href="{page_of(ours.file)}"' in client.get(page_of(ours.belief)).content.decode()
    assert "as a former belief" not in client.get(page_of(ours.belief)).content.decode()
    PublishedBelief.objects.filter(belief=ours.belief).update(demoted_at=NOW)
    assert "as a former belief" in client.get(page_of(ours.belief)).content.decode()
    other = factories.belief(workspace=ours.workspace, statement="In no file.")
    assert page_of(ours.file) not in client.get(page_of(other)).content.decode()


def test_what_stands_in_a_file_is_data_on_the_pages(ours: Scene, sign_in: SignIn) -> None:
    text = "<script>alert('x')</script>"
    belief = publish(ours.file, text)
    Belief.objects.filter(pk=belief.pk).update(promoted_at=NOW)
    row = MemoryFile.objects.filter(pk=ours.file.pk)
    row.update(path=f"/notes/{text}", user=text, problem=text)
    PublicationStep.objects.update(path=f"/notes/{text}")
    client = sign_in(ours.workspace, Role.OWNER)
    pages = [client.get(each).content.decode() for each in (list_of(MemoryFile), page_of(ours.file), page_of(belief))]
    for page in (*pages, disable(client, ours.file)):
        assert text not in page
        assert escape(text) in page


def test_a_reader_meets_no_forgotten_belief_in_a_file(ours: Scene, sign_in: SignIn) -> None:
    """B19: neither as one that stands there nor in a step."""
    Belief.objects.filter(pk=ours.belief.pk).update(status=BeliefStatus.FORGOTTEN)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.file)).content.decode()
    assert "The statement of ours holds." not in page
    assert ours.belief.pk not in page


def test_pages_cost_the_same_for_more_beliefs_and_files(
    ours: Scene, sign_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        publish(ours.file, f"Belief {number}.")
        project = factories.project(workspace=ours.workspace)
        path = f"/notes/{number}.md"
        MemoryFile.objects.create(workspace=ours.workspace, project=project, path=path, created_at=NOW)
    client = sign_in(ours.workspace, Role.READER)
    with django_assert_max_num_queries(10):
        client.get(list_of(MemoryFile))
    with django_assert_max_num_queries(10):
        client.get(page_of(ours.file))


def test_nobody_adds_changes_or_deletes_one(ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    posted = {"workspace": ours.workspace.pk, "path": "/etc/passwd"}
    assert client.post(reverse("admin:memory_memoryfile_add"), posted).status_code == 403
    assert client.post(page_of(ours.file), posted).status_code == 403
    assert client.post(page_of(ours.file, "delete"), {"post": "yes"}).status_code == 403
    assert MemoryFile.objects.get().path == ours.file.path


def test_an_owner_ends_it_after_being_asked(ours: Scene, path: Path, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    page = disable(client, ours.file)
    assert "Beliefs will stand in 1 file no more." in page
    assert str(path) in page
    assert path.read_bytes() == SECTION + MINE
    page = disable(client, ours.file, is_confirmed="yes")
    assert "1 ended." in page
    assert path.read_bytes() == MINE
    assert not MemoryFile.objects.exists()
    ours.belief.refresh_from_db()
    assert ours.belief.promoted_at is None
    assert LogEntry.objects.get().object_repr == str(path)


def test_what_cannot_be_taken_out_is_named_and_stays(ours: Scene, path: Path, sign_in: SignIn) -> None:
    path.unlink()
    path.mkdir()
    page = disable(sign_in(ours.workspace, Role.OWNER), ours.file, is_confirmed="yes")
    assert "0 ended." in page
    assert f"Our section cannot be taken out of {path}" in page
    assert MemoryFile.objects.filter(pk=ours.file.pk).exists()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("whose", ["reader here", "curator here", "owner elsewhere"])
def test_nobody_else_ends_it(whose: str, ours: Scene, theirs: Scene, path: Path, sign_in: SignIn) -> None:
    role, where = whose.split()
    scene = ours if where == "here" else theirs
    disable(sign_in(scene.workspace, Role(role)), ours.file, is_confirmed="yes")
    assert path.read_bytes() == SECTION + MINE
    assert MemoryFile.objects.filter(pk=ours.file.pk).exists()


def test_an_owner_elsewhere_ends_their_own_alone(ours: Scene, theirs: Scene, path: Path, client: Client) -> None:
    user = person("both", workspace=ours.workspace, role=Role.OWNER)
    user.memberships.create(workspace=theirs.workspace, role=Role.CURATOR)
    client.force_login(user)
    asked = disable(client, ours.file, theirs.file)
    assert "Beliefs will stand in 1 file no more." in asked
    page = disable(client, ours.file, theirs.file, is_confirmed="yes")
    assert "1 left alone: only an owner may do this." in page
    assert list(MemoryFile.objects.all()) == [theirs.file]


@pytest.fixture
def project_file(ours: Scene, tmp_path: Path, settings: Settings) -> MemoryFile:
    """Publish a file of a project; nothing else of the project is stored."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    (tmp_path / "MEMORY.md").write_bytes(SECTION + MINE)
    return MemoryFile.objects.create(
        workspace=ours.workspace, project=ours.project, path=str(tmp_path / "MEMORY.md"), created_at=NOW
    )


def test_with_a_project_our_section_leaves_its_file(ours: Scene, project_file: MemoryFile, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    assert "Are you sure" in client.get(page_of(ours.project, "delete")).content.decode()
    assert Path(project_file.path).read_bytes() == SECTION + MINE
    client.post(page_of(ours.project, "delete"), {"post": "yes"})
    assert Path(project_file.path).read_bytes() == MINE
    assert not Project.objects.filter(pk=ours.project.pk).exists()
    assert list(MemoryFile.objects.all()) == [ours.file]


def test_a_project_stays_while_its_file_would_keep_our_section(
    ours: Scene, project_file: MemoryFile, sign_in: SignIn
) -> None:
    Path(project_file.path).unlink()
    Path(project_file.path).mkdir()
    client = sign_in(ours.workspace, Role.OWNER)
    page = client.post(page_of(ours.project, "delete"), {"post": "yes"}, follow=True).content.decode()
    assert f"Our section cannot be taken out of {project_file.path}" in page
    assert Project.objects.filter(pk=ours.project.pk).exists()
    assert MemoryFile.objects.filter(pk=project_file.pk).exists()


def test_a_project_that_cannot_be_deleted_keeps_its_section(
    ours: Scene, project_file: MemoryFile, sign_in: SignIn
) -> None:
    trusted(ours.workspace, "Of the project.", scope="project", project=ours.project)
    publish_workspace(workspace_id=ours.workspace.pk, now=NOW)
    sign_in(ours.workspace, Role.OWNER).post(page_of(ours.project, "delete"), {"post": "yes"})
    assert "Of the project." in Path(project_file.path).read_text()
    assert Project.objects.filter(pk=ours.project.pk).exists()


def test_another_folder_of_a_project_moves_no_file(
    ours: Scene, project_file: MemoryFile, sign_in: SignIn, tmp_path: Path
) -> None:
    """P2: which paths are written is the operator's to say."""
    posted = {"slug": ours.project.slug, "path": str(tmp_path / "elsewhere")}
    answer = sign_in(ours.workspace, Role.CURATOR).post(page_of(ours.project), posted, follow=True)
    ours.project.refresh_from_db()
    assert ours.project.path == posted["path"]
    assert f"{project_file.path} is still written where it is" in answer.content.decode()
    assert MemoryFile.objects.get(pk=project_file.pk).path == project_file.path
