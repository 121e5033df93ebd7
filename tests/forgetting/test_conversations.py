"""B19: what was said goes with what was read out of it, and nobody who reads it meanwhile brings it back."""

from datetime import timedelta

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.domain.taxonomy import ConversationTurn
from memory.erasure.erase import erase_memories, erase_user, erase_workspace
from memory.ingest import extract
from memory.ingest.turn_episodes import to_said_turn
from memory.models import Conversation, Episode, ModelCall, Turn, TurnEpisode, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.conftest import _no_dispatch, reader
from tests.ingest.reading import MINUTE, Reader, read, say

__all__ = ["_no_dispatch", "reader"]

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
HIGH = "Never moor at the east pier."


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def call_about(conversation: Conversation) -> ModelCall:
    """Store a call that quotes what was said."""
    return ModelCall.objects.create(
        workspace=conversation.workspace, conversation=conversation, purpose="read", model="m", input_hash="h",
        outcome="ok", reply=HIGH,
    )  # fmt: skip


def test_erasing_an_episode_erases_the_turn_that_it_is(workspace: Workspace, reader: Reader) -> None:
    """B19: the turn, the reply that quotes it, its words beside facts of before; other turns stay."""
    say("The tide is low.", HIGH, workspace=workspace)
    read()
    call = call_about(Conversation.objects.get())
    said, other = Episode.objects.get(text=HIGH), Episode.objects.get(text="The tide is low.")
    turn = Turn.objects.get(content=HIGH)
    TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=other)
    Episode.objects.filter(pk=other.pk).update(verbatim=f"The tide is low.\n{HIGH}")
    summary = factories.episode(workspace=workspace, text=f"They spoke of the pier: {HIGH}", is_derived=True)
    TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=summary)
    erase_memories(
        workspace=workspace, episodes=Episode.objects.filter(pk=said.pk), actor=LENA, now=NOW + timedelta(days=1)
    )
    call.refresh_from_db()
    assert [turn.content for turn in Turn.objects.all()] == ["The tide is low."]
    assert list(Episode.objects.values_list("text", "verbatim")) == [("The tide is low.", "")]
    assert (call.reply, call.input_hash) == ("", "")


def test_a_turn_is_linked_to_its_own_words(workspace: Workspace, reader: Reader) -> None:
    """B19, F5: what is erased takes the turn that said it, and no other."""
    say("Thanks, fine.", HIGH, "Ahoy!", workspace=workspace)
    read()
    links = TurnEpisode.objects.values_list("turn__number", "episode__text", "is_verbatim")
    assert set(links) == {(1, "Thanks, fine.", True), (2, HIGH, True), (3, "Ahoy!", True)}
    named = Episode.objects.filter(text=HIGH)
    erase_memories(workspace=workspace, episodes=named, actor=LENA, now=NOW)
    assert [turn.content for turn in Turn.objects.order_by("number")] == ["Thanks, fine.", "Ahoy!"]


def test_erasing_a_fact_of_before_erases_all_turns_that_told_it(workspace: Workspace, reader: Reader) -> None:
    """B19: a fact that was an episode of its own keeps its links."""
    told = [factories.turn(workspace=workspace, session="s", content=text) for text in ("Thanks, fine.", HIGH)]
    fact = factories.episode(workspace=workspace, text="Mara never moors at the east pier.", confidence=0.9)
    for turn in told:
        TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=fact)
    erase_memories(workspace=workspace, episodes=Episode.objects.filter(pk=fact.pk), actor=LENA, now=NOW)
    assert not Turn.objects.exists()


def test_a_turn_that_holds_erased_words_goes_with_the_episode_that_it_is(workspace: Workspace, reader: Reader) -> None:
    """B19: word for word; what uses the same words for something else is a memory of its own, and stays."""
    elsewhere = "The pier in the east is closed: moor at the west, and never at night."
    say(HIGH, f"As I said: {HIGH} The tide is low.", elsewhere, workspace=workspace)
    read()
    named = Episode.objects.filter(text=HIGH)
    assert erase_memories(workspace=workspace, episodes=named, actor=LENA, now=NOW).turns == 2
    assert [turn.content for turn in Turn.objects.all()] == [elsewhere]
    assert [episode.text for episode in Episode.objects.all()] == [elsewhere]


def test_turns_that_repeat_an_erased_one_go_with_it(workspace: Workspace, reader: Reader) -> None:
    """B19: before anybody reads them; what shares only some of its words stays."""
    say(HIGH, workspace=workspace)
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


def test_what_is_erased_while_it_is_stored_does_not_come_back(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B19: whoever holds the words in their hands finds the conversation gone, and stores nothing."""
    say(HIGH, workspace=workspace, user="mara")

    def erased_meanwhile(turn: Turn) -> ConversationTurn:
        erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW)
        return to_said_turn(turn)

    monkeypatch.setattr(extract, "to_said_turn", erased_meanwhile)
    assert read() is False
    assert (Episode.objects.count(), Turn.objects.count()) == (0, 0)
