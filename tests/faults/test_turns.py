"""A worker is killed while it stores or reads a conversation: nothing is lost or twice (L2, F5)."""

import pytest

from memory.consolidation.cycle import database_now
from memory.models import Conversation, Episode, ReadingStream
from tests.consolidation.world import World
from tests.faults.conversing import (
    SAYINGS,
    await_reading,
    await_storing,
    check_stored_once,
    converse,
    count_asked,
    outcomes_of_calls,
)
from tests.faults.record import FaultRecord
from tests.faults.waiting import wait_until
from tests.faults.windows import HeldReply, broker, locked, paused_broker
from tests.faults.workforce import Workforce
from tests.model_server_acts import refuse, sensible


@pytest.fixture(autouse=True)
def _talkative(world: World) -> None:
    world.server.script = sensible


def test_a_conversation_is_read_by_a_real_worker(world: World, workforce: Workforce) -> None:
    """L2: by the message that its high signal sends."""
    workforce.worker()
    await_reading(converse(world, *SAYINGS))
    check_stored_once(world.workspace, *SAYINGS)
    assert count_asked(world) == 1


def test_a_child_dies_during_the_call(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """F5: what was said is stored by then; it is read with what is said next, or by the next cycle."""
    worker = workforce.worker()
    held = HeldReply(world.server, purpose="read")
    conversation = converse(world, *SAYINGS)
    held.await_call()
    worker.kill_children()
    record.strike("SIGKILL of a worker's child, reading a conversation, during its call")
    held.let_go()
    await_storing(conversation)
    check_stored_once(world.workspace, *SAYINGS)
    ReadingStream.objects.update(leased_until=None)  # nobody waits for a dead worker's lease in a test
    more = "Never leave the pottery unlocked."
    await_reading(converse(world, more))
    record.recover("the same turns were read with the next one; each turn stored once")
    check_stored_once(world.workspace, *SAYINGS, more)


def test_a_child_dies_while_it_stores(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """L2: nobody was asked yet, and the next one stores the same turns."""
    worker = workforce.worker()
    with locked("memory_turnepisode") as window:
        conversation = converse(world, *SAYINGS)
        window.await_writer()
        worker.kill_children()
        record.strike("SIGKILL of a worker's child, storing a conversation, its turns not committed")
        window.forget_writers()
    assert not Episode.objects.for_workspace(world.workspace.pk).exists()
    await_reading(conversation)
    record.recover("each turn stored once, and read in one call")
    check_stored_once(world.workspace, *SAYINGS)
    assert (count_asked(world), outcomes_of_calls(world.workspace)) == (1, {"ok": 1})


def test_a_child_dies_between_the_commit_and_the_ack(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """L2: the message comes again and finds nothing to do."""
    worker = workforce.worker()
    with locked("memory_turnepisode") as window:
        conversation = converse(world, *SAYINGS)
        window.await_writer()
        with paused_broker():
            window.open()
            stored = Episode.objects.for_workspace(world.workspace.pk)
            wait_until(stored.exists, what="the turns to be stored", seconds=20)
            worker.kill_children()
            record.strike("SIGKILL of a worker's child, a conversation read and stored, no message acknowledged")
    ReadingStream.objects.update(leased_until=None)  # it may have begun to read: nobody waits for its lease in a test
    more = "Never leave the pottery unlocked."
    converse(world, more)
    await_reading(conversation)
    record.recover("the message came again and found nothing to do; what was said next was read")
    check_stored_once(world.workspace, *SAYINGS, more)


def test_every_message_is_lost(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """L2: the sweep sends them again."""
    with broker() as client:
        workforce.go_home()
        conversation = converse(world, *SAYINGS)
        record.strike("every message to read a conversation lost in the broker")
        client.flushdb()
    Conversation.objects.update(sent_at=database_now(plus=-61))  # nobody waits a minute in a test
    workforce.worker()
    await_reading(conversation)
    record.recover("the sweep sent them again; each turn stored once")
    check_stored_once(world.workspace, *SAYINGS)


def test_a_busy_server_keeps_no_turn_waiting(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """F5: 429 with Retry-After: what was said is stored, and read with what is said next."""
    workforce.worker()
    world.server.then(refuse(429, retry_after=6.0), purpose="read")
    record.strike("429 with Retry-After: 6 s, to whoever reads a conversation")
    conversation = converse(world, *SAYINGS)
    await_storing(conversation)
    wait_until(lambda: outcomes_of_calls(world.workspace).total() == 1, what="the call to be refused", seconds=20)
    more = "Never leave the pottery unlocked."
    await_reading(converse(world, more))
    record.recover("read with the next turn; each turn stored once")
    check_stored_once(world.workspace, *SAYINGS, more)
    assert outcomes_of_calls(world.workspace)["ok"] == 1
