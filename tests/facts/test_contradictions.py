"""What a remembered text does to what is believed, as its reading says (F3, R2, R3), with figures by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.ledger.confidence import find_drift
from memory.models import (
    Belief,
    ConfidenceModel,
    Evidence,
    Lineage,
    ModelCall,
    RememberedFact,
    RememberJob,
    Workspace,
)
from tests import factories
from tests.consolidation.world import World
from tests.facts.telling import (
    SPACES,
    TABS,
    TELLER,
    actions,
    judges,
    neighbours,
    numbers,
    remembrance_of,
    states,
    tell,
    words_on,
)

pytestmark = pytest.mark.django_db

PORTO, BERGEN = "Mara lives in Porto.", "Mara lives in Bergen."
MOVED = "I moved to Bergen."


def other(world: World, belief: Belief) -> Belief:
    """Return the belief that was made beside one."""
    found: Belief = Belief.objects.filter(workspace=world.workspace).exclude(pk=belief.pk).get()
    return found


def test_what_no_belief_says_becomes_one(world: World) -> None:
    """R1: with its kind, importance and subject; 2/3 after one support."""
    told = tell(world, TABS)
    belief = world.only_belief()
    assert (told.state, actions(told)) == ("done", [(belief.pk, "created")])
    assert (belief.fact_type, belief.importance, belief.subject, belief.scope) == ("preference", 7, "Ana", "global")
    assert (belief.alpha, belief.beta, belief.is_told) == (2.0, 1.0, True)
    assert words_on(belief, told.episode_id) == ("SUPPORTS", "model", "")
    assert world.states(remembrance_of(told).episode) == ["settled"]


def test_what_the_reader_finds_borne_out_is_reinforced(world: World) -> None:
    """R2: however unlike the words are: 4 supports become 5, 5/6 becomes 6/7."""
    belief = world.hold(TABS, about="tabs", supports=4)
    judges(world, "Tabs again for Ana.", TABS, "SUPPORTS")
    told = tell(world, "Tabs again for Ana.")
    assert actions(told) == [(belief.pk, "reinforced")]
    assert numbers(belief) == (6.0, 1.0)
    assert words_on(belief, told.episode_id) == ("SUPPORTS", "model", "")
    assert (world.calls("read"), world.calls("contradict")) == (1, 0)
    assert world.states(remembrance_of(told).episode) == ["settled"]


def test_two_texts_of_the_same_values_make_one_belief(world: World) -> None:
    """F1, F3: the second reading is shown what the first one founded."""
    tell(world, TABS)
    again = "As I said, Ana takes tabs over spaces."
    judges(world, again, TABS, "SUPPORTS")
    told = tell(world, again)
    belief = world.only_belief()
    assert actions(told) == [(belief.pk, "reinforced")]
    assert numbers(belief) == (3.0, 1.0)


def test_a_shown_belief_that_is_stated_again_is_reinforced(world: World) -> None:
    """F3: weak models state word by word what they were shown."""
    tell(world, TABS)
    states(world, "tabs", TABS)
    told = tell(world, "tabs")
    assert actions(told) == [(world.only_belief().pk, "reinforced")]


def test_what_the_reading_was_not_shown_takes_the_word_of_what_says_the_same(world: World, decree: Any) -> None:
    """F3: of very many beliefs a reading sees the nearest; vectors find the others."""
    decree("reading", all_beliefs=1, nearest_beliefs=1)
    belief = world.hold(TABS, about="tabs")
    world.hold("Ana prefers mountains over spaces.", about="sea")
    text = "mountains and so on"
    states(world, text, "Ana prefers tabs over spaces!")
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    assert actions(tell(world, text)) == [(belief.pk, "reinforced")]
    assert numbers(belief) == (5.0, 1.0)


def replaced(world: World, text: str = MOVED, *, supports: int = 1, since: str = "", **given: Any) -> Belief:
    """Hold where Mara lives, and have a text end that: she has moved."""
    fields: dict[str, Any] = {"is_told": True, "user": "mara", "subject": "Mara", **given}
    belief = world.hold(PORTO, about="home", supports=supports, **fields)
    world.directions.place(BERGEN, {"home": 0.9})
    states(world, text, BERGEN, replaces=PORTO, subject="Mara", **({"from": since} if since else {}))
    judges(world, text, PORTO, "ENDED", **({"from": since} if since else {}))
    return belief


def test_what_ends_a_belief_closes_it_and_the_new_one_takes_its_place(world: World) -> None:
    """F3, C2: from when it was said."""
    belief = replaced(world)
    told = tell(world, MOVED, user="mara")
    new = other(world, belief)
    assert actions(told) == [(new.pk, "created"), (belief.pk, "superseded")]
    closed = world.now_of(belief)
    assert (closed.status, closed.status_reason, closed.valid_until) == ("invalidated", "changed", world.now)
    assert (new.status, new.statement, new.valid_from) == ("active", BERGEN, world.now)
    assert list(Lineage.objects.values_list("parent", "child", "kind")) == [(belief.pk, new.pk, "supersession")]
    transition = belief.transitions.get()
    assert (transition.new, transition.actor) == ("invalidated", str(TELLER))
    assert find_drift(workspace=world.workspace)[1] == []


def test_what_ends_on_a_day_ahead_holds_until_then(world: World) -> None:
    """F3, C1: the answer says no more than that it is spoken against."""
    belief = replaced(world, "I'm moving to Bergen on 20 March.", since="2026-03-20")
    told = tell(world, "I'm moving to Bergen on 20 March.", user="mara")
    day = datetime(2026, 3, 20, tzinfo=UTC)
    new = other(world, belief)
    assert (world.now_of(belief).status, world.now_of(belief).valid_until) == ("active", day)
    assert new.valid_from == day
    assert actions(told) == [(new.pk, "created"), (belief.pk, "weakened")]


def test_the_same_change_again_changes_nothing_more(world: World) -> None:
    """R1: in another session it bears the new one out."""
    belief = replaced(world)
    first = tell(world, MOVED, user="mara")
    assert actions(tell(world, MOVED, user="mara")) == actions(first)
    new = other(world, belief)
    world.readings[MOVED] = {}
    judges(world, MOVED, BERGEN, "SUPPORTS")
    assert actions(tell(world, MOVED, user="mara", session="another")) == [(new.pk, "reinforced")]
    assert (numbers(new), Belief.objects.count()) == ((3.0, 1.0), 2)


def contradicted(world: World, *, supports: int, **given: Any) -> Belief:
    """Hold what a text then says was never so."""
    belief = world.hold(TABS, about="tabs", supports=supports, **given)
    world.directions.place(SPACES, {"tabs": 0.9})
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS", holds="it was never so")
    return belief


def test_a_belief_of_three_episodes_lives_on_beside_the_new_one(world: World) -> None:
    """R3, B4: α = 1 + 3, β = 1 + 1, so 4/5 becomes 4/6; the new one is 2/3."""
    belief = contradicted(world, supports=3, is_told=True)
    told = tell(world, SPACES)
    new = other(world, belief)
    assert actions(told) == [(new.pk, "created"), (belief.pk, "weakened")]
    assert (numbers(belief), numbers(new)) == ((4.0, 2.0), (2.0, 1.0))
    assert (world.now_of(belief).status, world.now_of(new).status) == ("active", "active")
    assert words_on(belief, told.episode_id) == ("CONTRADICTS", "model", "it was never so")
    assert find_drift(workspace=world.workspace)[1] == []


def test_a_told_belief_of_one_episode_is_challenged(world: World) -> None:
    """F3: 2/3 becomes 2/4; one word against one."""
    belief = contradicted(world, supports=1, is_told=True)
    told = tell(world, SPACES)
    assert actions(told) == [(other(world, belief).pk, "created"), (belief.pk, "superseded")]
    assert (world.now_of(belief).status, world.now_of(belief).status_reason) == ("challenged", "disputed")
    assert numbers(belief) == (2.0, 2.0)


def test_what_holds_in_part_is_weakened(world: World) -> None:
    """F1: and the row says in which part."""
    belief = world.hold(TABS, about="tabs")
    text = "In Python files Ana takes spaces."
    judges(world, text, TABS, "PARTIAL", holds="not in Python files")
    told = tell(world, text)
    assert actions(told) == [(belief.pk, "weakened")]
    assert words_on(belief, told.episode_id) == ("PARTIAL", "model", "not in Python files")
    assert world.now_of(belief).status == "active"


def test_in_the_additive_model_a_contradiction_takes_a_fifth(world: World) -> None:
    """R10a: 0.6 at birth + 3 × 0.1 = 0.9, − 0.2 = 0.7; the new one is born at 0.6."""
    Workspace.objects.update(confidence_model=ConfidenceModel.ADDITIVE)
    belief = contradicted(world, supports=3)
    assert world.now_of(belief).additive_confidence == 0.9
    tell(world, SPACES)
    assert world.now_of(belief).additive_confidence == 0.7
    assert other(world, belief).additive_confidence == 0.6
    assert world.now_of(belief).status == "active"


@pytest.mark.parametrize("is_end", [True, False])
def test_a_pinned_belief_is_weakened_and_stands(world: World, is_end: bool) -> None:
    """D9."""
    belief = (replaced if is_end else contradicted)(world, supports=1, is_pinned=True, is_told=True, user="mara")
    told = tell(world, MOVED if is_end else SPACES, user="mara")
    assert actions(told)[1] == (belief.pk, "weakened")
    assert world.now_of(belief).status == "active"


def test_what_holds_for_all_is_not_ended_by_one_user(world: World) -> None:
    """B21: what belongs to another project or user may hold elsewhere."""
    belief = replaced(world, user="", supports=3)
    tell(world, MOVED, user="mara")
    assert world.now_of(belief).status == "active"
    assert (numbers(belief), Lineage.objects.count()) == ((4.0, 2.0), 0)


def test_another_users_belief_is_not_touched(world: World) -> None:
    """B21: the reading is not even shown it."""
    belief = contradicted(world, supports=1, user="ben")
    assert world.calls("read") == 0
    tell(world, SPACES, user="mara")
    assert numbers(belief) == (2.0, 1.0)
    assert [call.beliefs for call in world.server.calls("read")] == [[]]


def test_a_key_of_one_project_leaves_global_beliefs_alone(world: World) -> None:
    """B21: they are not shown; the project's own are."""
    project = factories.project(workspace=world.workspace, slug="mill")
    belief = contradicted(world, supports=1)
    world.hold("The mill is red.", about="mill", project=project, scope="project")
    told = tell(world, SPACES, project="mill", limited_to=[project.pk])
    assert numbers(belief) == (2.0, 1.0)
    new = Belief.objects.get(statement=SPACES)
    assert (actions(told), new.project) == ([(new.pk, "created")], project)
    assert [call.beliefs for call in world.server.calls("read")] == [["The mill is red."]]


