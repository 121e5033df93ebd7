"""What a remembered fact does to the beliefs near it (R2), and how contradictions end (R3), with figures by hand."""

from typing import Any

import pytest

from memory.ledger.confidence import find_drift
from memory.models import Belief, ConfidenceModel, Lineage, ModelCall, RememberedFact, RememberJob, Workspace
from tests import factories
from tests.consolidation.world import World
from tests.facts.telling import TELLER, actions, neighbours, numbers, remembrance_of, tell, words_on
from tests.model_server_acts import garbage

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs over spaces."
SPACES = "Ana prefers spaces over tabs."


def other(world: World, belief: Belief) -> Belief:
    """Return the belief that was made beside one."""
    found: Belief = Belief.objects.filter(workspace=world.workspace).exclude(pk=belief.pk).get()
    return found


def test_what_is_like_nothing_becomes_a_belief(world: World) -> None:
    """R2, R1: with its kind, importance and subject; 2/3 after one support."""
    told = tell(world, TABS)
    belief = world.only_belief()
    assert (told.state, actions(told)) == ("done", [(belief.pk, "created")])
    assert (belief.fact_type, belief.importance, belief.subject, belief.scope) == ("preference", 7, "ana", "global")
    assert (belief.alpha, belief.beta) == (2.0, 1.0)
    assert words_on(belief, told.episode_id) == ("SUPPORTS", "model", "")


def test_what_says_the_same_reinforces(world: World) -> None:
    """R2: above 0.92 with the guard, without a call: 4 supports become 5, 5/6 becomes 6/7."""
    belief = world.hold(TABS, about="tabs", supports=4)
    world.facts["again"] = ["Ana prefers tabs over spaces!"]
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.93})
    told = tell(world, "again")
    assert actions(told) == [(belief.pk, "reinforced")]
    assert numbers(belief) == (6.0, 1.0)
    assert words_on(belief, told.episode_id) == ("SUPPORTS", "guard", "")
    assert world.calls("contradict") == 0
    assert world.states(remembrance_of(told).episode) == ["settled"]


@pytest.mark.parametrize(("likeness", "asked"), [(0.91, 1), (0.71, 1), (0.69, 0)])
def test_what_is_only_near_is_asked_about(world: World, likeness: float, asked: int) -> None:
    """R2: 0.70 to 0.92 is checked for a contradiction, below it nothing is; without one it stands beside."""
    belief = world.hold(TABS, about="tabs")
    world.directions.place("Ana prefers tabs over spaces in Go.", {"tabs": likeness})
    told = tell(world, "Ana prefers tabs over spaces in Go.")
    assert world.calls("contradict") == asked
    assert actions(told) == [(other(world, belief).pk, "created")]
    assert numbers(belief) == (4.0, 1.0)


def test_what_fails_the_guard_is_asked_about_however_like_it_is(world: World) -> None:
    """R2: no cosine sees a swap."""
    belief = world.hold(TABS, about="tabs")
    world.directions.place(SPACES, {"tabs": 0.99})
    tell(world, SPACES)
    assert world.calls("contradict") == 1
    assert world.now_of(belief).status == "active"  # the model found none


def contradicted(world: World, *, supports: int, **given: Any) -> Belief:
    belief = world.hold(TABS, about="tabs", supports=supports, **given)
    world.directions.place(SPACES, {"tabs": 0.9})
    world.contradictions[SPACES] = TABS
    return belief


def test_a_belief_of_three_episodes_lives_on_beside_the_new_one(world: World) -> None:
    """R3, B4: α = 1 + 3, β = 1 + 1, so 4/5 becomes 4/6; the new one is 2/3."""
    belief = contradicted(world, supports=3)
    told = tell(world, SPACES)
    new = other(world, belief)
    assert actions(told) == [(new.pk, "created"), (belief.pk, "weakened")]
    assert numbers(belief) == (4.0, 2.0)
    assert numbers(new) == (2.0, 1.0)
    assert (world.now_of(belief).status, world.now_of(new).status) == ("active", "active")
    assert words_on(belief, told.episode_id) == ("CONTRADICTS", "model", "as scripted")
    assert list(Lineage.objects.values_list("parent", "child", "kind")) == [(belief.pk, new.pk, "supersession")]
    assert find_drift(workspace=world.workspace)[1] == []


