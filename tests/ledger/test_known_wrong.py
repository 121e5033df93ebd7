"""E6, 1 to 11: what the ledger was known to get wrong, each as it must be."""

from datetime import timedelta

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.forgetting import forget_episode
from memory.ingest.corrections import correct_belief
from memory.ingest.schemas import IngestContext, Stored
from memory.ingest.store import store_raw_episodes
from memory.ledger.beliefs import hash_statement
from memory.ledger.confidence import find_drift
from memory.ledger.transactions import Author
from memory.models import Belief, Episode, Evidence, GateDecision, Lineage, ShownMemory, StructuralJob
from tests import factories
from tests.consolidation.restructuring import NEW, OLD, contradict, doubted
from tests.consolidation.telling import Teller
from tests.consolidation.test_rebuild import rebuild
from tests.consolidation.world import World
from tests.facts.telling import SPACES, TABS, actions, judges, states, tell

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)


def numbers(belief: Belief) -> tuple[float, float, int, object, str]:
    belief.refresh_from_db()
    return belief.alpha, belief.beta, belief.storage_strength, belief.last_reinforced_at, belief.status


def is_sound(world: World) -> bool:
    return find_drift(workspace=world.workspace)[1] == [] and rebuild(world, is_dry_run=True).differences == []


# (1)


def test_what_curators_say_against_a_belief_reaches_the_gates(world: World) -> None:
    """Twenty supports against seven contradictions by hand: closed at once, and the next cycle says what is so now."""
    belief = world.hold(OLD, about="kiln", supports=20)
    world.revisions[OLD] = NEW
    world.directions.place(NEW, {"kiln": 0.8})
    for number in range(7):
        if world.now_of(belief).status != "active":
            break
        world.now += DAY
        lena = Actor(kind=ActorKind.PERSON, name=f"lena {number}")
        author = Author(actor=lena, reason=f"I measured 6 hours, {number}", now=world.now)
        correct_belief(belief=world.now_of(belief), wording=None, author=author)

    assert (world.now_of(belief).status, world.now_of(belief).status_reason) == ("invalidated", "changed")
    assert world.now_of(belief).alpha == 21.0
    assert GateDecision.objects.get(belief=belief, gate="close").cycle is None
    world.cycle(after=DAY)
    assert StructuralJob.objects.get(belief=belief).kind == "close"
    assert world.now_of(belief).is_due is False


@pytest.mark.usefixtures("without_closing")
def test_what_no_cycle_wrote_is_looked_at_by_the_next(world: World) -> None:
    """A remembered contradiction alone, with nothing new to consolidate."""
    belief = world.hold(TABS, about="tabs", supports=3)
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS")
    tell(world, SPACES)
    assert world.now_of(belief).is_due

    cycle = world.cycle(after=DAY)

    assert GateDecision.objects.filter(cycle=cycle, belief=belief, gate="revise").exists()
    assert not world.now_of(belief).is_due


# (2)


@pytest.mark.parametrize("contradicts", [False, True])
def test_an_echo_through_remember_moves_nothing(world: World, contradicts: bool) -> None:
    """Neither strength, reinforcement, status nor the lineage; an archived belief stays where it is."""
    belief = world.hold(TABS, about="tabs", supports=1)
    ShownMemory.objects.create(workspace=world.workspace, session="chat", belief=belief, surfaced_at=world.now)
    said = SPACES if contradicts else TABS
    states(world, said)
    if contradicts:
        judges(world, SPACES, TABS, "CONTRADICTS")
    else:
        assert world.cycle(after=91 * DAY).counts["archived"] == 1
    before = numbers(belief)

    world.now += DAY
    tell(world, said, source="ai", session="chat")

    assert numbers(belief) == before
    assert not Lineage.objects.filter(parent=belief).exists()
    row = Evidence.objects.get(belief=belief, episode__source="ai")
    assert (row.kind, row.base_weight) == ("echo", 0.0)


# (3)