def test_a_key_of_the_whole_workspace_speaks_of_global_beliefs(world: World) -> None:
    """B21."""
    factories.project(workspace=world.workspace, slug="mill")
    belief = contradicted(world, supports=3)
    tell(world, SPACES, project="mill")
    assert numbers(belief) == (4.0, 2.0)


@pytest.mark.parametrize("label", ["7", "0", "n4", ""])
def test_a_belief_that_was_not_shown_counts_as_none(world: World, label: str) -> None:
    """R3: the rest of the reply stands."""
    belief = world.hold(TABS, about="tabs")
    reply = {
        "new": [{"m": 1, "statement": SPACES}],
        "about": [{"m": 1, "b": label, "verdict": "CONTRADICTS"}, {"m": 1, "b": "1", "verdict": "PARTIAL"}],
    }
    world.server.script = lambda asked: reply if asked.purpose == "read" else None
    told = tell(world, SPACES)
    assert actions(told) == [(other(world, belief).pk, "created"), (belief.pk, "weakened")]


def test_one_text_may_speak_against_several_beliefs(world: World) -> None:
    """R3: the text's episode stands against each, in one call."""
    held = [
        world.hold(f"Ana prefers {what}.", about="tabs", likeness=0.99 - place / 100, supports=1, is_told=True)
        for place, what in enumerate(("tabs", "tabs of width 4", "long lines"))
    ]
    never = "Ana never uses tabs."
    states(world, never)
    for belief in held[:2]:
        judges(world, never, belief.statement, "CONTRADICTS")
    told = tell(world, never)
    assert [world.now_of(belief).status for belief in held] == ["challenged", "challenged", "active"]
    assert [numbers(belief)[1] for belief in held] == [2.0, 2.0, 1.0]
    superseded = [(belief.pk, "superseded") for belief in held[:2]]
    assert actions(told) == [(Belief.objects.get(statement=never).pk, "created"), *superseded]
    assert (world.calls("read"), world.calls("contradict")) == (1, 0)


