"""Which messages share a reading, in what order, and what is shown beside them (F1, F2)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.models import Episode, Evidence, Workspace
from memory.reading.messages import build_request, plan_batches, select_unread
from tests import factories

pytestmark = pytest.mark.django_db
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
Decree = Callable[..., None]


def say(workspace: Workspace, text: str, *, minutes: int = 0, **given: Any) -> Episode:
    at = factories.NOW + minutes * MINUTE
    fields = {"source": "human", "user": "ines", "session": "s", "occurred_at": at, "created_at": at}
    return factories.episode(workspace=workspace, text=text, **fields | given)


def batches(workspace: Workspace) -> list[list[str]]:
    planned = plan_batches(episodes=select_unread(episodes=Episode.objects.for_workspace(workspace.pk)))
    return [[row.text for row in batch.messages] for batch in planned]


def test_messages_are_read_in_the_order_in_which_they_were_said() -> None:
    workspace = factories.workspace()
    say(workspace, "second", minutes=2)
    say(workspace, "first", minutes=1)

    assert batches(workspace) == [["first", "second"]]


def test_people_have_streams_of_their_own_and_so_have_projects_without_a_user() -> None:
    workspace = factories.workspace()
    project = factories.project(workspace=workspace)
    say(workspace, "mine")
    say(workspace, "his", user="otto")
    say(workspace, "nobody's", user="")
    say(workspace, "the project's", user="", project=project)

    assert sorted(batches(workspace)) == [["his"], ["mine"], ["nobody's"], ["the project's"]]


def test_a_batch_holds_messages_of_one_project() -> None:
    workspace = factories.workspace()
    project = factories.project(workspace=workspace)
    say(workspace, "at home", minutes=1)
    say(workspace, "at work", minutes=2, project=project)
    say(workspace, "at home again", minutes=3)

    assert batches(workspace) == [["at home"], ["at work"], ["at home again"]]


def test_a_conversation_stays_together_where_it_fits(decree: Decree) -> None:
    decree("reading", messages=3)
    workspace = factories.workspace()
    for number in range(2):
        say(workspace, f"a{number}", minutes=number, session="a")
    for number in range(2):
        say(workspace, f"b{number}", minutes=10 + number, session="b")

    assert batches(workspace) == [["a0", "a1"], ["b0", "b1"]]


def test_a_long_conversation_is_cut(decree: Decree) -> None:
    decree("reading", messages=2)
    workspace = factories.workspace()
    for number in range(5):
        say(workspace, f"a{number}", minutes=number)

    assert batches(workspace) == [["a0", "a1"], ["a2", "a3"], ["a4"]]


def test_a_batch_has_so_many_characters_at_most(decree: Decree) -> None:
    decree("reading", characters=100)
    workspace = factories.workspace()
    say(workspace, "a" * 60, minutes=1)
    say(workspace, "b" * 60, minutes=2)

    assert [len(batch) for batch in batches(workspace)] == [1, 1]


@pytest.mark.parametrize(
    "given", [{"source": "ai"}, {"source": "ingest"}, {"is_derived": True}, {"status": "forgotten"}]
)
def test_only_what_people_say_is_read(given: dict[str, Any]) -> None:
    """F4, E2: what nobody told is held against beliefs in clusters."""
    workspace = factories.workspace()
    say(workspace, "not read", **given)

    assert batches(workspace) == []


def test_what_was_said_before_and_between_is_shown_beside_the_messages() -> None:
    workspace = factories.workspace()
    said = [
        say(workspace, "Which day suits you?", minutes=1, source="ai"),
        say(workspace, "Tuesday.", minutes=2),
        say(workspace, "And the time?", minutes=3, source="ai"),
        say(workspace, "Nine.", minutes=4),
        say(workspace, "Noted.", minutes=5, source="ai"),
    ]

    request = build_request(messages=[said[1], said[3]], now=factories.NOW + DAY)

    assert request is not None
    shown = [(message.text, message.is_read, message.role) for message in request.episodes]
    assert shown == [
        ("Which day suits you?", False, "assistant"),
        ("Tuesday.", True, "user"),
        ("And the time?", False, "assistant"),
        ("Nine.", True, "user"),
    ]


def test_a_speaker_is_told_of_by_name_and_nobody_in_particular_is_the_user() -> None:
    workspace = factories.workspace()

    named = build_request(messages=[say(workspace, "I sing.", user="mara")], now=factories.NOW)
    unnamed = build_request(messages=[say(workspace, "I sing.", user="u-17")], now=factories.NOW)

    assert named is not None
    assert unnamed is not None
    assert (named.person, unnamed.person) == ("Mara", "The user")


@pytest.mark.parametrize(
    ("user", "speakers", "person", "names"),
    [
        ("mara", ["Mara Lindt", "Mara"], "Mara Lindt", ("Mara",)),
        ("mara", ["Ben", "Mara"], "Mara", ()),
        ("mara", ["Ben"], "Mara", ()),
        ("u-17", ["Ben", "Carla"], "The user", ()),
        ("u-17", ["Ben"], "Ben", ()),
    ],
)
def test_other_speakers_are_no_other_names_of_the_person(
    user: str, speakers: list[str], person: str, names: tuple[str, ...]
) -> None:
    workspace = factories.workspace()
    said = [
        say(workspace, f"I sing in choir {number}.", minutes=number, user=user, speaker=speaker)
        for number, speaker in enumerate(speakers, start=1)
    ]

    request = build_request(messages=said, now=factories.NOW + DAY)

    assert request is not None
    assert (request.person, request.names) == (person, names)
    assert [message.speaker for message in request.episodes] == speakers


def test_two_conversations_that_take_turns_show_each_message_once() -> None:
    workspace = factories.workspace()
    said = [
        say(workspace, f"I sing in choir {number}.", minutes=number, session=session)
        for number, session in enumerate(["one", "other", "one"], start=1)
    ]

    request = build_request(messages=said, now=factories.NOW + DAY)

    assert request is not None
    assert [message.id for message in request.episodes] == [row.pk for row in said]


def test_a_message_of_nothing_but_our_own_words_is_not_asked_about() -> None:
    workspace = factories.workspace()
    echo = say(workspace, "[Memory flash: I live in Graz.]")

    assert build_request(messages=[echo], now=factories.NOW) is None


def believe(workspace: Workspace, statement: str, **given: Any) -> str:
    belief = factories.belief(workspace=workspace, statement=statement, **{"user": "ines"} | given)
    return belief.statement


def shown_to(message: Episode) -> list[str]:
    request = build_request(messages=[message], now=factories.NOW + DAY)
    assert request is not None
    return [belief.statement for belief in request.beliefs]


def test_a_reading_sees_the_persons_beliefs_and_nobodys() -> None:
    workspace = factories.workspace()
    mine = believe(workspace, "Ines lives in Graz.")
    nobodys = believe(workspace, "The office is in Wien.", user="")
    believe(workspace, "Otto lives in Linz.", user="otto")

    assert sorted(shown_to(say(workspace, "Hello."))) == sorted([mine, nobodys])


def test_a_reading_of_a_project_sees_its_beliefs_and_global_ones() -> None:
    workspace = factories.workspace()
    here, elsewhere = factories.project(workspace=workspace), factories.project(workspace=workspace, slug="other")
    own = believe(workspace, "Deploys go out on Tuesdays.", project=here, scope="project")
    everywhere = believe(workspace, "Ines lives in Graz.")
    believe(workspace, "Deploys go out on Fridays.", project=elsewhere, scope="project")

    assert sorted(shown_to(say(workspace, "Hello.", project=here))) == sorted([own, everywhere])


def test_what_ended_lately_is_shown_and_what_ended_long_ago_is_not() -> None:
    workspace = factories.workspace()
    ended = {"status": "invalidated", "status_reason": "changed"}
    lately = believe(workspace, "Ines lives in Graz.", valid_until=factories.NOW - 10 * DAY, **ended)
    believe(workspace, "Ines lives in Linz.", valid_until=factories.NOW - 200 * DAY, **ended)

    assert shown_to(say(workspace, "Hello.")) == [lately]


def test_of_many_beliefs_those_nearest_to_the_words_are_shown(decree: Decree) -> None:
    decree("reading", all_beliefs=5, nearest_beliefs=2)
    workspace = factories.workspace()
    for number in range(8):
        believe(workspace, f"Ines keeps thing number {number} somewhere.")
    about = believe(workspace, "Ines rents a studio from Halvorsen.")

    shown = shown_to(say(workspace, "Halvorsen wants more for the studio."))

    assert about in shown
    assert len(shown) == 2


def test_a_belief_is_shown_with_the_day_since_when_it_is_known(settings: Settings) -> None:
    workspace = factories.workspace()
    belief = factories.belief(workspace=workspace, statement="Ines lives in Graz.", user="ines")
    first = say(workspace, "I live in Graz.")
    Evidence.objects.create(
        workspace=workspace, belief=belief, episode=first, verdict="SUPPORTS", basis="model", created_at=factories.NOW
    )

    request = build_request(messages=[say(workspace, "Hello.", minutes=9)], now=factories.NOW + DAY)

    assert request is not None
    assert request.beliefs[0].since == factories.NOW.date().isoformat()
