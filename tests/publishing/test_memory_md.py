"""P2: the section over the API, for an agent on another machine."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from memory.models import Belief, Permission, Workspace
from memory.publishing.memory_files import enable_file
from memory.publishing.publish import publish_workspace
from tests import factories
from tests.api.caller import caller, is_problem
from tests.publishing.passes import trusted
from tests.publishing.test_publish import doubt

pytestmark = pytest.mark.django_db
NOW = factories.NOW


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def test_the_section_is_markdown_with_a_tag_that_says_when_it_changed(workspace: Workspace) -> None:
    belief = trusted(workspace, "Mia prefers the train.")
    reader = caller(Permission.READ, workspace=workspace)
    answer = reader.get("/memory.md")
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert "- Mia prefers the train. (confidence: 0.83, evidence: 4)" in answer.content.decode()

    tag = answer.headers["ETag"]
    same = reader.request("GET", "/memory.md", headers={"If-None-Match": tag})
    assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
    doubt(belief, 0.9)
    changed = reader.request("GET", "/memory.md", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag


def test_nothing_trusted_is_an_empty_section_and_nothing_is_noted(workspace: Workspace) -> None:
    trusted(workspace, "Too little evidence.", supports=2)
    assert caller(Permission.READ, workspace=workspace).get("/memory.md").content == b""
    assert not Belief.objects.exclude(promoted_at=None).exists()


def test_users_and_projects_get_their_own(workspace: Workspace) -> None:
    project = factories.project(workspace=workspace, slug="tidewatch")
    trusted(workspace, "Of nobody.")
    trusted(workspace, "Of Mia.", user="mia")
    trusted(workspace, "Of Otis.", user="otis")
    trusted(workspace, "Of tidewatch.", scope="project", project=project)
    reader = caller(Permission.READ, workspace=workspace)
    told = {
        path: {line[2:].split(" (")[0] for line in reader.get(path).content.decode().splitlines() if line[:2] == "- "}
        for path in ("/memory.md", "/memory.md?user=mia", "/projects/tidewatch/memory.md")
    }
    assert told == {
        "/memory.md": {"Of nobody."},
        "/memory.md?user=mia": {"Of nobody.", "Of Mia."},
        "/projects/tidewatch/memory.md": {"Of tidewatch."},
    }


def test_a_limited_key_is_told_what_it_may_see(workspace: Workspace) -> None:
    """B21: a global belief only if all its evidence is of the key's projects; another project is none."""
    mine, other = (factories.project(workspace=workspace, slug=slug) for slug in ("mine", "other"))
    trusted(workspace, "Of everybody.")
    trusted(workspace, "Of mine.", scope="project", project=mine)
    reader = caller(Permission.READ, workspace=workspace, projects=(mine,))
    assert reader.get("/memory.md").content == b""
    assert "Of mine." in reader.get("/projects/mine/memory.md").content.decode()
    assert reader.get(f"/projects/{other.slug}/memory.md").status_code == 404


@pytest.mark.parametrize("slug", ["%00", "a%00b", "x" * 400, "..", "a b", "no-such-project"])
def test_what_names_no_project_is_not_there(workspace: Workspace, slug: str) -> None:
    assert is_problem(caller(Permission.READ, workspace=workspace).get(f"/projects/{slug}/memory.md"), 404)


def test_it_is_what_the_file_has(workspace: Workspace, settings: Settings, tmp_path: Path) -> None:
    """P4: former beliefs among it, once they are noted."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    belief = trusted(workspace, "Mia drinks coffee.")
    trusted(workspace, "Mia prefers the train.")
    enable_file(workspace=workspace, path=tmp_path / "MEMORY.md", project=None, user="", now=NOW)
    publish_workspace(workspace_id=workspace.pk, now=NOW)
    doubt(belief, 0.6)
    publish_workspace(workspace_id=workspace.pk, now=NOW + timedelta(hours=1))
    answer = caller(Permission.READ, workspace=workspace).get("/memory.md").content
    assert answer == (tmp_path / "MEMORY.md").read_bytes()
    assert b"[NO LONGER TRUE] Mia drinks coffee." in answer
