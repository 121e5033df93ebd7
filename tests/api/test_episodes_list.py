"""GET /episodes."""

from typing import Any

import pytest

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
    factories.episode(workspace=workspace, text="in a project", project=project)
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
        ({"category": "decision"}, {"decided"}),
        ({"q": "PLAI"}, {"plain"}),
    ],
)
def test_filters_keep_what_they_name(reader: Caller, query: dict[str, Any], found: set[str]) -> None:
    assert set(texts(reader.get("/episodes", **query))) == found


@pytest.mark.parametrize(("query", "field"), [({"state": "done"}, "state"), ({"min_confidence": 1}, "min_confidence")])
def test_bad_parameters_are_named(reader: Caller, query: dict[str, Any], field: str) -> None:
    response = reader.get("/episodes", **query)
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == [field]


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
