"""GET /episodes."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import EpisodeStatus
from memory.ledger.transactions import change_episode_status
from memory.models import Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


def texts(response: Any) -> list[str]:
    return [episode["text"] for episode in response.json()["results"]]


@pytest.fixture
def episodes(workspace: Workspace) -> None:
    project = factories.project(workspace=workspace, slug="compiler")
    factories.episode(workspace=workspace, text="plain")
    factories.episode(workspace=workspace, text="archived", status="archived")
    factories.episode(workspace=workspace, text="in a project", project=project, agent="scout")
    factories.episode(workspace=workspace, text="of Ann", user="ann", session="monday")
    factories.episode(workspace=workspace, text="decided", category="decision", state="pooled")


@pytest.mark.usefixtures("episodes")
def test_an_episode_shows_what_was_stored(reader: Caller) -> None:
    (shown,) = reader.get("/episodes", user="ann").json()["results"]
    assert {name: shown[name] for name in ("text", "project", "session", "status", "state", "occurred_at")} == {
        "text": "of Ann", "project": None, "session": "monday", "status": "active", "state": "new",
        "occurred_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip


@pytest.mark.usefixtures("episodes")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"plain", "in a project", "of Ann", "decided"}),
        ({"status": "archived"}, {"archived"}),
        ({"state": "pooled"}, {"decided"}),
        ({"project": "compiler"}, {"in a project"}),
        ({"session": "monday"}, {"of Ann"}),
        ({"agent": "scout"}, {"in a project"}),
        ({"category": "decision"}, {"decided"}),
        ({"q": "PLAI"}, {"plain"}),
    ],
)
def test_filters_keep_what_they_name(reader: Caller, query: dict[str, Any], found: set[str]) -> None:
    assert set(texts(reader.get("/episodes", **query))) == found


@pytest.mark.usefixtures("episodes")
def test_pages_end(reader: Caller) -> None:
    page = reader.get("/episodes", limit=3).json()
    last = reader.get(page["next"]).json()
    assert (len(page["results"]), len(last["results"]), last["next"]) == (3, 1, None)


@pytest.mark.usefixtures("episodes")
def test_another_workspace_is_not_shown(stranger: Caller) -> None:
    assert texts(stranger.get("/episodes")) == []


@pytest.mark.usefixtures("episodes")
def test_a_limited_key_sees_no_episode_without_a_project(workspace: Workspace) -> None:
    """B21."""
    limited = caller("read", workspace=workspace, projects=(workspace.projects.get(),))
    assert texts(limited.get("/episodes")) == ["in a project"]


def test_an_unknown_project_does_not_exist(reader: Caller) -> None:
    assert is_problem(reader.get("/episodes", project="nowhere"), 404)


def test_a_key_that_may_only_write_reads_nothing(writer: Caller) -> None:
    assert is_problem(writer.get("/episodes"), 403)


def test_episodes_are_listed_as_they_stood(workspace: Workspace, reader: Caller) -> None:
    """R10: stored by then, with the status of then; what was forgotten since stays out of sight."""
    day = timedelta(days=1)
    kept, lost = (factories.episode(workspace=workspace, text=text) for text in ("kept", "lost"))
    factories.episode(workspace=workspace, text="later", created_at=factories.NOW + 3 * day)
    for episode, status in ((kept, EpisodeStatus.ARCHIVED), (lost, EpisodeStatus.FORGOTTEN)):
        change_episode_status(
            ids=[episode.pk], new=status, reason="asked", actor=Actor(kind=ActorKind.PERSON, name="lena"),
            now=factories.NOW + day,
        )  # fmt: skip
    moments = {days: (factories.NOW + days * day).isoformat() for days in (-1, 0, 2, 4)}
    assert {days: texts(reader.get("/episodes", as_of=at)) for days, at in moments.items()} == {
        -1: [], 0: ["kept"], 2: [], 4: ["later"],
    }  # fmt: skip
    archived = reader.get("/episodes", as_of=moments[2], status="archived").json()["results"]
    assert [(row["text"], row["status"]) for row in archived] == [("kept", "archived")]
    assert reader.get("/episodes", as_of=moments[0]).json()["results"][0]["status"] == "active"
