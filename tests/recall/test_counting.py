"""Words are counted beside recall, and weigh the same whether they were counted or not."""

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from memory.models import Episode, TermFrequency, TextStatistics, Workspace
from memory.search.prepared import TimedSearch
from memory.search.statements import QueryWords
from memory.search.words import count_due_words, count_words, read_query_words
from tests import factories
from tests.recall.memories import ask, remembered

pytestmark = pytest.mark.django_db

POLICY = settings.POLICY.recall


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _say(workspace: Workspace, count: int, *, start: int = 0) -> None:
    for number in range(start, start + count):
        factories.episode(workspace=workspace, text=f"Parrot {number} sleeps on a perch.", language="en")


def test_counting_says_how_many_texts_hold_a_word(workspace: Workspace) -> None:
    """B17: by lexeme, over active episodes alone."""
    _say(workspace, 3)
    factories.episode(workspace=workspace, text="Parrots talk.", language="en", status="archived")
    assert count_words(workspace_id=workspace.pk)
    assert TermFrequency.objects.get(workspace=workspace, lexeme="parrot").documents == 3
    assert TextStatistics.objects.get(workspace=workspace).documents == 3


def test_a_word_that_most_beliefs_have_is_common(workspace: Workspace) -> None:
    """B17: the name of whose memory it is tells none of its beliefs from another."""
    _say(workspace, 20)
    for number in range(12):
        factories.belief(workspace=workspace, statement=f"Nora likes dish {number}.", language="en")
    count_words(workspace_id=workspace.pk)
    counted = dict(TermFrequency.objects.filter(workspace=workspace).values_list("lexeme", "documents"))

    assert counted["nora"] == round(11 / 16 * 20)
    assert "7" not in counted or counted["7"] == 1  # in one episode; that one belief has it tells nothing
    assert counted["parrot"] == 20


def test_a_young_workspace_is_counted_without_a_look_at_others(workspace: Workspace) -> None:
    """B17: the index over words finds everybody's, and of a common word that may be a million."""
    told = factories.episode(workspace=factories.workspace(), text="Parrots sleep.", language="en")
    fields = {name: value for name, value in vars(told).items() if name not in ("_state", "search", "number")}
    Episode.objects.bulk_create(
        Episode(**fields | {"id": f"ep_{number:012x}", "content_hash": f"{number:064x}"}) for number in range(2_000)
    )
    _say(workspace, 5)

    def count() -> QueryWords:
        return read_query_words(query="parrots sleep", workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY)

    with connection.cursor() as cursor, TimedSearch(effort=POLICY.search_effort) as timed:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE memory_episode")
        before = _scans(cursor)  # of this connection: what the test before it did may still be among them
        assert timed.run(count, seconds=5.0).documents == 5
        assert _scans(cursor) == before


def _scans(cursor: CursorWrapper) -> int:
    """Count how often the index over words was looked at."""
    cursor.execute("SELECT pg_stat_get_xact_numscans('episode_search'::regclass)")
    return int(cursor.fetchone()[0])


def test_a_young_workspace_weighs_words_as_a_counted_one_does(workspace: Workspace) -> None:
    """B17: before anything was counted, words are counted on the spot."""
    _say(workspace, 5)
    before = read_query_words(
        query="where do parrots sleep, and 3?", workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY
    )
    count_words(workspace_id=workspace.pk)
    assert (
        read_query_words(
            query="where do parrots sleep, and 3?", workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY
        )
        == before
    )


def test_a_workspace_is_counted_anew_once_it_has_grown_enough(workspace: Workspace) -> None:
    """B17: at first at once, then after 100 new texts, or a tenth."""
    _say(workspace, 1)
    assert count_due_words(policy=POLICY) == 1
    _say(workspace, 99, start=1)
    assert count_due_words(policy=POLICY) == 0
    _say(workspace, 1, start=100)
    assert count_due_words(policy=POLICY) == 1
    assert TextStatistics.objects.get(workspace=workspace).documents == 101


def test_a_tenth_that_is_no_whole_number_is_reached_too(workspace: Workspace) -> None:
    """B17: 101 new texts are a tenth of 1,004."""
    factories.episode(workspace=workspace, text="The first.", language="en")
    TextStatistics.objects.create(
        workspace=workspace, documents=1004, mean_length=3.0, last_number=0, counted_at=factories.NOW
    )
    _say(workspace, 99)
    assert count_due_words(policy=POLICY) == 0
    _say(workspace, 1, start=99)
    assert count_due_words(policy=POLICY) == 1


def test_a_workspace_that_cannot_be_counted_holds_up_no_other(workspace: Workspace) -> None:
    """B17."""
    other = factories.workspace()
    for each in (workspace, other):
        _say(each, 1)
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE memory_textstatistics ADD CONSTRAINT refused CHECK (workspace_id <> {workspace.pk})"
        )
    assert count_due_words(policy=POLICY) == 1
    assert [row.workspace for row in TextStatistics.objects.all()] == [other]


def test_a_word_that_came_since_the_count_is_the_rarest(workspace: Workspace) -> None:
    """B17: an episode is found by a new word at once."""
    _say(workspace, 3)
    count_words(workspace_id=workspace.pk)
    wanted = remembered("The gecko fled.", workspace=workspace)
    assert ask("parrot or gecko", workspace=workspace).results[0].id == wanted.pk


def test_what_was_said_beside_a_match_is_found_by_it(workspace: Workspace) -> None:
    """B17: the answer shares no word with the question, and stands next to what does."""
    for place, text in enumerate(["How was your day?", "Where did you leave the bicycle key?", "In the blue drawer."]):
        remembered(text, workspace=workspace, session="s1", embedded_as=f"noise {place}")
    for number in range(20):
        remembered(f"The kettle number {number} leaks.", workspace=workspace, session="s2", embedded_as="rain")
    found = [result.text for result in ask("bicycle key", workspace=workspace, limit=3).results]
    assert set(found[:2]) == {"Where did you leave the bicycle key?", "In the blue drawer."}