def test_a_cycle_that_brought_an_echo_alone_can_be_undone(world: World) -> None:
    """And so can the one before it."""
    world.say_all([f"Ana prefers tabs, she said in week {n}." for n in range(3)], about="tabs")
    first = world.cycle()
    belief = world.only_belief()
    ShownMemory.objects.create(workspace=world.workspace, session="chat", belief=belief, surfaced_at=world.now)
    world.say("Ana prefers tabs, as you know.", about="tabs", source="ai", session="chat", likeness=0.8)
    second = world.cycle(after=DAY)
    assert Evidence.objects.get(cycle=second).kind == "echo"

    undo_cycle(cycle_id=first.pk, actor=LENA, now=world.now)
    undo_cycle(cycle_id=second.pk, actor=LENA, now=world.now)

    assert is_sound(world)


# (4)


def test_undoing_keeps_what_came_since_by_other_ways(world: World) -> None:
    """Strength and reinforcement are those of the rows that are left; erasing then leaves what they give."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.say("Ana uses tabs.", about="tabs", likeness=0.8)
    cycle = world.cycle(after=DAY)
    world.now += DAY
    judges(world, "Ana prefers tabs over spaces!", TABS, "SUPPORTS")
    told = tell(world, "Ana prefers tabs over spaces!", session="later")
    assert numbers(belief)[:2] == (6.0, 1.0)

    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=world.now)
    assert numbers(belief)[:4] == (5.0, 1.0, 4, world.now)

    erase_memories(
        workspace=world.workspace, episodes=Episode.objects.filter(pk=told.episode_id), actor=LENA, now=world.now
    )
    assert numbers(belief)[:3] == (4.0, 1.0, 3)
    assert is_sound(world)


# (5)


def test_a_contradiction_counts_each_time_it_is_remembered(world: World) -> None:
    """While the old belief lives."""
    belief = world.hold(TABS, about="tabs", supports=4)
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS")
    for number in range(2):
        world.now += DAY
        tell(world, SPACES, session=f"week {number}")

    assert numbers(belief)[:2] == (5.0, 3.0)


# (6)


@pytest.mark.usefixtures("without_closing")
def test_what_a_revision_says_is_not_believed_twice(world: World) -> None:
    """The belief that says it already takes the evidence, and stands in the old one's place."""
    old = doubted(world)
    known = world.hold(NEW, about="kiln", likeness=0.8, supports=3)
    contradict(world)

    world.cycle(after=DAY)

    assert world.now_of(old).status == "revised"
    assert Belief.objects.filter(statement=NEW).count() == 1
    assert Lineage.objects.get(parent=old).child == known
    assert world.now_of(known).evidence_count > 3


# (7)


def test_a_text_that_says_both_counts_as_one_word() -> None:
    """Its last word: one row of evidence, neither reinforced nor ended."""
    mara = Teller(workspace=factories.workspace())
    mara.cycle("I drink tea.")
    mara.cycle("I drink tea.")
    belief = mara.belief("tea")
    mara.cycle("I drink tea. I do not drink tea.")

    row = Evidence.objects.get(belief=belief, episode__text__contains="not")
    assert row.verdict == Verdict.CONTRADICTS
    belief.refresh_from_db()
    assert (belief.status, belief.alpha, belief.beta) == ("active", 3.0, 2.0)
    assert find_drift(workspace=mara.workspace)[1] == []


def test_a_text_that_takes_its_word_back_leaves_what_is_archived_there(transactional_db: None) -> None:
    """C4: its first half would have brought the belief back, and is no evidence any more."""
    mara = Teller(workspace=factories.workspace())
    mara.cycle("I drink tea.")
    forget_episode(episode=Episode.objects.get(), actor=LENA, now=mara.now)
    mara.remember("I drink tea. I do not drink tea.", session="later")

    belief = mara.belief("drinks tea")
    assert (belief.status, belief.status_reason) == ("archived", "unsupported")
    assert belief.evidence.get(episode__session="later").verdict == Verdict.CONTRADICTS
    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []


# (9)


def test_a_summarys_own_words_found_nothing(world: World) -> None:
    """What is derived is never evidence, whoever has it remembered."""
    line = {"text": TABS, "session": "chat"}
    [summary] = store_raw_episodes(raw_lines=[line], arrival=IngestContext(workspace=world.workspace, now=world.now))
    Episode.objects.update(is_derived=True)

    told = tell(world, TABS, session="chat")

    assert isinstance(summary, Stored)
    assert told.episode_id == summary.id
    assert actions(told) == []
    assert not Belief.objects.exists()
    assert not Evidence.objects.exists()


