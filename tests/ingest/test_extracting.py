"""Conversations are read once, whatever happens meanwhile, and what cannot be read waits to be seen (L2, L3)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from memory.consolidation.clock import database_now
from memory.consolidation.pausing import rest_workspace
from memory.domain.conversation import FactsFound, SaidTurn
from memory.ingest.turns import extracting, summing_up
from memory.ingest.turns.summing_up import sum_up
from memory.llm.budget import DailyCapReached, LeaseLost, MustWait, OutOfBudget
from memory.llm.model import CallFailed, FailureKind
from memory.models import Conversation, Episode, Pause, PauseReason, Turn, TurnEpisode, Workspace
from memory.signals import turns_due
from tests import factories
from tests.factories import NOW
from tests.ingest.reading import MINUTE, Reader, facts_of, read, say, wake

pytestmark = pytest.mark.django_db

HIGH = "Never moor at the east pier."


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader()
    monkeypatch.setattr(extracting, "ask_for_facts", reader)
    monkeypatch.setattr(extracting, "sum_up", lambda **_: None)
    return reader


def states() -> list[str]:
    return list(Turn.objects.order_by("number").values_list("state", flat=True))


def conversation() -> Conversation:
    found: Conversation = Conversation.objects.get()
    return found


def let_leases_run_out() -> None:
    Conversation.objects.exclude(leased_until=None).update(leased_until=database_now(plus=-1))


def end_waits() -> None:
    Conversation.objects.update(not_before=None)


def test_what_waits_is_read_and_settled(workspace: Workspace, reader: Reader) -> None:
    """L2, L3: facts become episodes of the session, and their turns say which."""
    say("The tide is low.", HIGH, workspace=workspace, user="mara", project="harbour")
    assert read(after=MINUTE) is True
    assert reader.asked == [["The tide is low.", HIGH]]
    assert states() == ["extracted", "extracted"]
    episodes = {episode.text: episode for episode in Episode.objects.all()}
    assert set(episodes) == {"Noted: The tide is low.", f"Noted: {HIGH}"}
    assert {(e.session, e.user, e.project.slug if e.project else "") for e in episodes.values()} == {
        ("s", "mara", "harbour")
    }
    told = TurnEpisode.objects.values_list("turn__content", "episode__text")
    assert set(told) == {("The tide is low.", "Noted: The tide is low."), (HIGH, f"Noted: {HIGH}")}
    found = conversation()
    assert (found.buffered, found.leased, found.extraction_count, found.extracted_at, found.claims) == (
        0, 0, 1, NOW + MINUTE, 0,
    )  # fmt: skip
    assert (found.lease_owner, found.leased_until, found.due_since) == ("", None, None)


def test_a_second_message_finds_nothing_to_do(workspace: Workspace, reader: Reader) -> None:
    """L2: whatever is sent twice is read once."""
    say(HIGH, workspace=workspace)
    assert [read(), read()] == [True, False]
    assert (len(reader.asked), Episode.objects.count()) == (1, 1)


def test_what_is_not_due_is_not_read(workspace: Workspace, reader: Reader) -> None:
    say("The tide is low.", workspace=workspace)
    assert (read(), reader.asked, states()) == (False, [], ["buffered"])


def test_turns_that_come_meanwhile_wait_for_the_next_reading(workspace: Workspace, reader: Reader) -> None:
    """L2: they are told of as soon as this one ends, if they are due."""
    heard: list[list[int]] = []

    def hear(conversation_ids: list[int], **_: object) -> None:
        heard.append(conversation_ids)

    def meanwhile(turns: Sequence[SaidTurn]) -> FactsFound:
        reader.does = None
        say("Never moor at the west pier.", workspace=workspace)
        assert len(heard) == 1
        return facts_of(turns)

    turns_due.connect(hear)
    say(HIGH, workspace=workspace)
    reader.does = meanwhile
    read()
    turns_due.disconnect(hear)
    assert (states(), len(heard)) == (["extracted", "buffered"], 2)
    assert read() is True
    assert reader.asked == [[HIGH], ["Never moor at the west pier."]]


def test_many_turns_are_read_in_batches(workspace: Workspace, reader: Reader) -> None:
    """L2: 20 at once, the next as long as enough wait; the rest waits for more."""
    say(*(f"Boat {n}." for n in range(43)), workspace=workspace)
    while read():
        pass
    assert [len(asked) for asked in reader.asked] == [20, 20]
    assert conversation().buffered == 3


def test_long_turns_are_read_in_smaller_batches(workspace: Workspace, reader: Reader) -> None:
    """L2: 64 KiB at once, or a single turn."""
    say(*(f"{n}{'x' * 30_000}" for n in range(5)), workspace=workspace)
    while read():
        pass
    assert [len(asked) for asked in reader.asked] == [2]
    assert (conversation().buffered, conversation().due_since) == (3, None)


def test_a_worker_that_died_leaves_its_turns_to_the_next(workspace: Workspace, reader: Reader) -> None:
    """L2: the same ones, so that the reply in the ledger is found; whatever came since waits."""
    say("The tide is low.", HIGH, workspace=workspace)

    def die(turns: Sequence[SaidTurn]) -> FactsFound:
        raise SystemExit

    reader.does = die
    with pytest.raises(SystemExit):
        read()
    Conversation.objects.update(lease_owner="of the dead", leased_until=database_now(plus=20))
    say("The wind is up.", workspace=workspace)
    reader.does = None
    assert (read(), wake()) == (False, 0)
    let_leases_run_out()
    assert (wake(), read()) == (1, True)
    assert reader.asked == [["The tide is low.", HIGH]] * 2
    assert states() == ["extracted", "extracted", "buffered"]


def test_who_was_overtaken_stores_nothing(workspace: Workspace, reader: Reader) -> None:
    """L2: facts and turns are stored in one transaction, which asks for the lease."""
    say(HIGH, workspace=workspace)

    def overtaken(turns: Sequence[SaidTurn]) -> FactsFound:
        Conversation.objects.update(lease_owner="another")
        return facts_of(turns)

    reader.does = overtaken
    assert read() is False
    assert (Episode.objects.count(), states(), conversation().lease_owner) == (0, ["leased"], "another")


def test_a_server_that_asks_to_wait_is_waited_for(workspace: Workspace, reader: Reader) -> None:
    """L2: by the database's clock, and nobody is blamed."""
    say(HIGH, workspace=workspace)

    def wait(turns: Sequence[SaidTurn]) -> FactsFound:
        raise MustWait(seconds=90)

    reader.does = wait
    assert read() is False
    reader.does = None
    found = conversation()
    assert (found.claims, found.leased, found.state_reason) == (0, 1, "a model server asked to wait")
    assert Conversation.objects.filter(
        not_before__gt=database_now(plus=80), not_before__lt=database_now(plus=100)
    ).exists()
    assert (wake(), read()) == (0, False)
    end_waits()
    assert (wake(), read()) == (1, True)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (DailyCapReached("the tokens of this day are spent"), "the tokens of this day are spent"),
        (OutOfBudget("no time is left"), "no time is left"),
        (LeaseLost(), ""),
    ],
    ids=["cap", "time", "lease"],
)
def test_what_stops_a_reading_leaves_its_turns_waiting(
    workspace: Workspace, reader: Reader, stop: Exception, reason: str
) -> None:
    """L2, B9: visible, with the reason."""
    say(HIGH, workspace=workspace)

    def refuse(turns: Sequence[SaidTurn]) -> FactsFound:
        raise stop

    reader.does = refuse
    assert read() is False
    assert (states(), conversation().state_reason, Episode.objects.count()) == (["leased"], reason, 0)
    reader.does = None
    end_waits()
    let_leases_run_out()
    assert (wake(), read()) == (1, True)


