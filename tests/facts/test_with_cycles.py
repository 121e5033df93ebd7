"""What was remembered at once lives on beside cycles: undone, rebuilt, forgotten and erased like all else."""

import pytest

from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.forgetting import forget_episode
from memory.ledger.confidence import find_drift
from memory.models import Belief, Episode, Lineage, ModelCall, RememberedFact
from tests.consolidation.world import World
from tests.facts.telling import actions, judges, numbers, states, tell, words_on
from tests.forgetting.forgetful import all_is_sound

# Each act in a transaction of its own: their times tell the order.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unheard")]

TABS = "Ana prefers tabs over spaces."
SPACES = "Ana prefers spaces over tabs."
LENA = Actor(kind=ActorKind.PERSON, name="lena")


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Let no message reach the suite's broker."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)


@pytest.fixture
def founded(world: World) -> Belief:
    """Return a belief that a cycle founded on three episodes, which a text then bore out, and another contradicted."""
    world.statements["tabs"] = TABS
    world.directions.place(TABS, {"tabs": 1.0})
    for number in range(3):
        world.say(f"Ana chose tabs in file {number}.", about="tabs", speaker="Ana")
    world.cycle()
    belief = world.only_belief()
    judges(world, TABS, TABS, "SUPPORTS")
    tell(world, TABS)
    world.directions.place(SPACES, {"tabs": 0.9})
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS")
    tell(world, SPACES)
    assert numbers(belief) == (5.0, 2.0)
    return belief


def test_a_rebuilding_repeats_what_was_remembered(world: World, founded: Belief) -> None:
    """R3, B22: where nothing was lost, nothing differs."""
    assert rebuild_beliefs(workspace=world.workspace, now=world.now).differences == []
    assert numbers(founded) == (5.0, 2.0)


def test_a_rebuilding_brings_back_what_strayed(world: World, founded: Belief) -> None:
    """R3, B22."""
    Belief.objects.filter(pk=founded.pk).update(alpha=9.0, status="archived")
    assert [one.id for one in rebuild_beliefs(workspace=world.workspace, now=world.now).differences] == [founded.pk]
    assert numbers(founded) == (5.0, 2.0)
    assert world.now_of(founded).status == "active"


@pytest.fixture
def ended(world: World) -> Belief:
    """Return a belief that a cycle founded, and a text then ended: another took its place."""
    world.statements["tabs"] = TABS
    world.directions.place(TABS, {"tabs": 1.0})
    for number in range(3):
        world.say(f"Ana chose tabs in file {number}.", about="tabs", speaker="Ana")
    world.cycle()
    belief = world.only_belief()
    world.directions.place(SPACES, {"tabs": 0.9})
    states(world, SPACES, replaces=TABS)
    assert [action for _, action in actions(tell(world, SPACES))] == ["created", "superseded"]
    return belief


def test_a_rebuilding_leaves_what_was_superseded(world: World, ended: Belief) -> None:
    """F3, B22: also where a cycle made the belief that a text then closed."""
    assert rebuild_beliefs(workspace=world.workspace, now=world.now).differences == []
    assert world.now_of(ended).status == "invalidated"


def test_what_took_the_place_of_an_erased_belief_stays(world: World, ended: Belief) -> None:
    """F3, B19: its words come from an episode of its own."""
    erase_memories(
        workspace=world.workspace, episodes=Episode.objects.none(), beliefs=[ended.pk], actor=LENA, now=world.now
    )
    assert list(Belief.objects.values_list("statement", flat=True)) == [SPACES]
    assert not Lineage.objects.exists()


def test_undoing_a_cycle_keeps_what_was_remembered(world: World, founded: Belief) -> None:
    """R3, B22: what was born in it is believed no more, its successor is."""
    undo_cycle(cycle_id=str(founded.created_in_id), actor=LENA, now=world.now)
    assert numbers(founded) == (1.0, 1.0)
    assert dict(Belief.objects.values_list("statement", "status")) == {TABS: "invalidated", SPACES: "active"}
    assert find_drift(workspace=world.workspace)[1] == []


def test_a_forgotten_text_leaves_the_evidence(world: World, founded: Belief) -> None:
    """R3, B19: what only it supported is archived; what it contradicted stands as before."""
    told = Episode.objects.get(text=SPACES)
    forget_episode(episode=told, actor=LENA, now=world.now)
    assert numbers(founded) == (5.0, 1.0)
    assert Belief.objects.get(statement=SPACES).status == "archived"
    all_is_sound(world)


def test_an_erased_text_takes_its_beliefs_and_replies(world: World, founded: Belief) -> None:
    """R3, B19."""
    told = Episode.objects.filter(text=SPACES)
    calls = list(ModelCall.objects.filter(episodes__in=told).values_list("pk", flat=True))
    erase_memories(workspace=world.workspace, episodes=told, actor=LENA, now=world.now)
    assert numbers(founded) == (5.0, 1.0)
    assert not Belief.objects.filter(statement=SPACES).exists()
    assert not RememberedFact.objects.filter(text=SPACES).exists()
    assert set(ModelCall.objects.filter(pk__in=calls).values_list("reply", flat=True)) == {""}
    all_is_sound(world)


def test_what_was_read_beside_an_erased_belief_stays(world: World, founded: Belief) -> None:
    """F3, B19: its words come from an episode of its own; what a model said of the two is gone."""
    asked = RememberedFact.objects.get(text=SPACES).call_id
    erase_memories(
        workspace=world.workspace, episodes=Episode.objects.none(), beliefs=[founded.pk], actor=LENA, now=world.now
    )
    assert list(Belief.objects.values_list("statement", flat=True)) == [SPACES]
    assert asked
    assert ModelCall.objects.get(pk=asked).reply == ""


def test_a_cycle_goes_on_from_what_was_remembered(world: World) -> None:
    """R2, B8.4: its episodes are settled, and further ones bear its beliefs out."""
    told = tell(world, TABS)
    world.directions.place("Ana prefers tabs over spaces!", {TABS: 0.97})
    world.say("Ana prefers tabs over spaces!", about=TABS, likeness=0.97, speaker="Ana")
    world.cycle()
    belief = world.only_belief()
    assert numbers(belief) == (3.0, 1.0)
    assert words_on(belief, told.episode_id)[0] == "SUPPORTS"