def test_a_belief_of_two_episodes_is_challenged(world: World) -> None:
    """R3, C3: what spoke against it counts as well, 3/4 becomes 3/5; the new one stands alone."""
    belief = contradicted(world, supports=2)
    told = tell(world, SPACES)
    new = other(world, belief)
    assert actions(told) == [(new.pk, "created"), (belief.pk, "superseded")]
    assert world.now_of(belief).status == "challenged"
    assert numbers(belief) == (3.0, 2.0)
    transition = belief.transitions.get()
    assert (transition.new, transition.actor) == ("challenged", str(TELLER))
    assert list(Lineage.objects.values_list("parent", "child", "kind")) == [(belief.pk, new.pk, "supersession")]


def test_in_the_additive_model_a_contradiction_takes_a_fifth(world: World) -> None:
    """R3, R10a: 0.6 at birth + 3 × 0.1 = 0.9, − 0.2 = 0.7; the new one is born at 0.6."""
    Workspace.objects.update(confidence_model=ConfidenceModel.ADDITIVE)
    belief = contradicted(world, supports=3)
    assert world.now_of(belief).additive_confidence == 0.9
    tell(world, SPACES)
    assert world.now_of(belief).additive_confidence == 0.7
    assert other(world, belief).additive_confidence == 0.6
    assert world.now_of(belief).status == "active"


def test_in_the_additive_model_too_few_episodes_are_challenged(world: World) -> None:
    """R3, R10a: 0.6 + 2 × 0.1 − 0.2 = 0.6; reinforcing the new one adds 0.1."""
    Workspace.objects.update(confidence_model=ConfidenceModel.ADDITIVE)
    belief = contradicted(world, supports=2)
    tell(world, SPACES)
    assert (world.now_of(belief).status, world.now_of(belief).additive_confidence) == ("challenged", 0.6)
    tell(world, SPACES, session="another")
    assert other(world, belief).additive_confidence == 0.7


def test_echoes_are_no_supporting_episodes(world: World) -> None:
    """R3, B4: a row that weighs nothing does not keep a belief alive."""
    belief = contradicted(world, supports=3)
    belief.evidence.filter(pk__in=belief.evidence.values("pk")[:1]).update(base_weight=0.0)
    tell(world, SPACES)
    assert world.now_of(belief).status == "challenged"


def test_a_pinned_belief_is_weakened_and_never_invalidated(world: World) -> None:
    """R3, D9."""
    belief = contradicted(world, supports=1, is_pinned=True)
    assert actions(tell(world, SPACES))[1] == (belief.pk, "weakened")
    assert world.now_of(belief).status == "active"


def test_what_holds_for_all_is_not_invalidated_by_one_user(world: World) -> None:
    """R3, B21: what belongs to another project or user may hold elsewhere."""
    belief = contradicted(world, supports=1)
    tell(world, SPACES, user="mara")
    assert world.now_of(belief).status == "active"
    assert numbers(belief) == (2.0, 2.0)


def test_another_users_belief_is_not_touched(world: World) -> None:
    """R2, B21."""
    belief = contradicted(world, supports=1, user="ben")
    tell(world, SPACES, user="mara")
    assert numbers(belief) == (2.0, 1.0)
    assert world.calls("contradict") == 0


def test_a_key_of_one_project_leaves_global_beliefs_alone(world: World) -> None:
    """R2, B21."""
    project = factories.project(workspace=world.workspace, slug="mill")
    belief = contradicted(world, supports=1)
    told = tell(world, SPACES, project="mill", limited_to=[project.pk])
    assert numbers(belief) == (2.0, 1.0)
    assert actions(told) == [(other(world, belief).pk, "created")]


@pytest.mark.parametrize(
    "reply",
    [
        {"contradicts": [7], "reason": "no such"},
        {"contradicts": [1, 7], "reason": "not all are there"},
        {"contradicts": 0, "reason": ""},
        garbage(),
        {"index": 1},
    ],
)
def test_any_other_reply_counts_as_none_and_is_logged(
    world: World, reply: object, hasty: None, caplog: pytest.LogCaptureFixture
) -> None:
    """R3."""
    belief = contradicted(world, supports=3)
    usual = world.answer
    world.server.script = lambda asked: reply if asked.purpose == "contradict" else usual(asked)  # type: ignore[assignment,return-value]
    told = tell(world, SPACES)
    assert actions(told) == [(other(world, belief).pk, "created")]
    assert numbers(belief) == (4.0, 1.0)
    assert "remembering." in caplog.text


