"""What people say in a conversation is read as it is stored; what stops that is made up for by the next cycle (F5)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.consolidation.cycle import open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.leases import leased_stream
from memory.forgetting import forget_episode
from memory.ingest import read_turns
from memory.ledger.confidence import find_drift
from memory.llm.call_log import DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.replies import BeliefWord, Reading
from memory.llm.requests import ReadingRequest
from memory.llm.types import CallFailed, FailureKind
from memory.models import (
    Belief,
    Claim,
    Conversation,
    Cycle,
    Episode,
    EpisodeEmbedding,
    Evidence,
    ModelCall,
    Trigger,
    Workspace,
    WorkspacePause,
)
from tests.consolidation.inline import run_cycle, run_steps
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.arriving import take
from tests.ingest.reading import HIGH, MINUTE, Reader, conversation, kept, read, say, says, state_each, states, told

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)
BERGEN = "Mara lives in Bergen."


def test_what_is_said_is_believed_at_once(workspace: Workspace, reader: Reader) -> None:
    """F5: evidence is settled, and the rest waits in the pool, with its time, for the next cycle."""
    say("What a day.", "I live in Bergen.", HIGH, workspace=workspace, user="mara")
    reader.does = lambda _: Reading(new=[told(2, BERGEN, category="fact")])

    assert read(after=MINUTE)

    assert kept() == [("What a day.", "pooled", True), ("I live in Bergen.", "settled", True), (HIGH, "pooled", True)]
    belief = Belief.objects.get()
    assert (belief.statement, belief.user, belief.status) == (BERGEN, "mara", "active")
    assert Evidence.objects.get(belief=belief).episode.text == "I live in Bergen."
    assert set(Episode.objects.filter(state="pooled").values_list("pooled_at", flat=True)) == {NOW + MINUTE}
    call = ModelCall.objects.get()
    assert (call.purpose, call.conversation, call.cycle, call.episodes.count()) == ("read", conversation(), None, 3)
    assert find_drift(workspace=workspace)[1] == []


def test_what_was_read_is_not_read_again(workspace: Workspace, reader: Reader) -> None:
    """F5: neither by another message for the conversation nor by the next cycle."""
    say("I live in Bergen.", HIGH, workspace=workspace)
    read()

    assert read() is False
    run_cycle(workspace, NOW + DAY)

    assert reader.asked == [["I live in Bergen.", HIGH]]


def test_claims_tell_what_a_turn_is_like(workspace: Workspace, reader: Reader) -> None:
    """E1: the category of the first that lasts, all names, and the beliefs that are named as reasons."""
    say("I run on Tuesdays.", HIGH, workspace=workspace, user="mara")
    reader.does = lambda _: Reading(new=[told(1, "Mara runs on Tuesdays.")])
    read()
    say(
        "Ana and I eat nothing heavy on Tuesdays, tonight either.", HIGH + " Or west.", workspace=workspace, user="mara"
    )
    reader.does = lambda _: Reading(
        new=[
            told(1, "Mara and Ana eat light tonight.", kind="event", category="moment", entities=["Ana"]),
            told(
                1, "Mara eats nothing heavy on Tuesdays.", category="principle", entities=["Mara", "Ana"], because="1"
            ),
        ]
    )

    read()

    episode = Episode.objects.get(text__startswith="Ana and I")
    assert (episode.category, episode.entities) == ("principle", ["Ana", "Mara"])
    assert episode.causes == ["Mara runs on Tuesdays."]


def test_a_senders_own_words_on_an_episode_win(workspace: Workspace, reader: Reader) -> None:
    """E1: at every door; here a cycle reads what was posted."""
    take(
        {"text": "I live in Bergen.", "source": "human", "user": "mara", "category": "moment", "entities": ["Norway"]},
        {"text": "I drink tea.", "source": "human", "user": "mara"},
        workspace=workspace,
    )
    reader.does = lambda request: Reading(
        new=[told(n, m.text, category="fact", entities=["Bergen"]) for n, m in enumerate(request.read, start=1)]
    )

    run_cycle(workspace, NOW + DAY)

    told_of = Episode.objects.order_by("number").values_list("category", "entities")
    assert list(told_of) == [("moment", ["Norway"]), ("fact", ["Bergen"])]


def test_what_an_assistant_says_is_shown_and_not_read(workspace: Workspace, reader: Reader) -> None:
    """E2: it asserts nothing about its user, and waits as it is."""
    say("Shall I book a table?", workspace=workspace, user="mara", role="assistant")
    say("Yes. " + HIGH, workspace=workspace, user="mara")

    read()

    assert reader.asked == [["Yes. " + HIGH]]
    [request] = reader.requests
    assert [(message.role, message.is_read) for message in request.episodes] == [("assistant", False), ("user", True)]
    assert [(state, is_read) for _, state, is_read in kept()] == [("new", False), ("pooled", True)]


def test_later_turns_are_read_against_what_earlier_ones_founded(workspace: Workspace, reader: Reader) -> None:
    """F2: so that what has changed closes what was believed."""
    say("I live in Bergen.", HIGH, workspace=workspace, user="mara")
    reader.does = lambda _: Reading(new=[told(1, BERGEN)])
    read()
    say("I moved to Oslo.", HIGH + " Never.", workspace=workspace, user="mara", after=DAY)
    reader.does = lambda _: Reading(
        new=[told(1, "Mara lives in Oslo.", since=date(2026, 3, 2), replaces="1")],
        about=[says(1, "1", BeliefWord.ENDED, since=date(2026, 3, 2))],
    )

    read(after=DAY)

    assert [belief.statement for belief in reader.requests[1].beliefs] == [BERGEN]
    old, new = Belief.objects.order_by("created_at")
    assert (old.status, old.valid_until and old.valid_until.date()) != ("active", None)
    assert (new.statement, new.status) == ("Mara lives in Oslo.", "active")


def fails(kind: FailureKind) -> Callable[[ReadingRequest], Reading]:
    def fail(_: ReadingRequest) -> Reading:
        raise CallFailed("no such luck", kind=kind)

    return fail


@pytest.mark.parametrize(
    "stop",
    [
        DailyCapReached("the tokens of this day are spent"), OutOfBudget("no time is left"), RetryLater(seconds=90),
        LeaseLost(),
    ],
    ids=["cap", "time", "wait", "lease"],
)  # fmt: skip
def test_what_stops_a_reading_leaves_it_to_the_next_cycle(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch, stop: Exception
) -> None:
    """F5, B9: the turns are done with, since their words are stored; nobody is blamed."""

    def refuse(**_: Any) -> None:
        raise stop

    say("I live in Bergen.", HIGH, workspace=workspace)
    with monkeypatch.context() as patched:
        patched.setattr(read_turns, "run_requests", refuse)
        assert read()
    assert states() == ["extracted", "extracted"]
    assert kept() == [("I live in Bergen.", "new", False), (HIGH, "new", False)]
    assert (conversation().claims, conversation().not_before) == (0, None)

    reader.does = state_each
    run_cycle(workspace, NOW + DAY)

    assert kept() == [("I live in Bergen.", "settled", True), (HIGH, "settled", True)]


@pytest.mark.parametrize("kind", [FailureKind.MALFORMED, FailureKind.BAD_REQUEST])
def test_what_no_model_can_read_is_left_to_the_next_cycle(
    workspace: Workspace, reader: Reader, kind: FailureKind
) -> None:
    """F5: with the reason; the turns after it are read, and it is not asked about with each of them again."""
    say("I live in Bergen.", HIGH, workspace=workspace)
    reader.does = fails(kind)
    read()
    assert set(Episode.objects.values_list("state", "state_reason")) == {("new", f"reading: {kind}")}
    asked = len(reader.asked)

    reader.does = None
    say("The tide is low.", HIGH + " Or west.", workspace=workspace)
    read()
    assert reader.asked[asked:] == [["The tide is low.", HIGH + " Or west."]]

    run_cycle(workspace, NOW + DAY)
    assert {is_read for _, _, is_read in kept()} == {True}


def test_what_a_server_that_is_down_left_is_read_with_the_next_turns(workspace: Workspace, reader: Reader) -> None:
    """F5: in the order in which it was said."""
    say("I live in Bergen.", HIGH, workspace=workspace)
    reader.does = fails(FailureKind.SERVER)
    read()
    asked = len(reader.asked)
    reader.does = None
    say("The tide is low.", HIGH + " Or west.", workspace=workspace, after=MINUTE)

    read(after=MINUTE)

    assert reader.asked[asked:] == [["I live in Bergen.", HIGH, "The tide is low.", HIGH + " Or west."]]


def test_a_reader_that_breaks_loses_no_turn(workspace: Workspace, reader: Reader) -> None:
    """E6: its failure is seen on the episodes; the next cycle finds the one that is to blame."""
    say("The gate of the lab is on 99:99.", HIGH, workspace=workspace)

    def break_over_one(request: ReadingRequest) -> Reading:
        if any("99:99" in message.text for message in request.read):
            raise ValueError("invalid literal: '99:99'")
        return Reading()

    reader.does = break_over_one
    assert read()
    assert states() == ["extracted", "extracted"]
    assert {state for _, state, _ in kept()} == {"new"}

    run_cycle(workspace, NOW + DAY)

    assert Episode.objects.get(text=HIGH).read_at == NOW + DAY


def test_a_refused_key_lets_the_workspace_rest(workspace: Workspace, reader: Reader) -> None:
    """B9: what is said meanwhile is stored, and read when it rests no more."""
    say("I live in Bergen.", HIGH, workspace=workspace)
    reader.does = fails(FailureKind.AUTH)
    read()
    pause = WorkspacePause.objects.get()
    assert (pause.reason, pause.detail) == ("auth", "auth: no such luck")
    reader.does = None
    say("The tide is low.", HIGH + " Or west.", workspace=workspace)
    asked = len(reader.asked)
    assert (read(), len(reader.asked), set(states())) == (True, asked, {"extracted"})

    pause.delete()
    say("The tide is high.", HIGH + " Or north.", workspace=workspace)
    read()

    assert [len(messages) for messages in reader.asked[asked:]] == [6]


@pytest.mark.parametrize("where", ["workspace", "installation"])
def test_without_beliefs_nothing_is_read(workspace: Workspace, reader: Reader, settings: Settings, where: str) -> None:
    """B22: turns are episodes all the same."""
    if where == "installation":
        settings.ENGRAM_BELIEFS = False
    else:
        Workspace.objects.update(beliefs_enabled=False)
    say("I live in Bergen.", HIGH, workspace=workspace)

    assert read()

    assert (reader.asked, kept()) == ([], [("I live in Bergen.", "new", False), (HIGH, "new", False)])


def test_two_conversations_of_a_user_are_never_read_beside_each_other(workspace: Workspace, reader: Reader) -> None:
    """F2: the second finds the stream taken, and is left to who reads; another user's is read at once."""
    nested: list[str] = []

    def meanwhile(_: ReadingRequest) -> Reading:
        if not nested:
            nested.extend(["t", "u"])
            say(HIGH, workspace=workspace, user="mara", session="t")
            say(HIGH, workspace=workspace, user="toma", session="u")
            assert (read(session="t"), read(session="u")) == (True, True)
        return Reading()

    say("I live in Bergen.", HIGH, workspace=workspace, user="mara")
    reader.does = meanwhile
    read()

    read_at = dict(Episode.objects.order_by("number").values_list("session", "read_at"))
    assert read_at == {"s": NOW, "t": NOW, "u": NOW}
    assert reader.asked == [["I live in Bergen.", HIGH], [HIGH], [HIGH]]