@pytest.mark.parametrize(
    ("reason", "contradicts", "status"),
    [
        ("stale_and_weak", 0, "active"),
        ("unsupported", 0, "active"),
        ("doubtful", 2, "active"),
        ("low_confidence", 9, "archived"),
    ],
)
def test_an_archived_belief_is_borne_out_and_comes_back_under_its_id(
    world: World, reason: str, contradicts: int, status: str
) -> None:
    """B14: what speaks against it still counts, so that no second one begins without that."""
    belief = world.hold(TABS, about="tabs", contradicts=contradicts, status="archived", status_reason=reason)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    told = tell(world, "Ana prefers tabs over spaces!")
    assert actions(told) == [(belief.pk, "reinforced")]
    assert (world.now_of(belief).status, numbers(belief)) == (status, (5.0, 1.0 + contradicts))


def test_a_word_that_moves_nothing_weakens_nothing(world: World) -> None:
    """R3: a pinned belief stands beyond its last day, and what is said after that is not of its time (C2)."""
    belief = world.hold(TABS, about="tabs", is_pinned=True, valid_until=world.now - timedelta(days=1))
    before = numbers(belief)
    judges(world, "Spaces by now.", TABS, "CONTRADICTS")
    assert actions(tell(world, "Spaces by now.")) == []
    assert numbers(belief) == before