def test_a_refused_key_lets_the_workspace_rest(workspace: Workspace, reader: Reader) -> None:
    """B9: turns wait meanwhile, and are woken when it rests no more."""
    say(HIGH, workspace=workspace)
    reader.does = lambda turns: FactsFound(facts=(), unread=(1,), failure="auth: no such key")
    assert read() is False
    pause = Pause.objects.get()
    assert (pause.reason, pause.detail, conversation().claims) == ("auth", "auth: no such key", 0)
    reader.does = None
    assert (wake(), read()) == (0, False)
    pause.delete()
    assert (wake(), read()) == (1, True)


def test_turns_of_a_resting_workspace_wait(workspace: Workspace, reader: Reader) -> None:
    """B9: nothing is read, nothing lost."""
    rest_workspace(workspace_id=workspace.pk, reason=PauseReason.FAILURES, detail="cycles")
    say(HIGH, workspace=workspace)
    assert (read(), wake(), reader.asked, states()) == (False, 0, [], ["buffered"])
    Pause.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert (wake(), read()) == (1, True)


def test_turns_that_got_no_answer_wait_longer_each_time(workspace: Workspace, reader: Reader) -> None:
    """B11: those that did are settled; garbage is never read as nothing found."""
    say("The tide is low.", HIGH, workspace=workspace)
    reader.does = lambda turns: facts_of(turns, unread=[2])
    assert read() is False
    assert (states(), conversation().leased, conversation().claims) == (["extracted", "leased"], 1, 1)
    assert conversation().state_reason == Turn.objects.get(number=2).state_reason == "malformed: no JSON"
    first = Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait
    end_waits()
    assert read() is False
    second = Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait
    assert second > 1.9 * first > timedelta(minutes=3)


