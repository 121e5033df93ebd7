"""A channel that fails or takes too long is dropped and named, and the others answer."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.db import connection

from memory.models import EpisodeAccess, Workspace
from tests import factories
from tests.api.caller import caller
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db(transaction=True)

Close = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def workspace(with_numbers: Callable[..., None]) -> Workspace:
    with_numbers(channel_seconds=0.5)
    return factories.workspace()


def test_where_vectors_take_too_long_words_answer(workspace: Workspace, closed: Close) -> None:
    """B17: the arm that is slow is dropped and named, and the answer counts as access."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    remembered("Our cat adores tuna.", workspace=workspace)
    with closed("memory_episodeembedding"):
        recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("vectors",), {wanted.pk})
    assert EpisodeAccess.objects.get(episode=wanted).access_count == 1


def test_where_words_take_too_long_vectors_answer(workspace: Workspace, closed: Close) -> None:
    """B17."""
    wanted = remembered("Our cat adores tuna.", workspace=workspace)
    with closed("memory_termfrequency"):
        recalled = ask("pets eating fish", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("text",), {wanted.pk})


def test_where_beliefs_take_too_long_episodes_answer(workspace: Workspace, closed: Close) -> None:
    """B17."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    believed("Mara prefers tea.", workspace=workspace)
    with closed("memory_beliefembedding"):
        recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("beliefs",), {wanted.pk})


def test_where_nothing_answers_in_time_the_api_says_so_and_does_not_fail(workspace: Workspace, closed: Close) -> None:
    """B17: never a 500 because an arm is slow."""
    remembered("Mara likes tea.", workspace=workspace)
    reader = caller("read", workspace=workspace)
    began = time.monotonic()
    with closed("memory_episodeembedding", "memory_termfrequency"):
        response = reader.post("/recall", {"query": "Mara's tea"})
    assert (response.status_code, response.json()) == (200, {"results": [], "degraded": ["vectors", "text"]})
    assert time.monotonic() - began < 10


def test_a_channel_that_breaks_is_dropped(workspace: Workspace) -> None:
    """B17: as one that is slow."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_termfrequency RENAME TO away")
        try:
            recalled = ask("Mara's tea", workspace=workspace)
        finally:
            cursor.execute("ALTER TABLE away RENAME TO memory_termfrequency")
    assert (recalled.degraded, ids(recalled)) == (("text",), {wanted.pk})


@pytest.mark.django_db(transaction=False)
def test_a_search_leaves_no_setting_behind(workspace: Workspace) -> None:
    """B17: the time of a channel is not the time of what its caller does next in the same transaction."""
    remembered("Mara likes tea.", workspace=workspace)
    ask("Mara's tea", workspace=workspace)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('jit')")
        assert cursor.fetchone() == ("0", "on")
