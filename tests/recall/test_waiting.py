"""L2, B17: turns that wait in a buffer are recalled, as the episodes that they may become."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper
from pytest_django import Settings

from memory.domain.identity import turn_id_of
from memory.domain.taxonomy import RecallMode
from memory.erasure.erase import erase_unread_turn
from memory.language.sentences import strip_echo
from memory.ledger.transactions import NotFound
from memory.mcp.interface import ToolRefused
from memory.models import Conversation, EpisodeAccess, Erased, ModelCall, Turn, Workspace
from memory.recall.prompt_lines import format_line, gather_context, recollect
from memory.recall.query import MemoryType, RecallProfile, RecallScope, search_scope_of
from memory.search.hybrid import search_buffered_turns
from memory.search.prepared import TimedSearch
from memory.search.statements import NO_WORDS, SearchQuery
from tests import factories
from tests.api.caller import caller, is_problem
from tests.mcp.test_tools import call
from tests.recall.memories import ask, remembered, scope_of

pytestmark = pytest.mark.django_db

DOG = "btw our dog Pickle is afraid of the vacuum cleaner"
ASKED = "What is Pickle afraid of?"


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def dog(workspace: Workspace) -> Turn:
    """A turn that nobody has read yet, beside some episodes."""
    for text in ("The boiler was serviced in May.", "Ines prefers oat milk.", "The car needs new tyres."):
        remembered(text, workspace=workspace)
    return factories.turn(workspace=workspace, session="monday", content=DOG)


def test_a_turn_is_recalled_as_soon_as_it_was_sent(workspace: Workspace, dog: Turn) -> None:
    first = ask(ASKED, workspace=workspace).results[0]

    assert (first.id, first.text, first.occurred_at) == (turn_id_of(dog.pk), DOG, dog.occurred_at)
    assert (first.type, first.session, first.is_relevant) == (MemoryType.EPISODE, "monday", True)


def test_a_turn_that_is_being_read_is_recalled(workspace: Workspace) -> None:
    factories.turn(workspace=workspace, content=DOG, state="leased")

    assert [one.text for one in ask(ASKED, workspace=workspace).results] == [DOG]


@pytest.mark.parametrize("state", ["extracted", "echo", "failed"])
def test_a_turn_that_is_done_with_is_not(workspace: Workspace, state: str) -> None:
    factories.turn(workspace=workspace, content="We have no dog.", session="monday")
    factories.turn(workspace=workspace, content=DOG, session="monday", state=state)

    assert DOG not in [one.text for one in ask(ASKED, workspace=workspace).results]


def test_the_session_that_asks_has_heard_its_own(workspace: Workspace, dog: Turn) -> None:
    assert ask(ASKED, workspace=workspace, session="tuesday").results[0].id == turn_id_of(dog.pk)
    assert turn_id_of(dog.pk) not in [one.id for one in ask(ASKED, workspace=workspace, session="monday").results]


def test_what_a_system_says_is_not_recalled(workspace: Workspace) -> None:
    factories.turn(workspace=workspace, content=DOG, role="system")

    assert ask(ASKED, workspace=workspace).results == ()


def test_only_turns_in_sight_are_recalled(workspace: Workspace) -> None:
    """B21: by workspace, project and user."""
    mill, barn = (factories.project(workspace=workspace, slug=slug) for slug in ("mill", "barn"))
    for project in (mill, barn, None):
        factories.turn(workspace=workspace, content=f"{DOG}, {project}", project=project)
    factories.turn(workspace=workspace, content=f"{DOG}, says Vera", user="vera")
    factories.turn(workspace=factories.workspace(), content=DOG)

    def told(**scope: object) -> set[str]:
        return {one.text.removeprefix(f"{DOG}, ") for one in ask(ASKED, workspace=workspace, **scope).results}  # type: ignore[arg-type]  # as ask() takes it

    assert told() == {str(mill), str(barn), "None", "says Vera"}
    assert told(limited_to=(mill,)) == {str(mill)}
    assert told(project=barn) == {str(barn), "None", "says Vera"}
    assert told(user="bruno") == {str(mill), str(barn), "None"}
    assert told(project=barn, limited_to=(mill,)) == set()


def test_a_time_that_was_asked_for_bounds_turns(workspace: Workspace, dog: Turn) -> None:
    day = timedelta(days=1)

    assert dog.content in [
        one.text for one in ask(ASKED, workspace=workspace, occurred_from=dog.occurred_at - day).results
    ]
    assert dog.content not in [
        one.text for one in ask(ASKED, workspace=workspace, occurred_from=dog.occurred_at + day).results
    ]


def test_what_is_not_known_of_a_turn_leaves_it_out(workspace: Workspace, dog: Turn) -> None:
    """R10, D2: how things stood before it was read, and of what kind it is."""
    for asked in (
        {"as_of": factories.NOW + timedelta(days=1)},
        {"mode": RecallMode.FACTS_ONLY},
        {"types": [MemoryType.BELIEF]},
    ):
        assert turn_id_of(dog.pk) not in [one.id for one in ask(ASKED, workspace=workspace, **asked).results]


def test_a_turn_comes_up_by_itself_and_bears_on_tasks(workspace: Workspace, dog: Turn) -> None:
    """B16, R12."""
    scope: RecallScope = scope_of(workspace=workspace)

    flash = recollect(scope=scope, query=ASKED, now=factories.NOW)
    context = gather_context(scope=scope, query=ASKED, now=factories.NOW)

    assert flash.text == f"[Memory flash: {DOG}]"
    assert flash.ids == (turn_id_of(dog.pk),)
    assert turn_id_of(dog.pk) in context.ids
    assert recollect(scope=scope, query=ASKED, session="monday", now=factories.NOW).text == ""


def test_its_line_is_known_for_an_echo(workspace: Workspace, dog: Turn) -> None:
    """Echo."""
    [first, *_] = ask(ASKED, workspace=workspace, limit=1).results
    line = format_line(memory=first, now=factories.NOW)

    assert line.endswith(f"— ID: {turn_id_of(dog.pk)}")
    assert strip_echo(line) == ""


def test_recalling_it_counts_nothing(workspace: Workspace, dog: Turn) -> None:
    ask(ASKED, workspace=workspace, limit=1)

    assert not EpisodeAccess.objects.exists()


def test_the_associative_profile_and_the_xray_know_it(workspace: Workspace, dog: Turn) -> None:
    """R5."""
    recalled = ask(ASKED, workspace=workspace, profile=RecallProfile.ASSOCIATIVE, is_explained=True)

    assert recalled.results[0].id == turn_id_of(dog.pk)
    assert recalled.results[0].explain is not None


def test_the_newest_are_looked_at_where_very_many_wait(workspace: Workspace, settings: Settings) -> None:
    settings.POLICY = replace(settings.POLICY, recall=replace(settings.POLICY.recall, waiting_turns=2))
    turns = [factories.turn(workspace=workspace, content=f"{DOG} number {number}") for number in range(4)]

    found = {one.id for one in ask(ASKED, workspace=workspace).results}

    assert found == {turn_id_of(turn.pk) for turn in turns[2:]}


def test_german_turns_are_found_by_other_forms_of_their_words(workspace: Workspace) -> None:
    factories.turn(workspace=workspace, content="Unsere Hündin Paula fürchtet sich vor Staubsaugern.")

    [found] = ask("Wovor fürchtet sich Paula, vor einem Staubsauger?", workspace=workspace).results

    assert found.is_relevant


def test_a_turn_without_words_of_the_query_ranks_behind_what_answers(workspace: Workspace, dog: Turn) -> None:
    factories.turn(workspace=workspace, content="ok thanks, bye!")

    assert ask(ASKED, workspace=workspace).results[0].id == turn_id_of(dog.pk)


def test_its_card_tells_of_it_and_later_of_what_it_became(workspace: Workspace, dog: Turn) -> None:
    """B18."""
    reader = caller("read", workspace=workspace)

    card = reader.get(f"/memories/{turn_id_of(dog.pk)}").json()
    told = call("memory_expand", factories.key("read", workspace=workspace)[1], id=turn_id_of(dog.pk))
    episode = factories.episode(workspace=workspace, text=DOG)
    dog.episodes.add(episode, through_defaults={"workspace": workspace})
    Turn.objects.filter(pk=dog.pk).update(state="extracted", settled_at=factories.NOW)
    later = reader.get(f"/memories/{turn_id_of(dog.pk)}").json()

    assert (card["type"], card["text"], card["session"], card["state"]) == ("turn", DOG, "monday", "waiting")
    assert (told.type, told.text, told.status, told.session) == ("turn", DOG, "waiting", "monday")
    assert (later["state"], later["episodes"]) == ("extracted", [episode.pk])


def test_nobody_else_sees_its_card(workspace: Workspace, dog: Turn) -> None:
    """B21."""
    project = factories.project(workspace=workspace, slug="mill")
    address = f"/memories/{turn_id_of(dog.pk)}"

    assert is_problem(caller(workspace=factories.workspace()).get(address), 404)
    assert is_problem(caller("read", workspace=workspace, projects=(project,)).get(address), 404)
    assert is_problem(caller("read", workspace=workspace).get("/memories/tn_00ff"), 404)


def test_a_turn_is_forgotten_before_it_was_read(workspace: Workspace, dog: Turn) -> None:
    """B19: it is gone, and refused when it comes again."""
    writer = caller("write", workspace=workspace)

    gone = writer.request("DELETE", f"/memories/{turn_id_of(dog.pk)}")
    again = writer.post("/turns", {"session": "monday", "role": "user", "content": DOG})

    assert (gone.status_code, gone.json()["status"]) == (200, "forgotten")
    assert not Turn.objects.filter(pk=dog.pk).exists()
    assert not Conversation.objects.exists()
    assert Erased.objects.exists()
    assert (again.status_code, again.json()["status"]) == (409, 409)
    assert DOG not in [one.text for one in ask(ASKED, workspace=workspace).results]


def test_nothing_of_a_forgotten_turn_is_left_with_its_conversation(workspace: Workspace, dog: Turn) -> None:
    """B19: it may have been taken up and put back, so that a reply tells of it."""
    factories.turn(workspace=workspace, session="monday", content="Good morning!")
    seen = ModelCall.objects.create(
        workspace=workspace, conversation=dog.conversation, purpose="extract", model="m", input_hash="0" * 64,
        outcome="ok", reply=DOG,
    )  # fmt: skip

    caller("owner", workspace=workspace).request("DELETE", f"/memories/{turn_id_of(dog.pk)}?erase=true")

    seen.refresh_from_db()
    assert DOG not in str(vars(seen))
    assert Conversation.objects.get(session="monday").buffered == 1


@pytest.mark.parametrize("state", ["failed", "echo"])
def test_a_turn_that_became_nothing_can_be_forgotten(workspace: Workspace, state: str) -> None:
    """B19."""
    turn = factories.turn(workspace=workspace, content=DOG, state=state)

    assert caller("write", workspace=workspace).request("DELETE", f"/memories/{turn_id_of(turn.pk)}").status_code == 200
    assert not Turn.objects.exists()


def test_a_turn_that_is_gone_meanwhile_is_not_there(workspace: Workspace, dog: Turn) -> None:
    Turn.objects.all().delete()
    Conversation.objects.all().delete()

    with pytest.raises(NotFound):
        erase_unread_turn(turn=dog)


def test_what_a_system_is_told_has_no_card(workspace: Workspace) -> None:
    turn = factories.turn(workspace=workspace, content=DOG, role="system")

    assert is_problem(caller("read", workspace=workspace).get(f"/memories/{turn_id_of(turn.pk)}"), 404)


def test_a_turn_of_the_time_that_is_asked_about_stands_first(workspace: Workspace, dog: Turn) -> None:
    """B17: as an episode would."""
    Turn.objects.filter(pk=dog.pk).update(occurred_at=factories.NOW - timedelta(days=1))
    remembered("Pickle is afraid of thunder.", workspace=workspace, occurred_at=factories.NOW - timedelta(days=90))

    results = ask("What did I say about Pickle yesterday?", workspace=workspace, is_explained=True).results

    assert results[0].id == turn_id_of(dog.pk)
    assert results[0].explain
    assert results[0].explain.components["asked_time"] == 3.0


def test_very_long_turns_are_looked_at_in_part(workspace: Workspace) -> None:
    """B17: fifty of the longest would take longer than a recall may."""
    for number in range(3):
        factories.turn(workspace=workspace, content=f"{DOG} {number}. " + "and so on " * 3_000)

    assert len(ask(ASKED, workspace=workspace).results) == 3


def test_waiting_turns_are_found_by_their_conversations(workspace: Workspace, dog: Turn) -> None:
    """B17: not among all that were ever said."""
    with TimedSearch(effort=64) as timed, connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_turn, memory_conversation")
        reach = search_scope_of(scope=scope_of(workspace=workspace), now=factories.NOW)
        query = SearchQuery(vector=None, model="", words=NO_WORDS)
        search = partial(
            search_buffered_turns, reach=reach, query=query, configuration="english", except_session="", most=50
        )
        before = _whole_scans(cursor)
        assert [turn.id for turn in timed.run(search, seconds=1.0)] == [dog.pk]
        assert _whole_scans(cursor) == before


def _whole_scans(cursor: CursorWrapper) -> tuple[int, int]:
    """Count how often all turns were gone through: row by row, or in the order of their key."""
    cursor.execute(
        "SELECT pg_stat_get_xact_numscans('memory_turn'::regclass), "
        "pg_stat_get_xact_numscans('memory_turn_pkey'::regclass)"
    )
    one, other = cursor.fetchone()
    return int(one), int(other)


def test_a_turn_that_was_read_is_forgotten_by_what_it_became(workspace: Workspace, dog: Turn) -> None:
    """B19."""
    Turn.objects.filter(pk=dog.pk).update(state="extracted", settled_at=factories.NOW)
    key = factories.key("write", "read", workspace=workspace)[1]

    assert is_problem(caller("write", workspace=workspace).request("DELETE", f"/memories/{turn_id_of(dog.pk)}"), 409)
    with pytest.raises(ToolRefused, match="does not wait any more"):
        call("memory_forget", key, id=turn_id_of(dog.pk))
