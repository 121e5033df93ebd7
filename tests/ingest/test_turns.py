"""Turns come in: numbered, scanned, buffered, and read when something makes them due (L1, L2)."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memory.ingest.buffer import BufferedTurn, TurnAnswer, buffer_raw_turns
from memory.ingest.schemas import IngestContext, Rejected
from memory.models import Conversation, Project, Turn, Workspace
from memory.signals import turns_due
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def told() -> Iterator[list[list[int]]]:
    """Collect what workers would be told."""
    heard: list[list[int]] = []

    def hear(conversation_ids: list[int], **_: Any) -> None:
        heard.append(conversation_ids)

    turns_due.connect(hear)
    yield heard
    turns_due.disconnect(hear)


def say(*contents: str, workspace: Workspace, after: timedelta = timedelta(), **given: Any) -> list[TurnAnswer]:
    """Take turns of one session in one batch."""
    lines = [{"session": "s", "role": "user", "content": content, **given} for content in contents]
    return buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=workspace, now=NOW + after))


def good(answers: list[TurnAnswer]) -> list[BufferedTurn]:
    return [answer for answer in answers if isinstance(answer, BufferedTurn)]


def queued(answers: list[TurnAnswer]) -> list[bool]:
    return [answer.is_queued for answer in good(answers)]


def test_turns_are_numbered_in_their_order(workspace: Workspace) -> None:
    """L2: over batches."""
    say("One boat.", "Two boats.", workspace=workspace)
    say("Three boats.", workspace=workspace, role="assistant")
    turns = Turn.objects.order_by("number").values_list("number", "content", "role")
    assert list(turns) == [(1, "One boat.", "user"), (2, "Two boats.", "user"), (3, "Three boats.", "assistant")]
    conversation = Conversation.objects.get()
    assert (conversation.turn_count, conversation.buffered) == (3, 3)


def test_two_honest_yeses_are_two_turns(workspace: Workspace) -> None:
    """L2: without a turn_id nothing is taken for a replay."""
    say("Yes.", workspace=workspace)
    say("Yes.", workspace=workspace)
    assert Turn.objects.count() == 2


def test_a_replay_adds_nothing(workspace: Workspace) -> None:
    """L2: whole batches, and the same turn_id twice in one."""
    for _ in range(2):
        for n in range(3):
            say(f"Boat {n}.", f"Boat {n}.", workspace=workspace, turn_id=f"m-{n}")
    assert [turn.content for turn in Turn.objects.order_by("number")] == ["Boat 0.", "Boat 1.", "Boat 2."]
    assert Conversation.objects.get().buffered == 3


def test_a_turn_id_with_other_content_is_a_conflict(workspace: Workspace) -> None:
    """L2: within a batch as well as later; in another conversation it is another turn."""
    first, second = say("Port.", "Starboard.", workspace=workspace, turn_id="m-1")
    assert isinstance(first, BufferedTurn)
    assert isinstance(second, Rejected)
    [third] = say("Port.", workspace=workspace, turn_id="m-1", role="assistant")
    assert isinstance(third, Rejected)
    assert (second.status, third.status) == (409, 409)
    assert isinstance(say("Starboard.", workspace=workspace, turn_id="m-1", session="other")[0], BufferedTurn)
    assert [turn.content for turn in Turn.objects.order_by("pk")] == ["Port.", "Starboard."]


def test_a_conversation_is_of_a_session_a_user_and_a_project(workspace: Workspace) -> None:
    """L2: what differs in any is buffered apart."""
    others: list[dict[str, Any]] = [{}, {"user": "mara"}, {"project": "harbour"}, {"session": "t"}]
    for given in [*others, {"user": "mara", "project": "harbour"}]:
        say("One boat.", "Two boats.", workspace=workspace, **given)
    assert [row.buffered for row in Conversation.objects.all()] == [2] * 5
    assert Project.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_conversations_of_one_name_do_not_wait_for_each_other(workspace: Workspace) -> None:
    """L2: many users may call their session by the same name."""
    say("One boat.", workspace=workspace, user="mara")
    say("One boat.", workspace=workspace, user="toma")
    held = connection.copy()
    held.set_autocommit(False)
    with held.cursor() as cursor:
        cursor.execute("SELECT 1 FROM memory_conversation WHERE \"user\" = 'toma' FOR UPDATE")
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '2s'")
    assert good(say("Two boats.", workspace=workspace, user="mara"))[0].buffered == 2
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")
    held.rollback()
    held.close()


def test_a_high_signal_makes_the_buffer_due(workspace: Workspace, told: list[list[int]]) -> None:
    """L2: high → extract now; workers are told once, however many more come."""
    assert queued(say("The tide is low.", workspace=workspace)) == [False]
    assert queued(say("Never moor at the east pier.", "Ahoy.", workspace=workspace)) == [True, True]
    assert queued(say("Never moor at the west pier.", workspace=workspace)) == [True]
    conversation = Conversation.objects.get()
    assert (conversation.due_reason, told) == ("a turn with a high signal", [[conversation.pk]])


def test_enough_turns_make_the_buffer_due(workspace: Workspace, told: list[list[int]]) -> None:
    """L2: five."""
    answers = [say(f"Boat {n}.", workspace=workspace)[0] for n in range(5)]
    assert [(answer.buffered, answer.is_queued) for answer in good(answers)] == [
        (1, False), (2, False), (3, False), (4, False), (5, True),
    ]  # fmt: skip
    assert (Conversation.objects.get().due_reason, len(told)) == ("enough turns", 1)


def test_time_since_the_last_extraction_makes_the_buffer_due(workspace: Workspace) -> None:
    """L2: 15 minutes; counted from the first turn where there was none."""
    say("One boat.", workspace=workspace)
    assert queued(say("Two boats.", workspace=workspace, after=14 * MINUTE)) == [False]
    assert queued(say("Three boats.", workspace=workspace, after=15 * MINUTE)) == [True]
    Conversation.objects.update(due_since=None, due_reason="", buffered=0, extracted_at=NOW + 15 * MINUTE)
    assert queued(say("Four boats.", workspace=workspace, after=29 * MINUTE)) == [False]
    assert queued(say("Five boats.", workspace=workspace, after=30 * MINUTE)) == [True]


def test_a_batch_tells_workers_once(workspace: Workspace, told: list[list[int]]) -> None:
    """L2: one message at most for each conversation that became due."""
    lines = [{"session": f"s-{n % 3}", "role": "user", "content": f"Boat {n}."} for n in range(30)]
    buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=workspace, now=NOW))
    assert sorted(told[0]) == sorted(Conversation.objects.values_list("pk", flat=True))
    assert (len(told), len(told[0])) == (1, 3)


def test_many_turns_are_few_statements(workspace: Workspace, django_assert_max_num_queries: Any) -> None:
    """L2: a batch costs as much as a turn."""
    say("One boat.", workspace=workspace)
    with django_assert_max_num_queries(6):  # two of them begin and end a savepoint
        say(*(f"Boat {n}." for n in range(200)), workspace=workspace)


def test_what_a_tool_prints_asks_for_nothing(workspace: Workspace) -> None:
    """L1: roles are kept; a model's emphasis is a hint, and a tool's or a system's is none."""
    words = "Important: never run this as root."
    signals = [
        good(say(words, workspace=workspace, role=role))[0].signal for role in ("user", "assistant", "system", "tool")
    ]
    assert signals == ["high", "medium", "none", "none"]


