"""L4: a turn that was erased is refused when it comes again; what an honest speaker says anew is not."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.erasure.erase import erase_memories, erase_user
from memory.ingest import buffer
from memory.ingest.buffer import BufferedTurn, TurnAnswer, buffer_raw_turns, lock_conversations
from memory.ingest.schemas import ERASED, IngestContext
from memory.models import Conversation, Episode, Erased, Turn, TurnEpisode, Workspace
from tests import factories
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import MINUTE, say

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db

PIER = "Never moor at the east pier."
AT = "2026-01-05T08:00:00Z"


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def erase_all_turns(workspace: Workspace) -> None:
    """Erase an episode that was read out of every turn there is, and so these."""
    episode = factories.episode(workspace=workspace)
    for turn in Turn.objects.all():
        TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=episode)
    done = erase_memories(
        workspace=workspace, episodes=Episode.objects.filter(pk=episode.pk), actor=LENA, now=NOW + MINUTE
    )
    assert (done.turns > 0, Turn.objects.exists()) == (True, False)


def refused(answers: Sequence[TurnAnswer]) -> list[bool]:
    return [answer == ERASED for answer in answers]


def test_a_replay_of_an_erased_turn_is_refused(workspace: Workspace) -> None:
    """L4: by its id, whatever it says; the others of the batch go in."""
    say(PIER, workspace=workspace, turn_id="m-1")
    erase_all_turns(workspace)
    lines = [
        {"session": "s", "role": "user", "content": content, "turn_id": turn_id}
        for turn_id, content in (("m-1", PIER), ("m-1", "Other words."), ("m-2", PIER))
    ]
    answers = buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=workspace, now=NOW + MINUTE))
    assert refused(answers) == [True, True, False]
    assert list(Turn.objects.values_list("turn_id", flat=True)) == ["m-2"]


def test_of_an_erased_conversation_not_even_the_session_comes_back(workspace: Workspace) -> None:
    """L4: nothing is stored, and nobody is told."""
    say(PIER, "The tide is low.", workspace=workspace, user="mara", occurred_at=AT)
    erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW)
    assert refused(say(PIER, "The tide is low.", workspace=workspace, user="mara", occurred_at=AT)) == [True, True]
    assert not Conversation.objects.exists()


def test_a_users_turns_are_refused_read_or_not(workspace: Workspace) -> None:
    """L4, B19: all of them are counted and none comes back; those of another user are taken."""
    say(PIER, workspace=workspace, user="mara", turn_id="m-1")
    assert erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW).turns == 1
    assert refused(say(PIER, workspace=workspace, user="mara", turn_id="m-1")) == [True]
    assert refused(say(PIER, workspace=workspace, user="toma", turn_id="m-1")) == [False]


@pytest.mark.parametrize(
    ("first", "again", "is_refused"),
    [
        ({"turn_id": "m-1"}, {"turn_id": "m-2"}, False),
        ({"turn_id": "m-1", "occurred_at": AT}, {"turn_id": "m-2", "occurred_at": AT}, True),
        ({"occurred_at": AT}, {"occurred_at": AT}, True),
        ({"occurred_at": AT}, {"occurred_at": "2026-01-05T09:00:00+01:00"}, True),
        ({"occurred_at": AT}, {"occurred_at": "2026-01-05T08:00:01Z"}, False),
        ({"occurred_at": AT}, {}, False),
        ({}, {}, True),
        ({}, {"role": "assistant"}, False),
        ({}, {"session": "t"}, False),
        ({}, {"project": "harbour"}, False),
        ({"turn_id": "m-1"}, {"turn_id": "m-1", "project": "harbour"}, True),
        ({"turn_id": "m-1", "project": "harbour"}, {"turn_id": "m-1"}, True),
        ({"occurred_at": AT}, {"occurred_at": AT, "project": "harbour"}, True),
        ({"project": "harbour"}, {"project": "harbour"}, True),
    ],
)
def test_what_counts_as_the_same_turn(
    workspace: Workspace, first: dict[str, Any], again: dict[str, Any], is_refused: bool
) -> None:
    """L4: the same id, or words and time, in whatever project; or, of who sends neither, the same words."""
    say(PIER, workspace=workspace, **first)
    erase_all_turns(workspace)
    assert refused(say(PIER, workspace=workspace, after=MINUTE, **again)) == [is_refused]


def test_an_honest_yes_is_not_refused_for_an_erased_one(workspace: Workspace) -> None:
    """L4: without id and time too few words tell nothing; at the same time it is the same yes."""
    say("Yes.", workspace=workspace)
    say("Yes.", workspace=workspace, session="t", occurred_at=AT)
    erase_all_turns(workspace)
    assert refused(say("Yes.", workspace=workspace, after=MINUTE)) == [False]
    assert refused(say("Yes.", workspace=workspace, session="t", occurred_at=AT)) == [True]


def test_the_same_words_in_other_dress_are_refused(workspace: Workspace) -> None:
    """L4: case, white space and the mark at the end do not make other words."""
    say(PIER, workspace=workspace, occurred_at=AT)
    erase_all_turns(workspace)
    assert refused(say("never moor  at the east pier", workspace=workspace, occurred_at=AT)) == [True]


def test_an_unread_turn_that_repeats_an_erased_memory_is_refused_too(workspace: Workspace) -> None:
    """L4: whatever turns go, they stay gone."""
    say(PIER, "As I said: never moor at that east pier!", workspace=workspace)
    episode = factories.episode(workspace=workspace, text=PIER)
    TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.get(number=1), episode=episode)
    erase_memories(workspace=workspace, episodes=Episode.objects.all(), actor=LENA, now=NOW)
    assert refused(say("As I said: never moor at that east pier!", workspace=workspace)) == [True]


def test_nothing_that_could_be_read_is_kept(workspace: Workspace) -> None:
    """L4: digests, and as many as there are ways to tell the turn."""
    say(PIER, workspace=workspace, turn_id="m-1", occurred_at=AT)
    erase_all_turns(workspace)
    assert {len(row.digest) for row in Erased.objects.all()} == {64}
    assert Erased.objects.count() == 3  # the episode, the turn's id, its words at their time


def test_looking_costs_one_statement_a_batch(workspace: Workspace, django_assert_num_queries: Any) -> None:
    """L4: and none where nothing was erased."""
    say("One boat.", workspace=workspace, turn_id="m-0")
    with django_assert_num_queries(6):
        say("Two boats.", "Three boats.", workspace=workspace, turn_id="m-1")
    say(PIER, workspace=workspace, session="t", turn_id="m-2")
    erase_user(workspace=workspace, user="nobody", actor=LENA, now=NOW)
    with django_assert_num_queries(7):
        say("Four boats.", "Five boats.", workspace=workspace, turn_id="m-3")


def test_a_replay_that_waits_for_the_first_erasure_is_refused(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L4: there was no key when it began to wait for the conversation, and there is one when it may go on."""
    say(PIER, "The tide is low.", workspace=workspace, occurred_at=AT)
    episode = factories.episode(workspace=workspace)
    TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.get(number=1), episode=episode)
    erase_memories(workspace=workspace, episodes=Episode.objects.filter(pk=episode.pk), actor=LENA, now=NOW)
    really_hold, stale = lock_conversations, [False, True]

    def hold_as_it_was(**given: Any) -> Any:
        held = really_hold(**given)
        return {place: one._replace(erasure_key=None) for place, one in held.items()} if stale.pop() else held

    monkeypatch.setattr(buffer, "lock_conversations", hold_as_it_was)
    assert refused(say(PIER, workspace=workspace, occurred_at=AT)) == [True]
    assert (Turn.objects.count(), stale) == (1, [])


def test_a_turn_that_is_known_is_answered_as_known(workspace: Workspace) -> None:
    """L2: others of its conversation having been erased."""
    say(PIER, workspace=workspace, turn_id="m-1")
    erase_all_turns(workspace)
    for _ in range(2):
        [answer] = say("The tide is low.", workspace=workspace, turn_id="m-2")
    assert isinstance(answer, BufferedTurn)
    assert answer.is_duplicate
