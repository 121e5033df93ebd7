"""B22: what curators did is repeated where it stood among the cycles."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import open_cycle
from memory.consolidation.rebuild import rebuild_beliefs
from memory.domain.identity import Actor, ActorKind
from memory.facts.reflection import backfill_subjects
from memory.ledger.beliefs import hash_statement
from memory.models import Belief, ClusterJob, Cycle, GateDecision, Trigger
from tests.consolidation.test_rebuild import rebuild, without_keys, wreck
from tests.consolidation.world import World

# Each act in a transaction of its own: their times tell the order.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unheard")]

LENA = Actor(kind=ActorKind.PERSON, name="lena")
KILN = [f"Potter's log {n}: the kiln burnt for 5 hours." for n in range(1, 6)]


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Let no message reach the suite's broker."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)


@pytest.fixture
def belief(world: World) -> Belief:
    """A belief of three episodes."""
    world.say_all(KILN[:3], about="kiln")
    world.cycle()
    return world.only_belief()


def curate(world: World, act: CuratorAction) -> None:
    curate_belief(belief_id=world.only_belief().pk, act=act, reason="by hand", actor=LENA, now=world.now)


def assert_the_same_again(world: World) -> None:
    before = without_keys(world.rows())
    assert rebuild(world).differences == []
    wreck()
    rebuild(world)
    assert without_keys(world.rows()) == before


def test_a_pin_holds_from_where_it_was_set_to_where_it_was_taken_away(world: World, belief: Belief) -> None:
    """B14, D9: due at day 91, pinned until day 100, archived at day 120."""
    curate(world, CuratorAction.PIN)
    world.cycle(after=timedelta(days=95))
    curate(world, CuratorAction.UNPIN)
    world.cycle(after=timedelta(days=25))
    assert world.now_of(belief).status == "archived"

    assert_the_same_again(world)


def test_a_subject_that_was_read_off_the_statement_stays(world: World) -> None:
    """B22, R13: a belief whose model named none gets it from where it got it."""
    belief = of_nobody(world)
    backfill_subjects(workspace=world.workspace, actor=LENA, now=world.now)
    assert world.now_of(belief).subject == "ana"
    world.say_all([f"Ana prefers tabs over spaces in file {n}." for n in range(3, 5)], about="tabs")
    world.cycle(after=timedelta(days=1))

    assert_the_same_again(world)


def of_nobody(world: World) -> Belief:
    """Return a belief of which neither model nor rules named a subject when a cycle founded it."""
    world.statements["tabs"] = "Ana prefers tabs over spaces."
    world.say_all([f"Ana prefers tabs over spaces in file {n}." for n in range(3)], about="tabs")
    world.cycle()
    belief = world.only_belief()
    unnamed = hash_statement(belief.statement, "")
    job = ClusterJob.objects.get(created_belief=belief)
    job.candidate = (job.candidate or {}) | {"subject": ""}
    job.candidate_hash = unnamed
    job.save()
    Belief.objects.update(subject="", statement_hash=unnamed)
    return world.only_belief()


def test_what_a_person_restored_stays_for_its_time(world: World, belief: Belief) -> None:
    """B14."""
    world.cycle(after=timedelta(days=95))
    curate(world, CuratorAction.RESTORE)
    world.cycle(after=timedelta(days=5))
    assert world.now_of(belief).status == "active"

    assert_the_same_again(world)


def test_what_a_person_archived_takes_evidence_and_stays_away(world: World, belief: Belief) -> None:
    """B14, B22."""
    curate(world, CuratorAction.ARCHIVE)
    world.say_all(KILN[3:], about="kiln")
    world.cycle(after=timedelta(days=1))
    assert (world.now_of(belief).status, world.now_of(belief).evidence_count) == ("archived", 5)

    assert_the_same_again(world)


@pytest.mark.parametrize(
    "act", [CuratorAction.PIN, CuratorAction.ARCHIVE, CuratorAction.CHALLENGE, CuratorAction.FORGET]
)
def test_an_act_during_a_cycle_finds_its_place(world: World, belief: Belief, act: CuratorAction) -> None:
    """B22: the cycle's own change of a status tells which came first."""
    world.say(KILN[3], about="kiln")
    world.before_gate = lambda: curate(world, act)
    world.cycle(after=timedelta(days=1))
    world.before_gate = lambda: None
    world.cycle(after=timedelta(days=95))

    assert_the_same_again(world)


def test_a_belief_archived_by_a_cycle_and_restored_before_it_ended(world: World, belief: Belief) -> None:
    """B22."""
    world.cycle(after=timedelta(days=95))
    restored_at = world.now
    curate(world, CuratorAction.RESTORE)
    Cycle.objects.filter(now=restored_at).update(finished_at=_after_the_last_act())

    assert_the_same_again(world)
    assert world.now_of(belief).restored_by_person_at == restored_at
    assert GateDecision.objects.filter(gate="archive", passed=True).count() == 1


def _after_the_last_act() -> object:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now() + interval '1 second'")
        return cursor.fetchone()[0]


def test_no_cycle_opens_meanwhile(world: World, belief: Belief) -> None:
    """B22: who would open one waits until all is done."""
    opened = threading.Event()

    def open_one() -> None:
        open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
        opened.set()
        connection.close()

    other = threading.Thread(target=open_one)

    def look(total: int) -> None:
        other.start()
        assert not opened.wait(0.3)

    rebuild_beliefs(workspace=world.workspace, now=world.now, on_cycle=look)
    other.join()

    assert opened.is_set()