def test_echo_is_not_buffered(workspace: Workspace, told: list[list[int]]) -> None:
    """Echo: a turn that is nothing but what we injected is done with as it comes, whatever it says."""
    [answer] = good(say("[Memory flash: Never moor at the east pier.]", workspace=workspace))
    assert (answer.signal, answer.buffered, answer.is_queued, told) == ("none", 0, False, [])
    turn = Turn.objects.get()
    assert (turn.state, turn.state_reason, turn.settled_at) == ("echo", "all of it was ours", NOW)


def test_injected_words_give_no_signal(workspace: Workspace) -> None:
    """Echo: a memory quoted within a turn is not said anew."""
    [answer] = good(say("[Belief (0.85): Never moor at the east pier.]\nThanks!", workspace=workspace))
    assert (answer.signal, Turn.objects.get().state) == ("none", "buffered")


@pytest.mark.django_db(transaction=True)
def test_racing_writers_of_one_conversation_lose_nothing(workspace: Workspace) -> None:
    """L2: each turn has a number of its own; a turn_id that all send counts once."""
    gate = threading.Barrier(4)

    def write(writer: int) -> None:
        try:
            gate.wait()
            for n in range(10):
                say(f"Boat {writer} {n}.", workspace=workspace)
                say(f"Buoy {n}.", workspace=workspace, turn_id=f"m-{n}")
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conversation = Conversation.objects.get()
    assert sorted(Turn.objects.values_list("number", flat=True)) == list(range(1, 51))
    assert (conversation.turn_count, conversation.buffered) == (50, 50)
