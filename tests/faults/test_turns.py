"""A worker is killed while it reads a conversation: nothing is lost or twice, and no stored reply paid again (L2)."""

import pytest

from memory.consolidation.cycle import database_now
from memory.models import Conversation, Episode
from tests.consolidation.world import World
from tests.faults.conversing import (
    SAYINGS,
    await_reading,
    check_read_once,
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
    check_read_once(world.workspace, *SAYINGS)
    assert count_asked(world) == 1


def test_a_child_dies_during_the_call(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """L2: the next one asks again, for nobody has the reply."""
    worker = workforce.worker()
    held = HeldReply(world.server, purpose="facts")
    conversation = converse(world, *SAYINGS)
    held.await_call()
    worker.kill_children()
    record.strike("SIGKILL of a worker's child, reading a conversation, during its call")
    held.let_go()
    await_reading(conversation)
    record.recover("the same turns were asked about again; each turn stored once")
    check_read_once(world.workspace, *SAYINGS)
    assert count_asked(world) == 2


def test_a_child_dies_between_the_reply_and_the_storing(
    world: World, workforce: Workforce, record: FaultRecord
) -> None:
    """L2: the reply stands in the ledger and is not paid for again."""
    worker = workforce.worker()
    with locked("memory_turnepisode") as window:
        conversation = converse(world, *SAYINGS)
        window.await_writer()
        worker.kill_children()
        record.strike(
            "SIGKILL of a worker's child, reading a conversation, its reply in the ledger, its turns not stored"
        )
        window.forget_writers()
    assert not Episode.objects.for_workspace(world.workspace.pk).exists()
    await_reading(conversation)
    record.recover("the reply was found in the ledger; each turn stored once, no call made again")
    check_read_once(world.workspace, *SAYINGS)
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
            wait_until(stored.exists, what="the facts to be stored", seconds=20)
            worker.kill_children()
            record.strike("SIGKILL of a worker's child, a conversation read and stored, no message acknowledged")
    more = "Never leave the pottery unlocked."
    converse(world, more)
    await_reading(conversation)
    record.recover("the message came again and found nothing to do; what was said next was read")
    check_read_once(world.workspace, *SAYINGS, more)


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
    check_read_once(world.workspace, *SAYINGS)


def test_a_busy_server_is_waited_for(world: World, workforce: Workforce, record: FaultRecord) -> None:
    """L2: 429 with Retry-After: the lease is given back, and nobody is blamed."""
    workforce.worker()
    world.server.then(refuse(429, retry_after=6.0), purpose="facts")
    record.strike("429 with Retry-After: 6 s, to whoever reads a conversation")
    await_reading(converse(world, *SAYINGS))
    record.recover("asked again when the time had come; each turn stored once")
    check_read_once(world.workspace, *SAYINGS)
    assert outcomes_of_calls(world.workspace)["ok"] == 1
