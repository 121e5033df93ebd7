"""GET /reflection, and what is done about all beliefs: prune, merges, meta-beliefs, subjects."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Belief, BeliefEvent, Link, LinkKind
from tests.api.caller import Caller, caller, is_problem
from tests.consolidation.conftest import decree, hasty, running_server, server, world
from tests.consolidation.world import World
from tests.model_server_acts import refuse

__all__ = ["decree", "hasty", "running_server", "server", "world"]

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs over spaces."
GENERAL = "Ana is particular about how code looks."


@pytest.fixture
def curator(world: World) -> Caller:
    return caller("curate", workspace=world.workspace)


@pytest.fixture
def group(world: World) -> list[Belief]:
    """Return three beliefs that come down to one."""
    world.statements["code"] = GENERAL
    said = ["Ana prefers tabs.", "Ana wants short lines.", "Ana dislikes trailing spaces."]
    return [world.hold(statement, about="code", likeness=0.85) for statement in said]


def said_last(belief: Belief, *, days_ago: int) -> Belief:
    """Let nothing have been said of a belief for so many days."""
    at = timezone.now() - timedelta(days=days_ago)
    Belief.objects.filter(pk=belief.pk).update(created_at=at)
    belief.evidence.update(created_at=at)
    return belief


def test_a_reflection_tells_what_is_alike_and_what_has_faded(world: World, curator: Caller) -> None:
    """R7, R7d: and changes nothing."""
    one = said_last(world.hold(TABS, about="tabs"), days_ago=1)
    same = said_last(world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.9), days_ago=1)
    old = said_last(world.hold("The mill opens at eight.", about="mill"), days_ago=400)
    before = world.rows()
    told = curator.get("/reflection").json()
    assert (told["beliefs"], told["duplicate_count"], told["faded_count"]) == (3, 1, 1)
    [pair], [faded] = told["duplicates"], told["faded"]
    assert (set(pair["ids"]), pair["passes_guard"]) == ({one.pk, same.pk}, True)
    assert (faded["id"], faded["statement"], faded["is_prunable"]) == (old.pk, old.statement, True)
    assert world.rows() == before


def test_a_long_reflection_tells_how_much_it_leaves_out(world: World, curator: Caller) -> None:
    """R7."""
    for n in range(3):
        world.hold(f"{TABS}{'!' * n}", about="tabs", likeness=0.97)
    told = curator.get("/reflection", limit=1).json()
    assert (told["duplicate_count"], len(told["duplicates"])) == (3, 1)


def test_what_has_faded_is_pruned_when_it_is_meant(world: World, curator: Caller) -> None:
    """R7d, R10: the history names the key."""
    old = said_last(world.hold(TABS, about="tabs"), days_ago=400)
    kept = said_last(world.hold("The mill opens at eight.", about="mill"), days_ago=1)
    rehearsed = curator.post("/reflection/prune", {"dry_run": True}).json()
    assert ([one["id"] for one in rehearsed["pruned"]], rehearsed["dry_run"]) == ([old.pk], True)
    assert (rehearsed["pruned"][0]["statement"], world.now_of(old).status) == (TABS, "active")
    pruned = curator.post("/reflection/prune").json()
    assert ([one["id"] for one in pruned["pruned"]], pruned["dry_run"]) == ([old.pk], False)
    assert (world.now_of(old).status, world.now_of(kept).status) == ("pruned", "active")
    assert old.transitions.get().actor.startswith("key engram_")


def test_what_a_person_restored_is_not_pruned_again(world: World, curator: Caller) -> None:
    """R7d, B14: for 90 days, though nothing was said of it since."""
    old = said_last(world.hold(TABS, about="tabs"), days_ago=400)
    curator.post("/reflection/prune")
    assert curator.post(f"/beliefs/{old.pk}/restore", {"reason": "still so"}).status_code == 200
    assert curator.post("/reflection/prune").json()["pruned"] == []
    Belief.objects.filter(pk=old.pk).update(restored_by_person_at=timezone.now() - timedelta(days=91))
    assert [one["id"] for one in curator.post("/reflection/prune").json()["pruned"]] == [old.pk]


def test_duplicates_are_proposed_to_the_next_cycle(world: World, curator: Caller) -> None:
    """R7, B13: nothing is merged by it."""
    world.hold(TABS, about="tabs", supports=5)
    world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.97)
    [pair] = curator.post("/reflection/merges").json()["proposed"]
    [link] = Link.objects.filter(kind=LinkKind.DUPLICATE)
    assert [link.belief_id, link.other_id] == pair["ids"]
    assert set(Belief.objects.values_list("status", flat=True)) == {"active"}


def test_a_belief_is_made_of_a_group(world: World, group: list[Belief], curator: Caller) -> None:
    """R7: once."""
    told = curator.post("/reflection/meta-beliefs").json()
    assert ([one["statement"] for one in told["made"]], told["unanswered"]) == ([GENERAL], "")
    assert told["made"][0]["fact_type"] == "meta"
    assert curator.post("/reflection/meta-beliefs").json() == {"groups": 0, "made": [], "unanswered": ""}
    event = BeliefEvent.objects.filter(pgh_obj_id=told["made"][0]["id"]).earliest("pgh_id")
    assert event.pgh_context["actor"].startswith("key engram_")


def test_a_group_without_an_answer_is_told_of(world: World, group: list[Belief], curator: Caller, hasty: None) -> None:
    """R7: and has its turn the next time."""
    world.trouble.broken["synthesize"] = refuse(500)
    told = curator.post("/reflection/meta-beliefs").json()
    assert told == {"groups": 1, "made": [], "unanswered": "No answer about 1 group: server"}
    world.trouble.broken.clear()
    assert [one["statement"] for one in curator.post("/reflection/meta-beliefs").json()["made"]] == [GENERAL]


def test_what_has_no_vector_is_made_the_next_time(world: World, group: list[Belief], curator: Caller) -> None:
    """R7, B9: the model is not asked again, and what the server said stays in the ledger."""
    world.trouble.broken["embed"] = refuse(500)
    told = curator.post("/reflection/meta-beliefs").json()
    assert told == {"groups": 1, "made": [], "unanswered": "The embedding model does not answer: server"}
    world.trouble.broken.clear()
    assert [one["statement"] for one in curator.post("/reflection/meta-beliefs").json()["made"]] == [GENERAL]
    assert world.calls("synthesize") == 1


def test_all_that_groups_come_down_to_is_embedded_at_once(world: World, group: list[Belief], curator: Caller) -> None:
    """R7, B9: somebody waits."""
    world.statements["mill"] = "The mill is busy all day."
    for statement in ("The mill opens at eight.", "The mill is loud.", "The mill has two shifts."):
        world.hold(statement, about="mill", likeness=0.85, subject="mill")
    before = world.calls("embed")
    assert len(curator.post("/reflection/meta-beliefs").json()["made"]) == 2
    assert world.calls("embed") == before + 1


def test_a_spent_cap_is_told_of(world: World, group: list[Belief], curator: Caller) -> None:
    """R7, B9."""
    world.workspace.daily_token_cap = 1
    world.workspace.save()
    told = curator.post("/reflection/meta-beliefs").json()["unanswered"]
    assert told == "No answer about 1 group: the workspace's tokens of this day are spent"


def test_where_beliefs_are_off_none_is_made(world: World, group: list[Belief], curator: Caller) -> None:
    """B22."""
    world.workspace.beliefs_enabled = False
    world.workspace.save()
    assert is_problem(curator.post("/reflection/meta-beliefs"), 409)


@pytest.mark.parametrize("what", ["merges", "meta-beliefs", "subjects"])
def test_what_cannot_be_rehearsed_is_not_taken_for_a_rehearsal(world: World, curator: Caller, what: str) -> None:
    world.hold(TABS, about="tabs", subject="")
    before = world.rows()
    assert is_problem(curator.post(f"/reflection/{what}", {"dry_run": True}), 422)
    assert world.rows() == before


def test_subjects_are_filled_in_once(world: World, curator: Caller) -> None:
    """R13."""
    belief = world.hold(TABS, about="tabs", subject="")
    told: list[Any] = [curator.post("/reflection/subjects").json() for _ in range(2)]
    assert told == [{"subjects": {belief.pk: "ana"}}, {"subjects": {}}]
