"""Facts of a conversation do not wait for its summary, nor it for them (L2, L3)."""

from datetime import timedelta

import pytest

from memory.consolidation.cycle import database_now
from memory.domain.taxonomy import ConversationTurn
from memory.ingest import extract, summaries
from memory.ingest.summaries import summarize_due_stretches
from memory.llm.call_log import DailyCapReached, OutOfBudget, RetryLater
from memory.llm.types import CallFailed, FailureKind
from memory.models import Conversation, Episode, Workspace
from tests.ingest.reading import HIGH, Reader, conversation, end_waits, facts_of, read, say, states, wake

pytestmark = pytest.mark.django_db


def summing(monkeypatch: pytest.MonkeyPatch, *stops: Exception | None) -> list[int]:
    """Let summaries fail as told, then succeed without words; return the list of the last turns that were tried."""
    tried: list[int] = []

    def summarize(*, numbers: range, **_: object) -> None:
        tried.append(numbers[-1])
        if len(tried) <= len(stops) and (stop := stops[len(tried) - 1]):
            raise stop

    monkeypatch.setattr(extract, "summarize_due_stretches", summarize_due_stretches)
    monkeypatch.setattr(summaries, "summarize_stretch", summarize)
    return tried


BROKEN = CallFailed("broken", kind=FailureKind.SERVER)


@pytest.mark.parametrize(
    "stop",
    [DailyCapReached("spent"), OutOfBudget("no time is left"), RetryLater(seconds=60), BROKEN],
    ids=["cap", "time", "wait", "broken"],
)
def test_facts_do_not_wait_for_a_summary(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch, stop: Exception
) -> None:
    """R8: what was found is stored, whether or not anybody sums it up; the summary is tried again later."""
    tried = summing(monkeypatch, stop)
    say(*(f"Boat {n}." for n in range(5)), workspace=workspace)
    assert (read(), set(states()), Episode.objects.count()) == (True, {"extracted"}, 5)
    assert (wake(), read(), tried) == (0, False, [5])
    Conversation.objects.update(sum_due_at=database_now(plus=-1))
    assert (wake(), read(), tried) == (1, False, [5, 5])
    found = conversation()
    assert (found.summed_up, found.sum_due_at, found.sum_tries) == (5, None, 0)


def test_what_no_model_can_sum_up_is_let_be(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: nonsense is not asked for again; a server that fails is, for five times."""
    nonsense = CallFailed("no JSON", kind=FailureKind.MALFORMED)
    tried = summing(monkeypatch, nonsense, *[BROKEN] * 5)
    say(*(f"Boat {n}." for n in range(15)), workspace=workspace)
    for _ in range(7):
        read()
        Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
    assert tried == [5, *[10] * 5, 15]


def test_stretches_of_a_batch_that_was_read_in_part_are_summed_up(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: those that are read by now, and the last one when its last turn is."""
    tried = summing(monkeypatch)
    say(*(f"Boat {n}." for n in range(20)), workspace=workspace)
    reader.does = lambda turns: facts_of(turns, unread=[20])
    assert (read(), tried) == (False, [5, 10, 15])
    reader.does = None
    end_waits()
    assert (read(), tried) == (True, [5, 10, 15, 20])


def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int]]]:
    """Let summaries succeed without words; return what was summed up of what was shown, by the numbers of turns."""
    told: list[tuple[list[int], list[int]]] = []

    def summarize(*, turns: list[ConversationTurn], numbers: range, **_: object) -> None:
        told.append((list(numbers), [turn.number for turn in turns]))

    monkeypatch.setattr(extract, "summarize_due_stretches", summarize_due_stretches)
    monkeypatch.setattr(summaries, "summarize_stretch", summarize)
    return told


def test_a_stretch_is_shown_with_the_turns_around_it(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8, E5: what a turn meant may be told before the stretch, or after it where that was said already."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(12)), workspace=workspace)
    read()
    assert told == [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7, 8]),
        ([6, 7, 8, 9, 10], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ]


@pytest.mark.parametrize(("turns", "tail"), [(7, [6, 7]), (4, [1, 2, 3, 4]), (3, None)])
def test_the_end_of_a_conversation_that_fell_quiet_is_summed_up(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch, turns: int, tail: list[int] | None
) -> None:
    """R8, E5: once, after a quarter of an hour without a turn, if there are four turns at all."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(turns - 1)), HIGH, workspace=workspace)
    read()
    before = len(told)
    Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
    read(after=timedelta(minutes=14))
    assert len(told) == before
    Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
    assert wake(after=timedelta(minutes=16)) == (tail is not None)
    read(after=timedelta(minutes=16))
    assert [numbers for numbers, _ in told[before:]] == ([tail] if tail else [])
    assert conversation().sum_due_at is None


def test_what_is_said_after_a_quiet_while_is_summed_up_by_itself(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: what was summed up as an end before is shown beside it."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(6)), HIGH, workspace=workspace)
    for minutes in (0, 16):
        Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
        read(after=timedelta(minutes=minutes))
    say("Boat 8.", "Boat 9.", HIGH, workspace=workspace, after=timedelta(hours=1))
    read(after=timedelta(hours=1))
    assert told[1:] == [([6, 7], [3, 4, 5, 6, 7]), ([8, 9, 10], [5, 6, 7, 8, 9, 10])]
