"""GET /beliefs/{id}/history, and as_of on /beliefs and /beliefs/{id}."""

from datetime import timedelta
from typing import Any

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.identity import Actor, ActorKind
from memory.models import Belief, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)


@pytest.fixture
def belief(workspace: Workspace) -> Belief:
    """Return a belief that was trusted a day after its birth and archived a day later."""
    belief = factories.belief(workspace=workspace, statement="The ferry leaves at seven.")
    Belief.objects.filter(pk=belief.pk).update(alpha=9.0, updated_at=factories.NOW + DAY)
    curate_belief(
        belief_id=belief.pk, act=CuratorAction.ARCHIVE, reason="it sank", actor=LENA, now=factories.NOW + 2 * DAY
    )
    return belief


def day(number: int) -> str:
    return (factories.NOW + number * DAY).isoformat()


def test_a_history_says_what_changed_when_by_whom_and_why(belief: Belief, reader: Caller) -> None:
    """R10: latest first."""
    changes = reader.get(f"/beliefs/{belief.pk}/history").json()["results"]
    told = [(each["change"], each["status"], each["alpha"], each["actor"], each["reason"]) for each in changes]
    assert told == [
        ("changed", "archived", 9.0, "person lena", "it sank"),
        ("changed", "active", 9.0, "", ""),
        ("created", "active", 1.0, "", ""),
    ]
    assert [each["at"] for each in changes] == ["2026-03-03T12:00:00Z", "2026-03-02T12:00:00Z", "2026-03-01T12:00:00Z"]
    assert changes[0]["recorded_at"] > changes[0]["at"]
    assert changes[0]["confidence"] == pytest.approx(0.9)


def test_a_history_comes_in_pages(belief: Belief, reader: Caller) -> None:
    """All changes of one transaction have one time and are told apart by their order."""
    seen, url = [], f"/beliefs/{belief.pk}/history?limit=1"
    while url:
        page = reader.get(url).json()
        seen += [each["at"] for each in page["results"]]
        url = page["next"]
    assert seen == ["2026-03-03T12:00:00Z", "2026-03-02T12:00:00Z", "2026-03-01T12:00:00Z"]


@pytest.mark.parametrize("cursor", ["nonsense", "MjAyNi0wMy0wMVQxMjowMDowMCswMDowMCBibF94"])  # the latter names a text
def test_a_cursor_of_another_list_is_refused(belief: Belief, reader: Caller, cursor: str) -> None:
    response = reader.get(f"/beliefs/{belief.pk}/history", cursor=cursor)
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == ["cursor"]


def test_an_unknown_belief_has_no_history(reader: Caller) -> None:
    assert is_problem(reader.get("/beliefs/bl_000000000000/history"), 404)


def test_a_belief_is_shown_as_of_a_day(belief: Belief, reader: Caller) -> None:
    """R10."""
    shown = [reader.get(f"/beliefs/{belief.pk}", as_of=day(number)).json() for number in (0, 1, 2)]
    assert [(each["id"], each["alpha"], each["status"]) for each in shown] == [
        (belief.pk, 1.0, "active"), (belief.pk, 9.0, "active"), (belief.pk, 9.0, "archived"),
    ]  # fmt: skip
    today = reader.get(f"/beliefs/{belief.pk}").json()
    assert set(today) == set(shown[0])
    assert shown[2] == today


def test_before_its_birth_a_belief_is_not_there(belief: Belief, reader: Caller) -> None:
    assert is_problem(reader.get(f"/beliefs/{belief.pk}", as_of=day(-1)), 404)
    assert reader.get("/beliefs", as_of=day(-1)).json() == {"results": [], "next": None}


@pytest.mark.parametrize(
    ("number", "query", "found"),
    [
        (0, {}, 1), (0, {"min_confidence": 0.8}, 0), (1, {"min_confidence": 0.8}, 1), (2, {}, 0),
        (2, {"status": "archived"}, 1), (1, {"q": "FERRY"}, 1), (1, {"user": "ann"}, 0),
    ],
)  # fmt: skip
def test_filters_ask_for_the_state_of_then(
    belief: Belief, reader: Caller, number: int, query: dict[str, Any], found: int
) -> None:
    """R10: statement, status, α, β, confidence and interval, as the list stood."""
    assert len(reader.get("/beliefs", as_of=day(number), **query).json()["results"]) == found


def test_pages_of_then_follow_one_another(workspace: Workspace, reader: Caller) -> None:
    made = {factories.belief(workspace=workspace).pk for _ in range(5)}
    factories.belief(workspace=workspace, created_at=factories.NOW + DAY, updated_at=factories.NOW + DAY)
    seen: list[str] = []
    page = reader.get("/beliefs", as_of=day(0), limit=2).json()
    while True:
        seen += [each["id"] for each in page["results"]]
        if not page["next"]:
            break
        page = reader.get(page["next"]).json()
    assert seen == sorted(made, reverse=True)


@pytest.mark.parametrize("moment", ["2026-03-01T12:00:00", "2026-03-01", ""])
def test_a_moment_needs_its_offset(belief: Belief, reader: Caller, moment: str) -> None:
    for path in ("/beliefs", f"/beliefs/{belief.pk}"):
        response = reader.get(path, as_of=moment)
        assert is_problem(response, 422)
        assert list(response.json()["errors"]) == ["as_of"]


def test_a_limited_key_sees_no_more_of_the_past(workspace: Workspace, belief: Belief) -> None:
    """B21: what a key may not see today it may not see as of another day."""
    project = factories.project(workspace=workspace)
    limited = caller("read", workspace=workspace, projects=(project,))
    assert limited.get("/beliefs", as_of=day(1)).json()["results"] == []
    assert is_problem(limited.get(f"/beliefs/{belief.pk}", as_of=day(1)), 404)
    assert is_problem(limited.get(f"/beliefs/{belief.pk}/history"), 404)