def test_poison_is_found_and_becomes_a_dead_letter(workspace: Workspace, reader: Reader) -> None:
    """B11: fewer and fewer turns are read together, until the one that kills is alone; all others are read."""
    say(*(f"Boat {n}." for n in range(8)), workspace=workspace)

    def die_of_five(turns: Sequence[SaidTurn]) -> FactsFound:
        if "Boat 5." in [turn.text for turn in turns]:
            raise RuntimeError("the reader broke")
        return facts_of(turns)

    reader.does = die_of_five
    for hour in range(40):
        try:
            read(after=hour * MINUTE)
        except RuntimeError:
            let_leases_run_out()
        wake(after=60 * MINUTE)
    assert states() == ["extracted"] * 5 + ["failed"] + ["extracted"] * 2
    dead = Turn.objects.get(state="failed")
    assert (dead.state_reason, dead.settled_at is not None) == ("cost too many workers", True)
    assert (Episode.objects.count(), conversation().buffered, conversation().leased) == (7, 0, 0)


def test_the_age_valve_is_kept_by_the_sweep(workspace: Workspace, reader: Reader) -> None:
    """L2: 15 minutes since the last extraction, wherever no further turn comes."""
    say("The tide is low.", workspace=workspace)
    assert (wake(after=14 * MINUTE), wake(after=15 * MINUTE)) == (0, 1)
    assert (conversation().due_reason, read(after=15 * MINUTE)) == ("time since the last extraction", True)
    say("The tide is high.", workspace=workspace, after=16 * MINUTE)
    assert (wake(after=29 * MINUTE), wake(after=30 * MINUTE)) == (0, 1)


def test_a_lost_message_is_sent_again(workspace: Workspace, reader: Reader) -> None:
    """L2: not at once, for queues may be long."""
    from memory.ingest.turns.waking import wake_conversations

    say(HIGH, workspace=workspace)
    assert wake_conversations(now=NOW) == 0
    Conversation.objects.update(sent_at=database_now(plus=-61))
    assert (wake_conversations(now=NOW), wake_conversations(now=NOW)) == (1, 0)