def test_what_was_said_later_waits_for_turns_of_another_conversation_that_are_due(
    workspace: Workspace, reader: Reader
) -> None:
    """F2: messages of a person are read in the order in which they were said, whichever conversation comes first."""
    first, later = NOW - timedelta(days=2), NOW - timedelta(days=1)
    say("I live in Bergen, for good.", workspace=workspace, user="mara", session="old", occurred_at=first.isoformat())
    say(HIGH, workspace=workspace, user="mara", session="new", occurred_at=later.isoformat())
    Conversation.objects.filter(session="old").update(due_since=NOW)

    read(session="new")
    assert reader.asked == []

    read(session="old")
    assert reader.asked == [["I live in Bergen, for good.", HIGH]]


def test_who_reads_takes_along_what_comes_meanwhile_in_the_conversation(workspace: Workspace, reader: Reader) -> None:
    """F2: one after the other."""

    def meanwhile(_: ReadingRequest) -> Reading:
        reader.does = None
        say(HIGH + " Or west.", workspace=workspace, user="mara")
        assert read()
        return Reading()

    say(HIGH, workspace=workspace, user="mara")
    reader.does = meanwhile
    read()

    assert reader.asked == [[HIGH], [HIGH + " Or west."]]


def test_a_stream_that_somebody_reads_is_left_to_them(workspace: Workspace, reader: Reader) -> None:
    """F2: a cycle that reads this user's messages, say."""
    say(HIGH, workspace=workspace, user="mara")
    with leased_stream(workspace_id=workspace.pk, name="user mara") as is_ours:
        assert is_ours
        assert read()

    assert (reader.asked, kept()) == ([], [(HIGH, "new", False)])


