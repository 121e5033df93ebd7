"""GET /beliefs."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from memory.models import Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


def statements(response: Any) -> list[str]:
    return [belief["statement"] for belief in response.json()["results"]]


def test_a_belief_shows_its_confidence_and_interval(workspace: Workspace, reader: Caller) -> None:
    """B4: 10 supports → 11/12, with the 90 % interval of Beta(11, 1)."""
    project = factories.project(workspace=workspace, slug="compiler")
    belief = factories.belief(
        workspace=workspace, statement="Mara likes tabs.", alpha=11, beta=1, project=project, scope="project",
        evidence_count=10,
    )  # fmt: skip
    (shown,) = reader.get("/beliefs").json()["results"]
    assert shown["confidence"] == pytest.approx(11 / 12)
    assert shown["interval"] == pytest.approx([0.05 ** (1 / 11), 0.95 ** (1 / 11)])
    assert {name: shown[name] for name in ("id", "statement", "project", "status", "evidence_count")} == {
        "id": belief.pk, "statement": "Mara likes tabs.", "project": "compiler", "status": "active",
        "evidence_count": 10,
    }  # fmt: skip


def test_pages_follow_one_another_without_gap_or_repetition(workspace: Workspace, reader: Caller) -> None:
    """Many rows of one time, as a bulk import makes them, are told apart by id."""
    made = {factories.belief(workspace=workspace).pk for _ in range(5)}
    newest = factories.belief(workspace=workspace, created_at=factories.NOW + timedelta(days=1)).pk
    seen, url = [], "/beliefs?limit=2"
    while url:
        page = reader.get(url).json()
        seen += [belief["id"] for belief in page["results"]]
        url = page["next"]
    assert seen == [newest, *sorted(made, reverse=True)]


def test_filters_travel_with_the_next_page(workspace: Workspace, reader: Caller) -> None:
    for _ in range(3):
        factories.belief(workspace=workspace, user="ann")
        factories.belief(workspace=workspace, user="bob")
    page = reader.get("/beliefs", user="ann", limit=2).json()
    following = reader.get(page["next"]).json()
    assert [belief["user"] for belief in page["results"] + following["results"]] == ["ann"] * 3
    assert following["next"] is None


@pytest.fixture
def beliefs(workspace: Workspace) -> None:
    project = factories.project(workspace=workspace, slug="compiler")
    factories.belief(workspace=workspace, statement="plain")
    factories.belief(workspace=workspace, statement="archived", status="archived")
    factories.belief(workspace=workspace, statement="in a project", project=project, scope="project")
    factories.belief(workspace=workspace, statement="of Ann", user="ann")
    factories.belief(workspace=workspace, statement="trusted", alpha=9)
    factories.belief(workspace=workspace, statement="how to", fact_type="procedural", status="challenged")


@pytest.mark.usefixtures("beliefs")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"plain", "in a project", "of Ann", "trusted"}),
        ({"status": "archived"}, {"archived"}),
        ({"project": "compiler"}, {"in a project"}),
        ({"user": "ann"}, {"of Ann"}),
        ({"min_confidence": 0.9}, {"trusted"}),
        ({"q": "PLAI"}, {"plain"}),
        ({"q": "%"}, set()),
        ({"category": "procedural", "status": "challenged"}, {"how to"}),
    ],
)
def test_filters_keep_what_they_name(reader: Caller, query: dict[str, Any], found: set[str]) -> None:
    assert set(statements(reader.get("/beliefs", **query))) == found


def cursor(time: str, kind: str = "bl") -> str:
    """Return the cursor that a list gives after a row of this time."""
    return base64.urlsafe_b64encode(f"{time} {kind}_000000000000".encode()).decode()


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
@pytest.mark.parametrize(("path", "kind"), [("/beliefs", "bl"), ("/episodes", "ep"), ("/consolidations", "cy")])
def test_a_cursor_may_name_the_first_and_the_last_of_all_times(reader: Caller, path: str, kind: str, time: str) -> None:
    assert reader.get(path, cursor=cursor(time, kind)).status_code == 200


@pytest.mark.parametrize(("path", "kind"), [("/beliefs", "ep"), ("/episodes", "bl"), ("/consolidations", "bl")])
def test_a_cursor_of_another_list_is_refused(reader: Caller, path: str, kind: str) -> None:
    """It would skip rows without a word."""
    response = reader.get(path, cursor=cursor("2026-03-01T00:00:00+00:00", kind))

    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == ["cursor"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"min_confidence": "nan"}, "min_confidence"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "MjAyNi0wMy0wMSBibF94"}, "cursor"),  # a day, not a time
        ({"cursor": cursor("0001-01-01T00:00:00+14:00")}, "cursor"),  # in the year 0
        ({"cursor": cursor("9999-12-31T23:59:59-14:00")}, "cursor"),  # in the year 10000
        ({"q": "a\0b"}, "q"),
    ],
)
def test_bad_parameters_are_named(reader: Caller, query: dict[str, Any], field: str) -> None:
    response = reader.get("/beliefs", **query)
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == [field]


def test_an_unknown_project_does_not_exist(reader: Caller) -> None:
    assert is_problem(reader.get("/beliefs", project="nowhere"), 404)


@pytest.mark.usefixtures("beliefs")
def test_another_workspace_is_not_shown(stranger: Caller) -> None:
    assert stranger.get("/beliefs").json() == {"results": [], "next": None}
    assert is_problem(stranger.get("/beliefs", project="compiler"), 404)


@pytest.mark.usefixtures("beliefs")
def test_a_limited_key_sees_its_projects_beliefs(workspace: Workspace) -> None:
    """B21."""
    compiler = workspace.projects.get()
    other = factories.project(workspace=workspace)
    assert statements(caller("read", workspace=workspace, projects=(compiler,)).get("/beliefs")) == ["in a project"]
    assert statements(caller("read", workspace=workspace, projects=(other,)).get("/beliefs")) == []
    assert is_problem(caller("read", workspace=workspace, projects=(other,)).get("/beliefs", project="compiler"), 404)


def test_a_key_that_may_only_write_reads_nothing(writer: Caller) -> None:
    assert is_problem(writer.get("/beliefs"), 403)


def test_a_key_is_needed(workspace: Workspace) -> None:
    response = Caller(None).get("/beliefs")
    assert is_problem(response, 401)
    assert response.headers["WWW-Authenticate"] == "Bearer"
