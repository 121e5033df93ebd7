"""A channel that fails or takes too long is dropped and named, and the others answer."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection

from memory.models import EpisodeAccess, Workspace
from memory.recall.query import MemoryType
from memory.recall.retrievers import Retrievers, Searches
from memory.search.hybrid import SearchHits
from memory.search.plan import SearchPlan
from memory.search.prepared import TimedSearch
from memory.search.scope import VectorMethod
from memory.search.statements import SearchQuery, TextMethod
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


def test_where_the_vectors_of_beliefs_take_too_long_words_find_them(workspace: Workspace, closed: Close) -> None:
    """B17: they come beside the episodes, which both arms found."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    with closed("memory_beliefembedding"):
        recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("vectors",), {wanted.pk, belief.pk})


def test_where_beliefs_alone_are_asked_for_words_find_them(workspace: Workspace, closed: Close) -> None:
    """B17: each arm is tried alone for beliefs as it is for episodes."""
    belief = believed("Mara prefers tea.", workspace=workspace)
    with closed("memory_beliefembedding"):
        recalled = ask("Mara's tea", workspace=workspace, types=frozenset({MemoryType.BELIEF}))
    assert (recalled.degraded, ids(recalled)) == (("vectors",), {belief.pk})


def test_where_beliefs_take_too_long_episodes_answer(workspace: Workspace, closed: Close) -> None:
    """B17: where there are no words to find beliefs by."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    believed("Mara prefers tea.", workspace=workspace)
    with closed("memory_beliefembedding", "memory_termfrequency"):
        recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("text", "beliefs"), {wanted.pk})


def test_where_the_choice_of_the_arm_takes_too_long_words_answer(workspace: Workspace, closed: Close) -> None:
    """B17: how many vectors there are is read within the time of a channel."""
    wanted = remembered("Mara likes tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    reader = caller("read", workspace=workspace)
    with closed("memory_vectorcount"):
        response = reader.post("/recall", {"query": "Mara's tea"})
    assert (response.status_code, response.json()["degraded"]) == (200, ["vectors"])
    assert {result["id"] for result in response.json()["results"]} == {wanted.pk, belief.pk}


def test_all_searches_of_a_kind_end_in_twice_the_time_of_a_channel() -> None:
    """B17: a search that goes on further has no time of its own."""
    looked: list[SearchQuery] = []

    def look(*, query: SearchQuery) -> SearchHits[Any]:
        looked.append(query)
        time.sleep(0.11)
        return SearchHits(found=[], is_short=True, may_go_further=True)

    policy = replace(settings.POLICY.recall, channel_seconds=0.1)
    searches = Searches(
        ways=lambda **_: SearchPlan(arm=VectorMethod.OWN_INDEX, lookup=TextMethod.PLANNED), episodes=look, beliefs=look
    )
    query = SearchQuery(vector=np.ones(2, dtype=np.float32), model="any", words=None)
    with TimedSearch(effort=policy.search_effort) as timed:
        channels = Retrievers(timed=timed, searches=searches, query=query, policy=policy)
        channels.find_episodes()
    assert [query.is_further for query in looked] == [False, True]
    assert channels.degraded == ("vectors",)


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