def test_what_a_cycle_took_up_meanwhile_is_left_where_it_is(workspace: Workspace, reader: Reader) -> None:
    """F2: it is read once, and the cycle says where it goes."""
    opened: list[Cycle] = []

    def meanwhile(request: ReadingRequest) -> Reading:
        if not opened:
            cycle, _ = open_cycle(workspace_id=workspace.pk, now=NOW + MINUTE, trigger=Trigger.PERSON)
            opened.append(cycle)
            extract_episodes(cycle_id=cycle.pk, attempt=cycle.attempt)
        return state_each(request)

    say("I live in Bergen.", HIGH, workspace=workspace)
    reader.does = meanwhile
    read()
    assert {(state, is_read) for _, state, is_read in kept()} == {("leased", True)}

    run_steps(cycle=opened[0])

    assert {(state, is_read) for _, state, is_read in kept()} == {("settled", True)}
    assert (len(reader.asked), Belief.objects.count()) == (1, 2)


def test_what_is_forgotten_while_it_is_read_founds_nothing(workspace: Workspace, reader: Reader) -> None:
    """B19: nor do the messages beside it, whose reading was shown it; they are read without it."""
    say("I live in Bergen.", HIGH, workspace=workspace)

    def forgotten_meanwhile(request: ReadingRequest) -> Reading:
        reader.does = state_each
        forget_episode(episode=Episode.objects.get(text="I live in Bergen."), actor=LENA, now=NOW)
        return state_each(request)

    reader.does = forgotten_meanwhile
    read()
    assert (Belief.objects.count(), Claim.objects.count()) == (0, 0)

    run_cycle(workspace, NOW + DAY)

    assert reader.asked[1:] == [[HIGH]]
    assert [belief.statement for belief in Belief.objects.all()] == [HIGH]


