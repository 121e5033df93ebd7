"""POST /context."""

from datetime import timedelta

import pytest

from memory.models import EpisodeAccess, ShownMemory, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def test_beliefs_come_first_and_what_is_near(workspace: Workspace, reader: Caller) -> None:
    """R12: and nothing of what is only there."""
    near = remembered("Mara drinks green tea every morning.", workspace=workspace)
    remembered("The server in the cellar was restarted.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    body = reader.post("/context", {"query": "Which tea does Mara drink?", "session": "s-1"}).json()
    assert body == {
        "text": "[Belief (0.86): Mara prefers tea.]\n[Memory flash: Mara drinks green tea every morning.]",
        "ids": [belief.pk, near.pk],
    }
    assert EpisodeAccess.objects.get().access_count == 1
    assert ShownMemory.objects.for_workspace(workspace).filter(session="s-1").count() == 2


def test_within_a_kind_the_best_score_comes_first(workspace: Workspace, reader: Caller) -> None:
    """R12, B16: whatever the confidence of a belief and the time of an episode; what one says is told once."""
    best, second = (
        believed(text, workspace=workspace, alpha=alpha)
        for text, alpha in (("Mara drinks green tea.", 2.0), ("Mara likes to drink.", 30.0))
    )
    last, said = (
        remembered(text, workspace=workspace, occurred_at=factories.NOW - timedelta(days=age))
        for text, age in (("Mara drinks out of a cup.", 0), ("Mara drinks green tea.", 300))
    )
    body = reader.post("/context", {"query": "Mara drinks green tea"}).json()
    assert body["ids"] == [best.pk, second.pk, last.pk]
    assert said.pk not in body["ids"]


def test_a_budget_is_kept(workspace: Workspace, reader: Caller) -> None:
    """R12: at some four bytes a token, the best first."""
    for number in range(20):
        remembered(f"Mara drinks tea number {number} every morning, and she likes it.", workspace=workspace)
    text = reader.post("/context", {"query": "Mara drinks tea", "max_tokens": 100}).json()["text"]
    assert 200 < len(text) <= 400


def test_nothing_near_is_an_empty_text(workspace: Workspace, reader: Caller) -> None:
    """R12."""
    remembered("The server in the cellar was restarted.", workspace=workspace)
    assert reader.post("/context", {"query": "green tea"}).json() == {"text": "", "ids": []}


def test_a_limited_key_gets_its_projects_alone(workspace: Workspace) -> None:
    """R12, B21."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    for project in (ours, theirs):
        remembered(f"Mara drinks tea in {project}.", workspace=workspace, project=project)
    limited = caller("read", workspace=workspace, projects=(ours,))
    assert limited.post("/context", {"query": "Mara tea"}).json()["text"] == "[Memory flash: Mara drinks tea in ours.]"
    assert is_problem(limited.post("/context", {"query": "tea", "project": "theirs"}), 404)
    assert is_problem(caller("write", workspace=workspace).post("/context", {"query": "tea"}), 403)