# (10)


def test_a_verdict_is_of_a_context_too() -> None:
    """The prompt holds it: another context is another question."""
    assert hash_statement("Ana uses tabs.", "ana", "at work") != hash_statement("Ana uses tabs.", "ana", "at home")


# (11)


def test_a_note_comes_back_when_what_superseded_it_is_forgotten(world: World) -> None:
    """L18: it was put aside for nothing else."""
    from memory.consolidation.episode_states import supersession_reason
    from memory.domain.lifecycle import EpisodeStatus
    from memory.ledger.transactions import change_episode_status

    note, newer = world.say("Mia works on Fridays.", about="mia"), world.say("Mia is off on Fridays.", about="mia")
    change_episode_status(
        ids=[note.pk], new=EpisodeStatus.SUPERSEDED, reason=supersession_reason(newer.pk), actor=LENA, now=world.now
    )

    forget_episode(episode=newer, actor=LENA, now=world.now)

    note.refresh_from_db()
    assert note.status == "active"


def test_a_restored_belief_is_open_again(world: World) -> None:
    """C2: a person's word opens what was closed, and what was said since counts again."""
    belief = world.hold(OLD, about="kiln", supports=6)
    for number in range(4):
        world.say(f"Log {number}: 6 hours.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    world.now += DAY
    Episode.objects.filter(text__startswith="Log").update(occurred_at=world.now)
    world.cycle()
    assert (world.now_of(belief).status, world.now_of(belief).beta) == ("invalidated", 1.0)

    curate_belief(belief_id=belief.pk, act=CuratorAction.RESTORE, reason="it burns 5", actor=LENA, now=world.now)

    belief.refresh_from_db()
    assert (belief.status, belief.valid_until, belief.beta) == ("active", None, 5.0)
    world.cycle(after=DAY)
    assert world.now_of(belief).status == "active"


# What undoing got wrong


def test_what_was_said_since_an_undone_cycle_is_read_again(transactional_db: None) -> None:
    """B22, C4: it bore out a belief that is gone, and founds one of its own."""
    mara = Teller(workspace=factories.workspace())
    cycle = mara.cycle("I drink tea.")
    mara.remember("I drink tea.", session="later")
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)
    gone = Belief.objects.get()
    assert (gone.status, gone.evidence.count()) == ("invalidated", 0)

    mara.cycle()

    again = Belief.objects.get(status="active")
    assert again.statement == gone.statement
    assert [row.episode.session for row in again.evidence.select_related("episode")] == ["later"]
    assert find_drift(workspace=mara.workspace)[1] == []


def test_undoing_brings_back_nothing_without_evidence(transactional_db: None) -> None:
    """C4: what a cycle archived stays archived where all that bore it out was forgotten since."""
    mara = Teller(workspace=factories.workspace())
    mara.cycle("I drink tea.")
    cycle = mara.cycle(after=400 * DAY)
    assert mara.belief("tea").status == "archived"
    forget_episode(episode=Episode.objects.get(), actor=LENA, now=mara.now)

    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)

    assert (mara.belief("tea").status, mara.belief("tea").status_reason) == ("archived", "unsupported")


def test_a_word_that_came_since_counts_as_if_the_cycle_had_never_been(transactional_db: None) -> None:
    """C4: what a cycle had archived came back by it, and stands now as it would without that cycle."""
    one, other = (Teller(workspace=factories.workspace()) for _ in range(2))
    for mara in (one, other):
        mara.cycle("I drink tea.")
    cycle = one.cycle(after=400 * DAY)
    other.now += 400 * DAY
    for mara in (one, other):
        mara.remember("I drink tea.", session="later")
    assert one.belief("tea").status_reason == "fresh_support"

    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=one.now)

    columns = ("status", "status_reason", "alpha", "beta", "valid_until")
    undone, without = ([getattr(mara.belief("tea"), name) for name in columns] for mara in (one, other))
    assert undone == without
