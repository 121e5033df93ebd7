"""A worker is killed while it reads what people said: nothing is lost, nothing counts twice (F2)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

import pytest
from django.utils import timezone

from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, ClusterJob, Cycle, Episode, Evidence
from tests.consolidation.world import World
from tests.faults.record import FaultRecord
from tests.faults.story import await_end, begin
from tests.faults.waiting import wait_until
from tests.faults.windows import HeldReply, HeldVectors, locked, paused_broker
from tests.faults.workforce import Workforce, runs

LEIPZIG, DRESDEN, TABS = "Ines lives in Leipzig.", "Ines lives in Dresden.", "Otto prefers tabs."
_SETTLED = {
    LEIPZIG: ("invalidated", 2.0, 1.0),
    DRESDEN: ("active", 3.0, 1.0),
    TABS: ("active", 2.0, 1.0),
}


@pytest.fixture
def talk(world: World) -> World:
    """Return a world in which Ines has moved and said so twice, and Otto has told one thing: two streams."""
    world.now = timezone.now()
    told = [
        ("ines", "I live in Leipzig.", {"new": [{"statement": LEIPZIG}]}),
        ("ines", "I moved to Dresden.", {"new": [{"statement": DRESDEN, "replaces": LEIPZIG}]}),
        ("ines", "Dresden is lovely.", {"about": [{"b": DRESDEN, "verdict": "SUPPORTS"}]}),
        ("otto", "Tabs, please.", {"new": [{"statement": TABS}]}),
        ("otto", "What is the weather like?", {}),
    ]
    for number, (user, text, reply) in enumerate(told):
        world.readings[text] = reply
        said_at = world.now - timedelta(minutes=len(told) - number)
        world.say(text, about=text, source="human", user=user, occurred_at=said_at)
    return world


@contextmanager
def during_the_call(world: World) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Hold the reply of the first reading."""
    held = HeldReply(world.server, purpose="read")
    try:
        yield held.await_call, lambda: None
    finally:
        held.let_go()


@contextmanager
def before_it_is_applied(world: World) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Hold the vectors of what a reply states: the reply is stored by then, and nothing has come of it."""
    held = HeldVectors(world.server, text=LEIPZIG)
    try:
        yield held.await_call, lambda: None
    finally:
        held.let_go()


@contextmanager
def while_it_is_applied(world: World) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Hold the transaction of a reading in its middle: claims and beliefs are written, and no evidence is."""
    with locked("memory_evidence") as table:
        yield table.await_writer, table.forget_writers


Window = Callable[[World], AbstractContextManager[tuple[Callable[[], None], Callable[[], None]]]]
WINDOWS: dict[str, tuple[Window, int]] = {  # how many calls of the readings come a second time
    "during its call": (during_the_call, 1),
    "its reply stored, not applied": (before_it_is_applied, 0),
    "its reply being applied": (while_it_is_applied, 0),
}


def check_read_once(world: World, cycle: Cycle, *, repeated: int) -> None:
    """Assert what an undisturbed run gives: every message read, each claim and word once, no reply paid for twice."""
    workspace = world.workspace
    assert cycle.state == "finished"
    beliefs = Belief.objects.for_workspace(workspace.pk).values_list("statement", "status", "alpha", "beta")
    assert {row[0]: row[1:] for row in beliefs} == _SETTLED
    assert len(beliefs) == len(_SETTLED)
    assert not Episode.objects.for_workspace(workspace.pk).filter(read_at=None).exists()
    claims = Claim.objects.for_workspace(workspace.pk).values_list("sentence", flat=True)
    assert sorted(claims) == sorted(_SETTLED)
    assert Evidence.objects.for_workspace(workspace.pk).count() == 5  # three that found, one for Dresden, one end
    assert find_drift(workspace=workspace) == (3, [])
    assert not ClusterJob.objects.filter(cycle=cycle).open().exists()
    assert 2 <= world.calls("read") <= 2 + repeated


def test_nothing_goes_wrong(talk: World, workforce: Workforce) -> None:
    """F2: the run that the others are compared with."""
    workforce.worker()

    check_read_once(talk, await_end(begin(talk)), repeated=0)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_child_dies_while_it_reads(talk: World, workforce: Workforce, record: FaultRecord, name: str) -> None:
    """F2: the message comes back to another child, which reads what is unread and nothing else."""
    window, repeated = WINDOWS[name]
    worker = workforce.worker()
    with window(talk) as (await_worker, forget):
        cycle = begin(talk)
        await_worker()
        worker.kill_children()
        record.strike(f"SIGKILL of a worker's child, read, {name}")
        forget()

    ended = await_end(cycle)
    record.recover(f"went on in attempt {ended.attempt}; each message was read once")
    check_read_once(talk, ended, repeated=repeated)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_parent_dies_while_its_child_reads(talk: World, workforce: Workforce, record: FaultRecord, name: str) -> None:
    """F2: the orphan may still end its reading, nobody hears of it; another worker takes over."""
    window, _ = WINDOWS[name]
    worker = workforce.worker()
    with window(talk) as (await_worker, _forget):
        cycle = begin(talk)
        await_worker()
        orphans = worker.kill_parent()
        record.strike(f"SIGKILL of a worker's parent, read, {name}")
    wait_until(lambda: not any(runs(orphan) for orphan in orphans), what="the orphans to end")

    workforce.worker()
    ended = await_end(cycle)
    record.recover(f"went on in attempt {ended.attempt} on another worker; each message was read once")
    check_read_once(talk, ended, repeated=1)


def test_a_child_dies_between_a_readings_commit_and_its_ack(
    talk: World, workforce: Workforce, record: FaultRecord
) -> None:
    """F2: the message comes again, and finds its messages read."""
    worker = workforce.worker()
    with locked("memory_evidence") as table:
        cycle = begin(talk)
        table.await_writer()
        with paused_broker():
            table.open()
            wait_until(Evidence.objects.filter(cycle=cycle).exists, what="a reading to be applied", seconds=20)
            worker.kill_children()
            record.strike("SIGKILL of a worker's child, read, committed, no message acknowledged")

    ended = await_end(cycle)
    record.recover("the message came again and found its messages read")
    check_read_once(talk, ended, repeated=0)
