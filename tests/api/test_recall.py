"""POST /recall."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import EpisodeAccess, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def texts(response: Any) -> set[str]:
    return {result["text"] for result in response.json()["results"]}


def test_both_kinds_answer_with_what_belongs_to_each(workspace: Workspace, reader: Caller) -> None:
    episode = remembered("Mara drinks tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    body = reader.post("/recall", {"query": "Mara tea"}).json()
    assert body["degraded"] == []
    results = {result["id"]: result for result in body["results"]}
    assert set(results[episode.pk]) == {"type", "id", "text", "knowledge", "score", "relevant", "occurred_at"}
    assert set(results[belief.pk]) == {"type", "id", "text", "knowledge", "score", "relevant", "confidence"}
    assert results[belief.pk]["confidence"] == 0.8571
    assert all(round(result["score"], 4) == result["score"] for result in results.values())
    assert EpisodeAccess.objects.get(pk=episode.pk).access_count == 1


def test_limit_and_types_are_kept(workspace: Workspace, reader: Caller) -> None:
    for number in range(3):
        remembered(f"Tea {number}.", workspace=workspace)
        believed(f"Tea {number} is good.", workspace=workspace)
    results = reader.post("/recall", {"query": "tea", "limit": 2, "types": ["belief"]}).json()["results"]
    assert [result["type"] for result in results] == ["belief", "belief"]


def test_project_and_user_narrow_the_search(workspace: Workspace, reader: Caller) -> None:
    """B21."""
    project = factories.project(workspace=workspace, slug="compiler")
    other = factories.project(workspace=workspace)
    remembered("tea here", workspace=workspace, project=project, user="ann")
    remembered("tea there", workspace=workspace, project=other, user="ann")
    remembered("tea of Bob", workspace=workspace, project=project, user="bob")
    assert texts(reader.post("/recall", {"query": "tea", "project": "compiler", "user": "ann"})) == {"tea here"}
    nothing_named = {"query": "tea", "project": None, "user": None}
    assert texts(reader.post("/recall", nothing_named)) == {"tea here", "tea there", "tea of Bob"}


def test_a_limited_key_recalls_from_its_projects(workspace: Workspace) -> None:
    """B21."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    for project in (ours, theirs, None):
        remembered(f"tea in {project}", workspace=workspace, project=project)
    limited = caller("read", workspace=workspace, projects=(ours,))
    assert texts(limited.post("/recall", {"query": "tea"})) == {"tea in ours"}
    assert is_problem(limited.post("/recall", {"query": "tea", "project": "theirs"}), 404)


def test_what_is_asked_reaches_the_memory(workspace: Workspace, reader: Caller) -> None:
    """D2, R5, B1: mode, profile, agent, times, validity and the past."""
    remembered(
        "tea as it was",
        workspace=workspace,
        valid_until=factories.NOW - timedelta(days=1),
        agent="scout",
        category="skill",
    )
    remembered("tea of the clerk", workspace=workspace, agent="clerk", category="skill")
    remembered("tea as a story", workspace=workspace, agent="scout")
    remembered("tea long ago", workspace=workspace, category="skill", occurred_at=factories.NOW - timedelta(days=9))
    remembered("tea stored later", workspace=workspace, category="skill", created_at=timezone.now())
    body = {
        "query": "tea", "mode": "facts_plus_rules", "profile": "associative", "agent": "scout", "session": "s-1",
        "occurred_after": (factories.NOW - timedelta(days=3)).isoformat(),
        "include_expired": True, "as_of": (factories.NOW + timedelta(days=1)).isoformat(),
    }  # fmt: skip
    assert texts(reader.post("/recall", body)) == {"tea as it was"}


def test_another_workspace_recalls_nothing(workspace: Workspace, stranger: Caller) -> None:
    remembered("Mara drinks tea.", workspace=workspace)
    believed("Mara prefers tea.", workspace=workspace)
    assert texts(stranger.post("/recall", {"query": "tea"})) == set()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "  "}, "query"),
        ({"query": "a\0b"}, "query"),
        ('{"query": "\\ud800"}', "query"),
        ('{"query": "tea", "limit": NaN}', "limit"),
        ({"query": "tea", "types": []}, "types"),
        ({"query": "tea", "session": "a\0b"}, "session"),
        ({"query": "tea", "as_of": "2026-03-01"}, "as_of"),
        ({"query": "tea", "as_of": "2026-03-01T00:00:00"}, "as_of"),
        ({"query": "tea", "as_of": "9999-12-31T23:59:59-23:59"}, "as_of"),
        ({"query": "tea", "occurred_before": "0001-01-01T00:00:00+23:59"}, "occurred_before"),
        (
            {"query": "tea", "occurred_after": "2026-03-01T00:00:00Z", "occurred_before": "2026-03-01T01:00:00+01:00"},
            "occurred_before",
        ),
        ([], "non_field_errors"),
        ("null", "non_field_errors"),
    ],
)
def test_a_bad_body_is_named(reader: Caller, body: object, field: str) -> None:
    response = reader.post("/recall", body)
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == [field]


@pytest.mark.parametrize("body", [[], "null", "5"])
def test_a_body_that_is_no_object_is_told_so_in_words_of_json(reader: Caller, body: object) -> None:
    assert reader.post("/recall", body).json()["errors"] == {"non_field_errors": ["A JSON object is expected."]}


@pytest.mark.parametrize("body", ["{", b"\xff", "[" * 100_000])
def test_a_body_that_is_no_json_is_a_400(reader: Caller, body: str | bytes) -> None:
    assert is_problem(reader.post("/recall", body), 400)


def test_an_unknown_project_does_not_exist(reader: Caller) -> None:
    assert is_problem(reader.post("/recall", {"query": "tea", "project": "nowhere"}), 404)


def test_a_key_that_may_only_write_recalls_nothing(writer: Caller) -> None:
    assert is_problem(writer.post("/recall", {"query": "tea"}), 403)


def test_an_unknown_key_is_refused(workspace: Workspace) -> None:
    assert is_problem(Caller("engram_nonsense").post("/recall", {"query": "tea"}), 401)
