"""Conversations are stored once, whatever happens meanwhile, and all that was said in them (L2, F5)."""

from collections.abc import Callable

import pytest

from memory.consolidation.cycle import database_now
from memory.domain.taxonomy import ConversationTurn
from memory.ingest import extract
from memory.ingest.scheduling import wake_conversations
from memory.ingest.turn_episodes import to_said_turn
from memory.models import Belief, Conversation, Episode, Turn, TurnEpisode, Workspace
from memory.signals import turns_due
from tests.factories import NOW
from tests.ingest.reading import HIGH, MINUTE, Reader, conversation, let_leases_run_out, read, say, states, wake

pytestmark = pytest.mark.django_db

WEST = "Never moor at the west pier."


@pytest.fixture
def while_storing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something else happen, once, after turns were taken and before they are stored."""

    def plan(happen: Callable[[], object]) -> None:
        def take_after(turn: Turn) -> ConversationTurn:
            monkeypatch.setattr(extract, "to_said_turn", to_said_turn)
            happen()
            return to_said_turn(turn)

        monkeypatch.setattr(extract, "to_said_turn", take_after)

    return plan


Plan = Callable[[Callable[[], object]], None]


def test_what_waits_is_stored_and_settled(workspace: Workspace, reader: Reader) -> None:
    """L2, F5: each turn becomes an episode of the session, and says which."""
    say("The tide is low.", HIGH, workspace=workspace, user="mara", project="harbour")
    say("Noted.", workspace=workspace, user="mara", project="harbour", role="assistant")
    assert read(after=MINUTE) is True
    assert states() == ["extracted"] * 3
    episodes = {episode.text: episode for episode in Episode.objects.all()}
    assert set(episodes) == {"The tide is low.", HIGH, "Noted."}
    assert {(e.session, e.user, e.project.slug if e.project else "") for e in episodes.values()} == {
        ("s", "mara", "harbour")
    }
    links = TurnEpisode.objects.values_list("turn__content", "episode__text", "is_verbatim")
    assert set(links) == {(text, text, True) for text in episodes}
    found = conversation()
    assert (found.buffered, found.leased, found.extraction_count, found.extracted_at, found.claims) == (
        0, 0, 1, NOW + MINUTE, 0,
    )  # fmt: skip
    assert (found.lease_owner, found.leased_until, found.due_since) == ("", None, None)


def test_a_second_message_finds_nothing_to_do(workspace: Workspace, reader: Reader) -> None:
    """L2: whatever is sent twice is stored and read once."""
    say(HIGH, workspace=workspace)
    assert [read(), read()] == [True, False]
    assert (len(reader.asked), Episode.objects.count()) == (1, 1)


def test_what_is_not_due_is_not_stored(workspace: Workspace, reader: Reader) -> None:
    say("The tide is low.", workspace=workspace)
    assert (read(), reader.asked, states()) == (False, [], ["buffered"])


def test_turns_that_come_meanwhile_wait_for_the_next_time(
    workspace: Workspace, reader: Reader, while_storing: Plan
) -> None:
    """L2: they are told of as soon as this one ends, if they are due."""
    heard: list[list[int]] = []

    def hear(conversation_ids: list[int], **_: object) -> None:
        heard.append(conversation_ids)

    turns_due.connect(hear)
    say(HIGH, workspace=workspace)
    while_storing(lambda: say(WEST, workspace=workspace))
    read()
    turns_due.disconnect(hear)
    assert (states(), len(heard)) == (["extracted", "buffered"], 2)
    assert read() is True
    assert reader.asked == [[HIGH], [WEST]]


def test_many_turns_are_stored_in_batches(workspace: Workspace, reader: Reader) -> None:
    """L2: 20 at once, the next as long as enough wait; the rest waits for more."""
    say(*(f"Boat {n}." for n in range(43)), workspace=workspace)
    while read():
        pass
    assert [len(asked) for asked in reader.asked] == [20, 20]
    assert (conversation().buffered, Episode.objects.count()) == (3, 40)


def test_long_turns_are_stored_in_smaller_batches(workspace: Workspace, reader: Reader) -> None:
    """L2: 64 KiB at once, or a single turn."""
    say(*(f"{n}{'x' * 30_000}" for n in range(5)), workspace=workspace)
    while read():
        pass
    assert (Episode.objects.count(), conversation().buffered, conversation().due_since) == (2, 3, None)


def test_a_worker_that_died_leaves_its_turns_to_the_next(
    workspace: Workspace, reader: Reader, while_storing: Plan
) -> None:
    """L2: the same ones; whatever came since waits."""
    say("The tide is low.", HIGH, workspace=workspace)

    def die() -> None:
        raise SystemExit

    while_storing(die)
    with pytest.raises(SystemExit):
        read()
    Conversation.objects.update(lease_owner="of the dead", leased_until=database_now(plus=20))
    say("The wind is up.", workspace=workspace)
    assert (read(), wake()) == (False, 0)
    let_leases_run_out()
    assert (wake(), read()) == (1, True)
    assert (states(), reader.asked) == (["extracted", "extracted", "buffered"], [["The tide is low.", HIGH]])


def test_who_was_overtaken_stores_nothing(workspace: Workspace, reader: Reader, while_storing: Plan) -> None:
    """L2: episodes and turns are stored in one transaction, which asks for the lease."""
    say(HIGH, workspace=workspace)
    while_storing(lambda: Conversation.objects.update(lease_owner="another"))
    assert read() is False
    assert (Episode.objects.count(), states(), conversation().lease_owner) == (0, ["leased"], "another")


def test_turns_that_are_erased_while_they_are_stored_leave_nothing(
    workspace: Workspace, reader: Reader, while_storing: Plan
) -> None:
    """B19: neither episodes nor a failure."""
    say("The tide is low.", HIGH, workspace=workspace)
    while_storing(lambda: Turn.objects.filter(content=HIGH).delete())
    assert (read(), Episode.objects.count(), states()) == (False, 0, ["leased"])


def test_the_age_valve_is_kept_by_the_sweep(workspace: Workspace, reader: Reader) -> None:
    """L2: 15 minutes since the last extraction, wherever no further turn comes."""
    say("The tide is low.", workspace=workspace)
    assert (wake(after=14 * MINUTE), wake(after=15 * MINUTE)) == (0, 1)
    assert (conversation().due_reason, read(after=15 * MINUTE)) == ("time since the last extraction", True)
    say("The tide is high.", workspace=workspace, after=16 * MINUTE)
    assert (wake(after=29 * MINUTE), wake(after=30 * MINUTE)) == (0, 1)


def test_a_lost_message_is_sent_again(workspace: Workspace) -> None:
    """L2: not at once, for queues may be long."""
    say(HIGH, workspace=workspace)
    assert wake_conversations(now=NOW) == 0
    Conversation.objects.update(sent_at=database_now(plus=-61))
    assert (wake_conversations(now=NOW), wake_conversations(now=NOW)) == (1, 0)


def test_what_is_said_is_read_and_summed_up_offline(workspace: Workspace) -> None:
    """F5, R8: by the reader that ships; and taken again it adds nothing."""
    say(
        "I moved to Bergen in March.", "I work as a welder at the dock.", "We decided to sell the old boat.",
        "My sister keeps the key.", "I never eat shellfish.", workspace=workspace, user="mara",
    )  # fmt: skip
    assert read() is True
    assert set(states()) == {"extracted"}
    assert Episode.objects.filter(is_derived=False, session="s", user="mara").count() == 5
    beliefs = Belief.objects.count()
    assert beliefs >= 2
    Conversation.objects.update(sum_due_at=database_now(plus=-1))
    assert read(after=16 * MINUTE) is False
    summary = Episode.objects.get(is_derived=True)
    assert TurnEpisode.objects.filter(episode=summary).count() == 5
    Turn.objects.update(state="leased")
    Conversation.objects.update(leased=5)
    assert read(after=16 * MINUTE) is True
    assert (Episode.objects.count(), Belief.objects.count()) == (6, beliefs)
