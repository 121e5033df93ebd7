"""B19: what was said goes with what was read out of it, and nobody who reads it meanwhile brings it back."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from memory.domain.actor import Actor, ActorKind
from memory.domain.category import Category
from memory.domain.conversation import Fact, FactsFound, SaidTurn
from memory.forgetting.erase import erase_memories, erase_user, erase_workspace
from memory.ingest.turns import extracting
from memory.models import Conversation, Episode, ModelCall, Turn, TurnEpisode, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import MINUTE, Reader, facts_of, read, say

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
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


def call_about(conversation: Conversation) -> ModelCall:
    """Store a call that quotes what was said."""
    return ModelCall.objects.create(
        workspace=conversation.workspace, conversation=conversation, purpose="facts", model="m", input_hash="h",
        outcome="ok", reply=HIGH,
    )  # fmt: skip


def test_erasing_a_fact_erases_the_words_that_it_was_read_from(workspace: Workspace, reader: Reader) -> None:
    """B19: the turn, the reply that quotes it, its words beside other facts; other turns stay."""
    say("The tide is low.", HIGH, workspace=workspace)
    read()
    call = call_about(Conversation.objects.get())
    fact, other = Episode.objects.get(text=f"Noted: {HIGH}"), Episode.objects.get(text="Noted: The tide is low.")
    turn = Turn.objects.get(content=HIGH)
    TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=other)
    Episode.objects.filter(pk=other.pk).update(verbatim=f"The tide is low.\n{HIGH}")
    summary = factories.episode(workspace=workspace, text=f"They spoke of the pier: {HIGH}", is_derived=True)
    TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=summary)
    erase_memories(
        workspace=workspace, episodes=Episode.objects.filter(pk=fact.pk), actor=LENA, now=NOW + timedelta(days=1)
    )
    call.refresh_from_db()
    assert [turn.content for turn in Turn.objects.all()] == ["The tide is low."]
    assert list(Episode.objects.values_list("text", "verbatim")) == [("Noted: The tide is low.", "")]
    assert (call.reply, call.input_hash) == ("", "")


def test_erasing_a_fact_erases_the_turn_that_has_its_words_whatever_was_quoted(
    workspace: Workspace, reader: Reader
) -> None:
    """B19, L3: a reader quotes turn 1 for what stands in turn 2; both go."""
    say("Thanks, fine.", HIGH, "The tide is low.", workspace=workspace)
    fact = Fact(text=HIGH, category=Category.FACT, confidence=0.9, turns=(1,))
    reader.does = lambda turns: FactsFound(facts=(fact,), call_ids=())
    read()
    assert set(TurnEpisode.objects.values_list("turn__number", flat=True)) == {1, 2}
    erase_memories(workspace=workspace, episodes=Episode.objects.all(), actor=LENA, now=NOW)
    assert [turn.content for turn in Turn.objects.all()] == ["The tide is low."]


def test_turns_that_repeat_an_erased_fact_go_with_it(workspace: Workspace, reader: Reader) -> None:
    """B19: whether they were read with it or not; what shares only some of its words stays."""
    say(HIGH, workspace=workspace)
    reader.does = lambda turns: FactsFound(
        facts=(Fact(text=HIGH, category=Category.FACT, confidence=0.9, turns=(1,)),), call_ids=()
    )
    read()
    say("As I said: never moor at that east pier!", "The east pier is closed.", workspace=workspace, after=MINUTE)
    erase_memories(workspace=workspace, episodes=Episode.objects.all(), actor=LENA, now=NOW)
    assert [turn.content for turn in Turn.objects.all()] == ["The east pier is closed."]
    assert Conversation.objects.get().buffered == 1


def test_a_conversation_without_turns_goes(workspace: Workspace, reader: Reader) -> None:
    """B19: with the name of its session."""
    say(HIGH, workspace=workspace)
    read()
    erase_memories(workspace=workspace, episodes=Episode.objects.all(), actor=LENA, now=NOW)
    assert (Conversation.objects.count(), Turn.objects.count(), TurnEpisode.objects.count()) == (0, 0, 0)


def test_a_users_conversations_go_read_or_not(workspace: Workspace, reader: Reader) -> None:
    """B19: what waits, what failed and what was read; others' stay."""
    for state in ("buffered", "failed", "extracted"):
        factories.turn(workspace=workspace, user="mara", state=state)
    kept = factories.turn(workspace=workspace, user="toma")
    call = call_about(Conversation.objects.filter(user="mara")[0])
    erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW)
    call.refresh_from_db()
    assert (list(Turn.objects.all()), list(Conversation.objects.all())) == ([kept], [kept.conversation])
    assert (call.reply, call.conversation) == ("", None)


def test_a_workspace_loses_its_conversations(workspace: Workspace) -> None:
    """B19: all of them."""
    factories.turn(workspace=workspace)
    kept = factories.turn(workspace=factories.workspace())
    erase_workspace(workspace=workspace, actor=LENA)
    assert list(Turn.objects.all()) == [kept]


def test_what_is_erased_while_it_is_read_does_not_come_back(workspace: Workspace, reader: Reader) -> None:
    """B19: whoever holds the words in their hands finds the conversation gone, and stores nothing."""
    say(HIGH, workspace=workspace, user="mara")

    def erased_meanwhile(turns: Sequence[SaidTurn]) -> FactsFound:
        erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW)
        return facts_of(turns)

    reader.does = erased_meanwhile
    assert read() is False
    assert (Episode.objects.count(), Turn.objects.count()) == (0, 0)