@pytest.mark.parametrize("status", ["archived", "forgotten"])
def test_what_a_person_put_away_is_not_believed_again(world: World, status: str) -> None:
    """B22: nor is anything said about it in the answer."""
    world.hold(TABS, about="tabs", status=status, archived_by_person_at=world.now)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    told = tell(world, "Ana prefers tabs over spaces!")
    assert (told.state, actions(told)) == ("done", [])
    assert RememberJob.objects.get().facts.get().outcome == "suppressed"


def test_what_a_text_says_of_itself_changes_none_of_it(world: World) -> None:
    """F3: two statements of one text stand side by side, and it speaks once on each."""
    states(world, "both", TABS, SPACES)
    judges(world, "both", TABS, "PARTIAL")
    told = tell(world, "both")
    assert [action for _, action in actions(told)] == ["created", "created"]
    assert set(Evidence.objects.values_list("verdict", flat=True)) == {"SUPPORTS"}


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


def test_a_new_belief_is_no_neighbour_of_what_its_text_denies(world: World) -> None:
    """R4: whatever becomes of that."""
    contradicted(world, supports=3)
    world.directions.place(SPACES, {"tabs": 0.7})
    tell(world, SPACES)
    assert neighbours(Belief.objects.get(statement=SPACES)) == {}


def test_calls_and_rows_name_what_was_shown(world: World) -> None:
    """R1, B19: erasing the episode, or a belief beside it, finds the reply that may quote it."""
    belief = contradicted(world, supports=3)
    told = tell(world, SPACES)
    calls = ModelCall.objects.filter(episodes=told.episode_id).values_list("purpose", flat=True)
    assert sorted(calls) == ["embed", "read"]
    [call] = ModelCall.objects.filter(purpose="read")
    assert set(RememberedFact.objects.values_list("call", flat=True)) == {call.pk}
    assert all(fact.asked_about == [belief.pk] for fact in RememberedFact.objects.all())
