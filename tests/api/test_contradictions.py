"""GET and POST /contradictions, and a curator's word on a pair."""

from typing import Any

import pytest

from memory.models import Belief, ContradictionCandidate
from tests.api.caller import Caller, caller, is_problem
from tests.consolidation.conftest import decree, hasty, running_server, server, world
from tests.consolidation.world import World
from tests.model_server_acts import refuse

__all__ = ["decree", "hasty", "running_server", "server", "world"]

pytestmark = pytest.mark.django_db

PORTO = "Ana lives in Porto."
GHENT = "Ana lives in Ghent."
BONN = "Ana lives in Bonn."


@pytest.fixture
def curator(world: World) -> Caller:
    return caller("curate", workspace=world.workspace)


@pytest.fixture
def three(world: World) -> list[Belief]:
    """Return three beliefs of which no two hold: 0.72, 0.63 and 0.56 alike, in this order of pairs."""
    told = ((PORTO, 0.9), (GHENT, 0.8), (BONN, 0.7))
    return [world.hold(statement, about="home", likeness=likeness) for statement, likeness in told]


def look(curator: Caller) -> list[dict[str, Any]]:
    """Look for pairs; return those that nobody was asked about."""
    curator.post("/contradictions")
    pairs: list[dict[str, Any]] = curator.get("/contradictions", state="open").json()["pairs"]
    return pairs


def test_pairs_are_looked_for_and_listed(world: World, three: list[Belief], curator: Caller) -> None:
    """R11: no model is asked unless it is said."""
    assert curator.get("/contradictions").json() == {"total": 0, "unasked": 0, "pairs": []}
    told = curator.post("/contradictions", {"limit": 2}).json()
    assert (told["found"], told["outcomes"], told["stopped"], told["unasked"]) == (2, {}, "", 2)
    pairs = curator.get("/contradictions", state="open").json()["pairs"]
    assert [round(pair["similarity"], 2) for pair in pairs] == [0.72, 0.63]
    assert {side["statement"] for side in pairs[0]["beliefs"]} == {PORTO, GHENT}
    assert {(pair["state"], pair["reason"]) for pair in pairs} == {("open", "")}
    assert curator.get("/contradictions", state="open", limit=1).json()["pairs"] == pairs[:1]
    assert world.calls("contradict") == 0


def test_what_is_only_alike_is_for_a_model_to_look_at_first(world: World, curator: Caller) -> None:
    """R11: it is counted, and listed on request."""
    for statement in ("Ana likes tea.", "Ana likes coffee."):
        world.hold(statement, about="drinks", likeness=0.9)
    told = curator.post("/contradictions").json()
    assert (told["found"], told["total"], told["unasked"], told["pairs"]) == (1, 0, 1, [])
    assert curator.get("/contradictions", state="open").json()["total"] == 1


def test_a_model_is_asked_and_no_belief_changes(world: World, three: list[Belief], curator: Caller) -> None:
    """R11: what contradicts comes first, what does not is off the list."""
    world.contradictions |= {GHENT: BONN, BONN: GHENT}
    before = list(Belief.objects.order_by("pk").values())
    told = curator.post("/contradictions", {"check": True}).json()
    [pair] = told["pairs"]
    assert (told["outcomes"], told["stopped"]) == ({"contradicts": 1, "compatible": 2}, "")
    assert (pair["state"], pair["reason"]) == ("contradicts", "as scripted")
    assert curator.get("/contradictions", state="compatible").json()["total"] == 2
    assert {side["statement"] for side in pair["beliefs"]} == {GHENT, BONN}
    assert list(Belief.objects.order_by("pk").values()) == before


def test_what_was_not_asked_about_stays_open(world: World, three: list[Belief], curator: Caller) -> None:
    """R11, B9: and the answer says why."""
    world.workspace.daily_token_cap = 1
    world.workspace.save()
    told = curator.post("/contradictions", {"check": True}).json()
    assert (told["outcomes"], told["stopped"]) == ({}, "the workspace's tokens of this day are spent")
    assert (told["pairs"], told["unasked"]) == ([], 3)


def test_pairs_that_no_model_could_tell_are_asked_about_again(
    world: World, three: list[Belief], curator: Caller, hasty: None
) -> None:
    """R11: and the answer says what went wrong."""
    world.trouble.broken["contradict"] = refuse(500)
    told = curator.post("/contradictions", {"check": True}).json()
    assert (told["outcomes"], told["stopped"]) == ({"needs_a_person": 3}, "no answer: server")
    world.trouble.broken.clear()
    assert curator.post("/contradictions", {"check": True}).json()["outcomes"] == {}
    assert curator.post("/contradictions", {"check": True, "again": True}).json()["outcomes"] == {"compatible": 3}


def test_a_curator_takes_a_pair_off_the_list_and_puts_it_back(
    world: World, three: list[Belief], curator: Caller
) -> None:
    """R11."""
    pair = look(curator)[0]["id"]
    assert curator.post(f"/contradictions/{pair}/dismiss").json()["state"] == "dismissed"
    assert pair not in [one["id"] for one in curator.get("/contradictions", state="open").json()["pairs"]]
    assert [one["id"] for one in curator.get("/contradictions", state="dismissed").json()["pairs"]] == [pair]
    assert curator.post(f"/contradictions/{pair}/reopen").json()["state"] == "open"
    assert curator.get("/contradictions", state="open").json()["total"] == 3


@pytest.mark.parametrize("address", ["{other}/dismiss", "9223372036854775808/dismiss", "{own}/believe", "x/dismiss"])
def test_what_names_no_pair_is_not_there(world: World, three: list[Belief], curator: Caller, address: str) -> None:
    """B21: nor is another workspace's, or one of which a belief is no more believed."""
    own, gone = look(curator)[:2]
    Belief.objects.filter(pk__in=[side["id"] for side in gone["beliefs"]]).update(status="revised")
    response = curator.post(f"/contradictions/{address.format(own=own['id'], other=gone['id'])}")
    assert is_problem(response, 404)
    assert not ContradictionCandidate.objects.filter(state="dismissed").exists()


def test_a_body_that_says_something_dismisses_nothing(three: list[Belief], curator: Caller) -> None:
    pair = look(curator)[0]["id"]
    assert is_problem(curator.post(f"/contradictions/{pair}/dismiss", {"reason": "so"}), 422)
    assert not ContradictionCandidate.objects.filter(state="dismissed").exists()
