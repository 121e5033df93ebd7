"""Facts of a conversation do not wait for its summary, nor it for them (L2, L3)."""

from collections.abc import Sequence

import pytest

from memory.consolidation.clock import database_now
from memory.domain.conversation import SaidTurn
from memory.ingest.turns import extracting, summing_up
from memory.ingest.turns.summing_up import sum_up
from memory.llm.budget import DailyCapReached, MustWait, OutOfBudget
from memory.llm.model import CallFailed, FailureKind
from memory.models import Conversation, Episode, Workspace
from tests.ingest.reading import Reader, conversation, end_waits, facts_of, read, say, states, wake

pytestmark = pytest.mark.django_db


def summing(monkeypatch: pytest.MonkeyPatch, *stops: Exception | None) -> list[int]:
    """Let summaries fail as told, then succeed without words; return the list of the last turns that were tried."""
    tried: list[int] = []

    def summarize(*, turns: Sequence[SaidTurn], **_: object) -> None:
        tried.append(turns[-1].number)
        if len(tried) <= len(stops) and (stop := stops[len(tried) - 1]):
            raise stop

    monkeypatch.setattr(extracting, "sum_up", sum_up)
    monkeypatch.setattr(summing_up, "summarize_conversation", summarize)
    return tried


BROKEN = CallFailed("broken", kind=FailureKind.SERVER)


@pytest.mark.parametrize(
    "stop",
    [DailyCapReached("spent"), OutOfBudget("no time is left"), MustWait(seconds=60), BROKEN],
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