def test_what_is_said_is_read_and_summed_up_offline(workspace: Workspace) -> None:
    """L3, R8: by rules alone; and read again it adds nothing."""
    say(
        "I moved to Bergen in March.", "I work as a welder at the dock.", "We decided to sell the old boat.",
        "My sister keeps the key.", "I never eat shellfish.", workspace=workspace, user="mara",
    )  # fmt: skip
    assert read() is True
    assert set(states()) == {"extracted"}
    episodes = Episode.objects.count()
    assert Episode.objects.filter(is_derived=False, session="s", user="mara").count() >= 3
    summary = Episode.objects.get(is_derived=True)
    assert TurnEpisode.objects.filter(episode=summary).count() == 5
    Turn.objects.update(state="leased")
    Conversation.objects.update(leased=5)
    assert read() is True
    assert Episode.objects.count() == episodes


def test_a_dead_letter_is_read_again_when_a_person_asks(workspace: Workspace, reader: Reader) -> None:
    """B11: the command lists turns with their reasons, and has them read."""
    dead = factories.turn(workspace=workspace, session="s", state="failed", state_reason="malformed: no JSON")
    out = StringIO()
    call_command("dead_letters", "--workspace", workspace.name, "--turns", "--retry", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["retried"], told["dead_letters"][0]["reason"]) == (1, "malformed: no JSON")
    assert (conversation().due_reason, read(), states()) == ("a person asked for it", True, ["extracted"])
    assert reader.asked == [[dead.content]]


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


def test_turns_that_take_all_the_time_wait_longer_each_time(workspace: Workspace, reader: Reader) -> None:
    """L2, B11: a server that stalls is not asked every minute for ever; in the end a person is."""
    say(HIGH, workspace=workspace)

    def stall(turns: Sequence[SaidTurn]) -> FactsFound:
        raise OutOfBudget("the deadline is too near for another call")

    reader.does = stall
    waits = []
    for _ in range(5):
        read()
        waits.append(Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait)
        end_waits()
    assert waits[0] > timedelta(seconds=100)
    assert all(later > 1.9 * earlier for earlier, later in pairwise(waits))
    assert (read(), states()) == (False, ["failed"])


def test_a_worker_that_ends_blames_nobody(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L2: the next one reads on at once."""
    say(HIGH, workspace=workspace)

    def end(turns: Sequence[SaidTurn]) -> FactsFound:
        raise OutOfBudget("the deadline is too near for another call")

    reader.does = end
    monkeypatch.setattr(extracting, "is_ending", lambda: True)
    assert read() is False
    assert (conversation().claims, conversation().not_before) == (0, None)


def test_a_fact_that_is_refused_is_seen_at_its_turn(
    workspace: Workspace, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    """L3: counted in the log by reason; the others are stored."""
    say("The tide is low.", HIGH, workspace=workspace)

    def too_long(turns: Sequence[SaidTurn]) -> FactsFound:
        found = facts_of(turns)
        return replace(found, facts=(found.facts[0], replace(found.facts[1], text="x" * 40_000)))

    reader.does = too_long
    assert read() is True
    assert list(Turn.objects.order_by("number").values_list("state", "state_reason")) == [
        ("extracted", ""), ("extracted", Turn.objects.get(number=2).state_reason),
    ]  # fmt: skip
    assert Turn.objects.get(number=2).state_reason.startswith("a fact was refused: ")
    assert (Episode.objects.count(), "facts_refused" in caplog.text) == (1, True)


def test_turns_that_are_erased_while_they_are_read_leave_nothing(workspace: Workspace, reader: Reader) -> None:
    """B19: neither facts nor a failure."""
    say("The tide is low.", HIGH, workspace=workspace)

    def erased_meanwhile(turns: Sequence[SaidTurn]) -> FactsFound:
        Turn.objects.filter(content=HIGH).delete()
        return facts_of(turns)

    reader.does = erased_meanwhile
    assert (read(), Episode.objects.count(), states()) == (False, 0, ["leased"])