def test_one_fact_may_contradict_several_beliefs(world: World) -> None:
    """R3: one call names them, the fact's episode speaks against each, and all of them are superseded."""
    held = [
        world.hold(f"Ana prefers {what}.", about="tabs", likeness=0.99 - place / 100, supports=1)
        for place, what in enumerate(("tabs", "tabs of width 4", "long lines"))
    ]
    world.directions.place("Ana never uses tabs.", {"tabs": 0.86})
    world.contradictions["Ana never uses tabs."] = [held[0].statement, held[1].statement]
    told = tell(world, "Ana never uses tabs.")
    assert [world.now_of(belief).status for belief in held] == ["challenged", "challenged", "active"]
    assert [numbers(belief)[1] for belief in held] == [2.0, 2.0, 1.0]
    new = Belief.objects.get(statement="Ana never uses tabs.")
    assert set(Lineage.objects.filter(child=new).values_list("parent", flat=True)) == {held[0].pk, held[1].pk}
    assert world.calls("contradict") == 1
    assert RememberedFact.objects.get(belief=new).rival_id == held[0].pk
    superseded = [(belief.pk, "superseded") for belief in held[:2]]
    assert actions(told) == [(new.pk, "created"), *superseded]


def test_one_call_asks_about_all_candidates(world: World) -> None:
    """R3: the most similar first, at most five."""
    for number in range(6):
        world.hold(f"Ana prefers tabs in language number {number}.", about="tabs", likeness=0.99 - number / 100)
    world.directions.place("Ana never uses tabs.", {"tabs": 0.86})
    seen = []
    usual = world.answer
    world.server.script = lambda asked: seen.append(asked) or usual(asked)  # type: ignore[func-returns-value]
    tell(world, "Ana never uses tabs.")
    [asked] = [one for one in seen if one.purpose == "contradict"]
    assert [item["belief"] for item in asked.items[1:]] == [
        f"Ana prefers tabs in language number {number}." for number in range(5)
    ]


def test_an_archived_belief_is_borne_out_and_comes_back(world: World) -> None:
    """R2, B14: under its id."""
    belief = world.hold(TABS, about="tabs", status="archived", status_reason="stale_and_weak")
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    told = tell(world, "Ana prefers tabs over spaces!")
    assert actions(told) == [(belief.pk, "reinforced")]
    assert world.now_of(belief).status == "active"


@pytest.mark.parametrize("status", ["archived", "forgotten"])
def test_what_a_person_put_away_is_not_believed_again(world: World, status: str) -> None:
    """R2, B22: nor is anything said about it in the answer."""
    world.hold(TABS, about="tabs", status=status, archived_by_person_at=world.now)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    told = tell(world, "Ana prefers tabs over spaces!")
    assert (told.state, actions(told)) == ("done", [])
    assert RememberJob.objects.get().facts.get().outcome == "suppressed"


def test_several_facts_of_one_text_do_not_contradict_each_other(world: World) -> None:
    """R2, R3: what a text says of itself is its own affair."""
    world.facts["both"] = [TABS, SPACES]
    world.directions.place(TABS, {"tabs": 0.99})
    world.directions.place(SPACES, {"tabs": 0.95})
    world.contradictions[SPACES] = TABS
    told = tell(world, "both")
    assert [action for _, action in actions(told)] == ["created", "created"]
    assert world.calls("contradict") == 0


def test_a_new_belief_is_linked_to_its_neighbours(world: World) -> None:
    """R4: up to three, at 0.40 to 0.85, the nearest."""
    held = {
        likeness: world.hold(f"Ana never uses tabs at {likeness}.", about="tabs", likeness=likeness)
        for likeness in (0.95, 0.8, 0.65, 0.5, 0.45, 0.3)
    }
    world.directions.place(TABS, {"tabs": 0.99})
    tell(world, TABS)
    belief = Belief.objects.get(statement=TABS)
    near = {held[0.8].pk: 0.79, held[0.65].pk: 0.64, held[0.5].pk: 0.49}
    assert neighbours(belief) == near


def test_calls_name_the_episode_that_they_saw(world: World) -> None:
    """R1, B19: erasing the episode finds the replies that quote it."""
    contradicted(world, supports=3)
    told = tell(world, SPACES)
    calls = ModelCall.objects.filter(episodes=told.episode_id).values_list("purpose", flat=True)
    assert sorted(calls) == ["contradict", "embed", "remember"]
