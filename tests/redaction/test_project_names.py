"""L2: a key or token of a known shape names no project, at any door that makes one."""

from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from memory.access import create_project
from memory.models import Episode, Project, Role, Turn
from tests import factories
from tests.access.test_commands import failure
from tests.admin.scene import person
from tests.api.caller import caller
from tests.redaction.planted import RANDOM

pytestmark = pytest.mark.django_db

TOKENS = (f"ghp_{RANDOM[:36]}", f"github_pat_{RANDOM[:30]}", f"engram_{RANDOM[:43]}", f"sk_live_{RANDOM[:24]}")


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("kind", ["episodes", "turns"])
def test_a_line_that_names_one_is_refused(token: str, kind: str) -> None:
    """As an episode and as a turn, and the answer does not repeat it."""
    line = {"text": "Hi."} if kind == "episodes" else {"session": "s", "role": "user", "content": "Hi."}
    refused = caller("write", workspace=factories.workspace()).post(f"/{kind}", line | {"project": token})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["project"])
    assert token not in refused.content.decode()
    assert (Project.objects.count(), Episode.objects.count(), Turn.objects.count()) == (0, 0, 0)


@pytest.mark.parametrize("slug", ["compiler", RANDOM, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "tür-1"])
def test_what_is_merely_random_names_one(slug: str) -> None:
    accepted = caller("write", workspace=factories.workspace()).post("/episodes", {"text": "Hi.", "project": slug})
    assert accepted.status_code == 201
    assert Project.objects.get().slug == slug


@pytest.mark.parametrize("token", TOKENS)
def test_nobody_makes_one_by_hand(token: str, client: Client) -> None:
    """Neither the command, whose words these are, nor a curator in the admin."""
    workspace = factories.workspace()
    with pytest.raises(ValidationError, match="must not name a project"):
        create_project(workspace=workspace, slug=token, now=factories.NOW)
    client.force_login(person("ida", workspace=workspace, role=Role.CURATOR))
    page = client.post(reverse("admin:memory_project_add"), {"workspace": workspace.pk, "slug": token})
    assert "must not name a project" in page.content.decode()
    assert not Project.objects.exists()


@pytest.mark.parametrize("command", ["import_episodes", "import_conversations"])
def test_no_import_names_one(command: str, tmp_path: Path) -> None:
    workspace = factories.workspace()
    file = tmp_path / "history.jsonl"
    file.write_text('{"text": "Hi."}\n')
    assert failure(command, workspace.name, str(file), "--project", TOKENS[0])[0] != 0
    assert not Project.objects.exists()
