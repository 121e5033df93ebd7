"""A worker is killed while it remembers a text: what it says counts once, and no stored reply is paid again (R1)."""

import pytest

from memory.models import Belief
from tests.consolidation.world import World
from tests.faults.directly import asked, await_done, check_remembered_once, tell_later
from tests.faults.record import FaultRecord
from tests.faults.servers import BROKER, DATABASE, kill_servers, restart_servers
from tests.faults.waiting import wait_until
from tests.faults.windows import HeldReply, broker, locked, paused_broker
from tests.faults.workforce import Workforce


def test_a_child_dies_during_a_call(
    world: World, workforce: Workforce, record: FaultRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: that call is made again, for nobody has the reply."""
    worker = workforce.worker()
    held = HeldReply(world.server, purpose="read")
    belief = tell_later(world, monkeypatch)
    held.await_call()
    worker.kill_children()
    record.strike("SIGKILL of a worker's child, remembering a text, during its call")
    held.let_go()
    await_done()
    record.recover("that call was made again; the contradiction counted once")
    check_remembered_once(world, belief)
    assert asked(world) == 2


def test_a_child_dies_between_the_replies_and_the_storing(
    world: World, workforce: Workforce, record: FaultRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: the replies stand in the ledger; of the transaction nothing is left."""
    worker = workforce.worker()
    with locked("memory_rememberedfact") as window:
        belief = tell_later(world, monkeypatch)
        window.await_writer()
        worker.kill_children()
        record.strike("SIGKILL of a worker's child, remembering a text, its replies in the ledger, nothing counted")
        window.forget_writers()
    await_done()
    record.recover("the replies were found in the ledger; the contradiction counted once, no call made again")
    check_remembered_once(world, belief)
    assert asked(world) == 1


def test_a_child_dies_between_the_commit_and_the_ack(
    world: World, workforce: Workforce, record: FaultRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: the message comes again and finds nothing to do."""
    worker = workforce.worker()
    with locked("memory_rememberedfact") as window:
        belief = tell_later(world, monkeypatch)
        window.await_writer()
        with paused_broker():
            window.open()
            made = Belief.objects.filter(workspace=world.workspace).exclude(pk=belief.pk)
            wait_until(made.exists, what="the belief to be made", seconds=20)
            worker.kill_children()
            record.strike("SIGKILL of a worker's child, a text remembered, no message acknowledged")
    await_done()
    with broker() as client:
        wait_until(
            lambda: not client.llen("llm") and not client.hlen("unacked"),
            what="the message to be taken again",
            seconds=20,
        )
    record.recover("the message came again and found nothing to do")
    check_remembered_once(world, belief)
    assert asked(world) == 1


def test_every_message_is_lost(
    world: World, workforce: Workforce, record: FaultRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: the sweep sends them again."""
    with broker() as client:
        workforce.go_home()
        belief = tell_later(world, monkeypatch)
        record.strike("every message to remember a text lost in the broker")
        client.flushdb()
    workforce.worker()
    await_done()
    record.recover("the sweep sent them again; the contradiction counted once")
    check_remembered_once(world, belief)
    assert asked(world) == 1


@pytest.mark.parametrize("servers", [(DATABASE,), (BROKER,), (DATABASE, BROKER)], ids="-".join)
def test_servers_die_during_a_call(
    world: World,
    workforce: Workforce,
    record: FaultRecord,
    monkeypatch: pytest.MonkeyPatch,
    servers: tuple[str, ...],
) -> None:
    """R1: whoever goes on counts each fact once."""
    workforce.worker()
    held = HeldReply(world.server, purpose="read")
    belief = tell_later(world, monkeypatch)
    held.await_call()
    kill_servers(*servers)
    record.strike(f"{' and '.join(servers)} killed and restarted, a text being remembered")
    restart_servers()
    held.let_go()
    await_done()
    record.recover("the contradiction counted once")
    check_remembered_once(world, belief)
    assert asked(world) <= 2
