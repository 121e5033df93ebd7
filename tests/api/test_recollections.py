"""POST /recollections."""

import pytest

from memory.models import EpisodeAccess, ShownMemory, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def test_a_text_and_its_ids_come_back(workspace: Workspace, reader: Caller) -> None:
    """B16."""
    episode = remembered("Mara: tea again!", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    body = reader.post("/recollections", {"query": "Mara tea", "session": "s-1"}).json()
    assert body == {
        "text": "[Memory flash: Mara: tea again!]\n[Belief (0.86): Mara prefers tea.]",
        "ids": [episode.pk, belief.pk],
    }
    assert EpisodeAccess.objects.get().access_count == 1
    assert ShownMemory.objects.for_workspace(workspace).filter(session="s-1").count() == 2


def test_an_empty_memory_brings_up_nothing(reader: Caller) -> None:
    assert reader.post("/recollections", {"query": "tea"}).json() == {"text": "", "ids": []}


def test_project_and_user_narrow_what_comes_up(workspace: Workspace) -> None:
    """B21."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    for project, user in ((ours, "ann"), (ours, "bob"), (theirs, "ann")):
        remembered(f"tea of {user} in {project}", workspace=workspace, project=project, user=user)
    limited = caller("read", workspace=workspace, projects=(ours,))
    body = limited.post("/recollections", {"query": "tea", "project": "ours", "user": "ann"}).json()
    assert body["text"] == "[Memory flash: tea of ann in ours]"
    assert is_problem(limited.post("/recollections", {"query": "tea", "project": "theirs"}), 404)


def test_a_blank_query_is_named(reader: Caller) -> None:
    response = reader.post("/recollections", {"query": " "})
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == ["query"]


def test_a_key_that_may_only_write_is_shown_nothing(writer: Caller) -> None:
    assert is_problem(writer.post("/recollections", {"query": "tea"}), 403)
