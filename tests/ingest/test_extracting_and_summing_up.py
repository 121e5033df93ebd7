"""A conversation is summed up once it rests, and nothing that is said waits for that (R8)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import Settings

from memory.consolidation.cycle import database_now
from memory.domain.taxonomy import ConversationTurn
from memory.ingest import summaries
from memory.llm.call_log import DailyCapReached, OutOfBudget, RetryLater
from memory.llm.types import CallFailed, FailureKind
from memory.models import Conversation, Episode, Workspace
from tests.ingest.reading import HIGH, MINUTE, conversation, read, say, states, wake

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("reader")]
REST = 16 * MINUTE


@pytest.fixture
def stretches(settings: Settings) -> None:
    """Sum up five turns at a time at most."""
    settings.POLICY = replace(settings.POLICY, extraction=replace(settings.POLICY.extraction, summary_turns=5))


def read_all(*, after: timedelta = timedelta()) -> None:
    """Store all that waits."""
    while read(after=after):
        pass


def rest(*, after: timedelta = REST) -> int:
    """Let a conversation rest until a time; return how many conversations were woken."""
    Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
    woken = wake(after=after)
    read(after=after)
    return woken


def summing(monkeypatch: pytest.MonkeyPatch, *stops: Exception | None) -> list[int]:
    """Let summaries fail as told, then succeed without words; return the list of the last turns that were tried."""
    tried: list[int] = []

    def summarize(*, numbers: range, **_: object) -> None:
        tried.append(numbers[-1])
        if len(tried) <= len(stops) and (stop := stops[len(tried) - 1]):
            raise stop

    monkeypatch.setattr(summaries, "summarize_stretch", summarize)
    return tried


def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int]]]:
    """Let summaries succeed without words; return what was summed up of what was shown, by the numbers of turns."""
    told: list[tuple[list[int], list[int]]] = []

    def summarize(*, turns: list[ConversationTurn], numbers: range, **_: object) -> None:
        told.append((list(numbers), [turn.number for turn in turns]))

    monkeypatch.setattr(summaries, "summarize_stretch", summarize)
    return told


BROKEN = CallFailed("broken", kind=FailureKind.SERVER)


@pytest.mark.parametrize(
    "stop",
    [DailyCapReached("spent"), OutOfBudget("no time is left"), RetryLater(seconds=60), BROKEN],
    ids=["cap", "time", "wait", "broken"],
)
def test_a_summary_that_fails_is_tried_again_later(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, stop: Exception
) -> None:
    """R8: what was said is stored, whether or not anybody sums it up."""
    tried = summing(monkeypatch, stop)
    say(*(f"Boat {n}." for n in range(5)), workspace=workspace)
    assert (read(), set(states()), Episode.objects.count(), tried) == (True, {"extracted"}, 5, [])
    assert (rest(), tried) == (1, [5])
    assert (wake(after=REST), read(after=REST), tried) == (0, False, [5])
    assert (rest(), tried) == (1, [5, 5])
    found = conversation()
    assert (found.summed_up, found.sum_due_at, found.sum_tries) == (5, None, 0)


@pytest.mark.usefixtures("stretches")
def test_what_no_model_can_sum_up_is_let_be(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: nonsense is not asked for again; a server that fails is, for five times."""
    nonsense = CallFailed("no JSON", kind=FailureKind.MALFORMED)
    tried = summing(monkeypatch, nonsense, *[BROKEN] * 5)
    say(*(f"Boat {n}." for n in range(15)), workspace=workspace)
    read_all()
    for _ in range(7):
        rest()
    assert tried == [5, *[10] * 5, 15]


def test_a_conversation_that_rests_is_summed_up_in_one_call(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: not before, however many turns it has."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(17)), HIGH, workspace=workspace)
    read_all()
    rest(after=14 * MINUTE)
    assert told == []
    assert rest() == 1
    assert told == [(list(range(1, 19)), list(range(1, 19)))]
    assert (conversation().sum_due_at, rest(after=timedelta(hours=2)), len(told)) == (None, 0, 1)


@pytest.mark.usefixtures("stretches")
def test_a_long_conversation_is_summed_up_in_stretches_as_long_as_each_other(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: each is shown with the turns around it, which may tell what was meant."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(11)), HIGH, workspace=workspace)
    read_all()
    rest()
    assert told == [
        ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7]),
        ([5, 6, 7, 8], [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ([9, 10, 11, 12], [6, 7, 8, 9, 10, 11, 12]),
    ]


def test_a_conversation_of_few_turns_is_not_summed_up(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """R8: of fewer than four."""
    told = shown(monkeypatch)
    say("Boat 1.", "Boat 2.", HIGH, workspace=workspace)
    read()
    assert (rest(), told, conversation().sum_due_at) == (0, [], None)


def test_a_conversation_with_turns_that_wait_does_not_rest(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: they are stored first, and then it is looked again."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(5)), workspace=workspace)
    read()
    say("Boat 6.", workspace=workspace, after=MINUTE)
    Conversation.objects.update(sum_due_at=database_now(plus=-1))
    assert read(after=14 * MINUTE) is False
    assert (told, conversation().sum_due_at) == ([], None)
    rest(after=20 * MINUTE)
    assert rest(after=20 * MINUTE) == 1
    assert [numbers for numbers, _ in told] == [[1, 2, 3, 4, 5, 6]]


def test_what_is_said_after_a_rest_is_summed_up_by_itself(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: what was summed up before is shown beside it."""
    told = shown(monkeypatch)
    say(*(f"Boat {n}." for n in range(6)), HIGH, workspace=workspace)
    read_all()
    rest()
    say("Boat 8.", "Boat 9.", HIGH, workspace=workspace, after=timedelta(hours=1))
    read_all(after=timedelta(hours=1))
    rest(after=timedelta(hours=2))
    assert told[1:] == [([8, 9, 10], [5, 6, 7, 8, 9, 10])]