def test_what_has_no_vector_yet_stays_new_until_a_cycle_embeds_it(workspace: Workspace, reader: Reader) -> None:
    """B8: it is read all the same, and only once."""
    say("I live in Bergen.", HIGH, workspace=workspace)

    def without_vectors(request: ReadingRequest) -> Reading:
        EpisodeEmbedding.objects.all().delete()
        return Reading(new=[told(1, BERGEN)])

    reader.does = without_vectors
    read()
    assert {(state, is_read) for _, state, is_read in kept()} == {("new", True)}

    run_cycle(workspace, NOW + DAY)

    assert kept() == [("I live in Bergen.", "settled", True), (HIGH, "pooled", True)]
    assert (len(reader.asked), EpisodeEmbedding.objects.count()) == (1, 2)


def test_long_turns_are_read_in_several_calls(workspace: Workspace, reader: Reader) -> None:
    """F1: 6,000 characters at a time, each seen with what came before it."""
    long = [f"{HIGH} {n} {'x' * 2_500}" for n in range(4)]
    say(*long, workspace=workspace)

    read()

    assert reader.asked == [long[:2], long[2:]]


def test_without_time_the_rest_is_left_to_the_next_cycle(
    workspace: Workspace, reader: Reader, settings: Settings
) -> None:
    """L3: one call may take 30 s, and a flush 45."""
    settings.POLICY = replace(settings.POLICY, extraction=replace(settings.POLICY.extraction, seconds=20.0))
    say(HIGH, workspace=workspace)

    assert read()

    assert (reader.asked, kept()) == ([], [(HIGH, "new", False)])
