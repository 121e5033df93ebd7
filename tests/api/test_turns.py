"""POST /turns."""

from typing import Any

import pytest

from memory.models import Conversation, Project, Turn, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def writer(workspace: Workspace) -> Caller:
    return caller("write", workspace=workspace)


def said(content: str, **given: Any) -> dict[str, Any]:
    return {"session": "s", "role": "user", "content": content, **given}


def test_a_turn_is_taken_in_and_buffered(workspace: Workspace, writer: Caller) -> None:
    """L2: it waits in the database, in its role."""
    response = writer.post("/turns", said("Is the tide in?", project="harbour", user="mara", turn_id="m-1"))
    assert response.status_code == 202
    assert response.json() == {"turns": [{"signal": "none", "buffered": 1, "extraction": "none"}]}
    turn = Turn.objects.get()
    assert (turn.workspace, turn.role, turn.content, turn.turn_id, turn.state, turn.number) == (
        workspace, "user", "Is the tide in?", "m-1", "buffered", 1,
    )  # fmt: skip
    assert turn.conversation.project is not None
    assert (turn.conversation.project.slug, turn.conversation.user) == ("harbour", "mara")


def test_a_high_signal_queues_what_waits(writer: Caller) -> None:
    """L2: high → extract now."""
    writer.post("/turns", said("Is the tide in?"))
    response = writer.post("/turns", said("Never moor at the east pier."))
    assert response.json()["turns"] == [{"signal": "high", "buffered": 2, "extraction": "queued"}]


def test_a_batch_is_answered_turn_by_turn(writer: Caller) -> None:
    """Bad input: errors per item, with index and reason; the good ones are kept."""
    lines = [said("One boat."), said(""), said("x" * 40_000), 7, said("Two.", role="pilot"), said("Two boats.", mood=1)]
    response = writer.post("/turns", {"turns": [*lines, said("Three boats.")]})
    assert response.status_code == 202
    answers = response.json()["turns"]
    assert [answer.get("error", {}).get("status") for answer in answers] == [None, 422, 413, 422, 422, 422, None]
    assert [answer["error"]["index"] for answer in answers if "error" in answer] == [1, 2, 3, 4, 5]
    assert answers[4]["error"]["errors"] == {
        "role": ["One of these is expected: 'user', 'assistant', 'system' or 'tool'."]
    }
    assert [turn.content for turn in Turn.objects.order_by("number")] == ["One boat.", "Three boats."]


def test_a_batch_of_nothing_good_is_a_problem(writer: Caller) -> None:
    response = writer.post("/turns", {"turns": [said(""), said(" ")]})
    assert is_problem(response, 422)
    assert [answer["error"]["index"] for answer in response.json()["turns"]] == [0, 1]


def test_a_batch_is_of_bounded_size(writer: Caller) -> None:
    assert is_problem(writer.post("/turns", {"turns": [said("Ahoy.")] * 1_001}), 422)
    assert writer.post("/turns", {"turns": [said("Ahoy.")] * 1_000}).status_code == 202
    assert is_problem(writer.post("/turns", {"turns": "Ahoy."}), 422)
    assert is_problem(writer.post("/turns", {"turns": [], "session": "s"}), 422)
    assert writer.post("/turns", {"turns": []}).json() == {"turns": []}


@pytest.mark.parametrize(
    "bad",
    [
        {"content": "A \0 in it."},
        {"content": "Half of one: \ud83d"},
        {"session": ""},
        {"turn_id": ""},
        {"project": "no such slug!"},
        {"occurred_at": "2026-03-01T09:30:00"},
        {"occurred_at": "2126-03-01T09:30:00Z"},
    ],
    ids=str,
)
def test_what_no_turn_can_be_is_refused(writer: Caller, bad: dict[str, Any]) -> None:
    response = writer.post("/turns", said("Ahoy.") | bad)
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == list(bad)
    assert not Turn.objects.exists()


def test_too_long_a_turn_is_413(writer: Caller) -> None:
    assert is_problem(writer.post("/turns", said("x" * 32_769)), 413)


def test_a_turn_id_counts_once(writer: Caller) -> None:
    """The same turn adds nothing; other content is a 409, as with idempotency keys."""
    writer.post("/turns", said("Two boats.", turn_id="m-1"))
    again = writer.post("/turns", said("Two boats.", turn_id="m-1"))
    assert again.json()["turns"] == [{"signal": "none", "buffered": 1, "extraction": "none", "deduplicated": True}]
    other = writer.post("/turns", said("Three boats.", turn_id="m-1"))
    assert is_problem(other, 409)
    assert [turn.content for turn in Turn.objects.all()] == ["Two boats."]


def test_a_limited_key_writes_into_its_projects_only(workspace: Workspace) -> None:
    """B21: into no other, into none without one, and it makes none."""
    mine, other = factories.project(workspace=workspace), factories.project(workspace=workspace)
    limited = caller("write", workspace=workspace, projects=(mine,))
    assert limited.post("/turns", said("Ahoy.", project=mine.slug)).status_code == 202
    for refused in (said("Ahoy.", project=other.slug), said("Ahoy."), said("Ahoy.", project="new")):
        assert is_problem(limited.post("/turns", refused), 403)
    assert (Turn.objects.count(), Project.objects.count()) == (1, 2)


def test_conversations_of_workspaces_are_apart(writer: Caller) -> None:
    """B21: the same session of another workspace is another conversation."""
    stranger = caller("write", workspace=factories.workspace())
    assert writer.post("/turns", said("Ahoy.", turn_id="m-1")).status_code == 202
    assert stranger.post("/turns", said("Another one.", turn_id="m-1")).status_code == 202
    assert [row.turn_count for row in Conversation.objects.all()] == [1, 1]


def test_nothing_is_read_back(writer: Caller, workspace: Workspace) -> None:
    assert is_problem(caller(workspace=workspace).get("/turns"), 405)
