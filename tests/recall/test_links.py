"""The graph arm of recall (L19, B17): what is linked with an answer comes along, if it is asked for and visible."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from memory.domain.graph import EdgeKind
from memory.models import Edge, Episode, Workspace
from memory.recall.query import MemoryType, PathStep, Recalled, RecalledMemory
from memory.search import related
from memory.search.prepared import TimedSearch, run_prepared
from memory.search.related import read_episode_candidates
from memory.search.scope import SearchScope
from memory.search.statements import SearchQuery
from tests import factories
from tests.recall.memories import ask, ids, remembered, rows_read

FLOOD = "The river rose over the meadow."
pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def with_graph(settings: Settings) -> Callable[..., None]:
    """Change numbers of the graph: in a small store all memories are found, and a walk from each leads nowhere new."""

    def change(**numbers: float) -> None:
        settings.POLICY = replace(settings.POLICY, graph=replace(settings.POLICY.graph, **numbers))

    return change


def link(one: Episode, other: Episode, **given: Any) -> Edge:
    """Link two episodes surely, as naming the same."""
    kind = given.get("kind", EdgeKind.ENTITY)
    source, target = (one, other) if kind == EdgeKind.CAUSAL else sorted((one, other), key=lambda episode: episode.pk)
    fields = {"kind": kind, "weight": 1.0, "confidence": 1.0}
    return Edge.objects.create(
        workspace=one.workspace, source=source, target=target, created_at=factories.NOW, last_seen_at=factories.NOW,
        decays_at=factories.NOW + timedelta(days=180), **fields | given,
    )  # fmt: skip


def chain(workspace: Workspace, *texts: str, **given: Any) -> list[Episode]:
    """Store what a query about the flood finds, and what it leads to, one after another."""
    episodes = [remembered(text, workspace=workspace, **given) for text in texts]
    for one, other in pairwise(episodes):
        link(one, other)
    return episodes


def crowd(workspace: Workspace, number: int = 12) -> None:
    """Store what answers better than what is only linked."""
    for count in range(number):
        remembered(f"The river rose in spring {count}.", workspace=workspace)


def found(recalled: Recalled, episode: Episode) -> RecalledMemory | None:
    return next((result for result in recalled.results if result.id == episode.pk), None)


def reached(workspace: Workspace, **given: Any) -> set[str]:
    """Name what the graph led to, in the answer or just short of it."""
    recalled = follow(workspace=workspace, is_explained=True, **given)
    memories = [*recalled.results, *(missed.memory for missed in recalled.near_misses)]
    return {memory.id for memory in memories if memory.explain and "graph" in memory.explain.channels}


def follow(query: str = "the river rose over the meadow", **given: Any) -> Recalled:
    return ask(query, follows_links=True, **given)


def test_what_is_linked_with_an_answer_comes_up(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    """L19: though it is like nothing that was asked, where links weigh enough, and only if the graph is asked."""
    with_graph(share=0.3)
    _, linked = chain(workspace, FLOOD, "Otto sold his cow.")
    crowd(workspace)
    without = ask("the river rose over the meadow", workspace=workspace)
    assert linked.pk not in ids(without)
    assert linked.pk in ids(follow(workspace=workspace))


def test_a_memory_that_no_other_channel_finds_is_found(workspace: Workspace, with_numbers: Callable[..., None]) -> None:
    """L19: it has text and vector scores of its own all the same."""
    with_numbers(candidates=2)
    first, linked = chain(workspace, FLOOD, "Otto sold his cow.")
    remembered("The river is dry.", workspace=workspace)
    recalled = follow(workspace=workspace, limit=2, is_explained=True)
    short = [missed.memory for missed in recalled.near_misses if missed.memory.id == linked.pk]
    memory = found(recalled, linked) or next(iter(short), None)
    assert memory
    assert memory.explain
    assert memory.explain.components["similarity"] is not None
    assert found(recalled, first)


def test_the_x_ray_shows_the_way_through_the_graph(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    """B17, L19: every edge with its confidence, hop by hop, and what came of it."""
    first, second, third = chain(workspace, FLOOD, "Otto sold his cow.", "Lena bought a bell.")
    Edge.objects.touching([third.pk]).update(kind=EdgeKind.CAUSAL, confidence=0.8, weight=0.5)
    Edge.objects.touching([first.pk]).update(confidence=0.9)
    with_graph(seeds=1)
    result = found(follow(workspace=workspace, is_explained=True), third)
    assert result
    assert result.explain
    assert result.explain.path == (
        PathStep(id=first.pk, confidence=0.9, kind=EdgeKind.ENTITY, weight=1.0),
        PathStep(id=second.pk, confidence=0.8, kind=EdgeKind.CAUSAL, weight=0.5),
    )
    graph, gain = result.explain.components["graph"], result.explain.components["graph_gain"]
    assert graph
    assert gain
    assert result.explain.channels["graph"].score == graph
    before = result.score - gain
    assert gain == pytest.approx(0.05 * graph * (1 - before))


def test_three_hops_are_followed_and_no_more(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    """L19."""
    _, *others = chain(workspace, FLOOD, "Otto sold his cow.", "Lena bought a bell.", "Tea is hot.", "Snow fell.")
    with_graph(seeds=1)
    led = reached(workspace)
    assert [other.pk in led for other in others] == [True, True, True, False]


@pytest.mark.parametrize(("confidence", "comes_up"), [(0.2, True), (0.19, False), (None, True)])
def test_edges_below_the_cut_are_not_followed(
    workspace: Workspace, with_graph: Callable[..., None], confidence: float | None, comes_up: bool
) -> None:
    """L19: under 0.2; one without a confidence counts as sure."""
    _, linked = chain(workspace, FLOOD, "Otto sold his cow.")
    Edge.objects.update(confidence=confidence)
    assert (linked.pk in reached(workspace)) is comes_up


def test_causes_are_followed_both_ways(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    flood = remembered(FLOOD, workspace=workspace)
    cause, effect = (remembered(text, workspace=workspace) for text in ("It thawed early.", "Otto sold his cow."))
    link(cause, flood, kind=EdgeKind.CAUSAL)
    link(flood, effect, kind=EdgeKind.CAUSAL)
    with_graph(seeds=1)
    assert reached(workspace) == {cause.pk, effect.pk}


@pytest.mark.parametrize("hidden", ["forgotten", "archived"])
def test_what_is_not_recalled_is_not_walked_through(
    workspace: Workspace, with_graph: Callable[..., None], hidden: str
) -> None:
    """D3: neither found nor a way to what lies behind it."""
    _, second, third = chain(workspace, FLOOD, "Otto sold his cow.", "Lena bought a bell.")
    Episode.objects.filter(pk=second.pk).update(status=hidden)
    with_graph(seeds=1)
    assert not reached(workspace)
    assert third.pk in ids(follow(workspace=workspace))


def test_nothing_outside_of_a_keys_projects_is_walked_through(
    workspace: Workspace, with_graph: Callable[..., None]
) -> None:
    """B21: nor what belongs to no project, for a key that is limited to some."""
    mine, other = (factories.project(workspace=workspace) for _ in range(2))
    first = remembered(FLOOD, workspace=workspace, project=mine)
    theirs = remembered("Otto sold his cow.", workspace=workspace, project=other)
    nobodys = remembered("Lena bought a bell.", workspace=workspace)
    behind = [remembered(text, workspace=workspace, project=mine) for text in ("Tea is hot.", "Snow fell.")]
    for hidden, beyond in zip((theirs, nobodys), behind, strict=True):
        link(first, hidden)
        link(hidden, beyond)
    with_graph(seeds=1)
    assert reached(workspace, limited_to=(mine,)) == set()
    assert reached(workspace) == {theirs.pk, nobodys.pk, *(episode.pk for episode in behind)}


def test_another_users_memories_are_not_walked_through(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    """B21: with a user named, that user's and those of nobody."""
    first = remembered(FLOOD, workspace=workspace, user="lena")
    ottos = remembered("Otto sold his cow.", workspace=workspace, user="otto")
    nobodys = remembered("Lena bought a bell.", workspace=workspace)
    behind = remembered("Tea is hot.", workspace=workspace, user="lena")
    for other in (ottos, nobodys):
        link(first, other)
    link(ottos, behind)
    with_graph(seeds=1)
    assert reached(workspace, user="lena") == {nobodys.pk}


def test_an_edge_into_another_workspace_leads_nowhere(workspace: Workspace, with_graph: Callable[..., None]) -> None:
    """B21: should there ever be one."""
    first = remembered(FLOOD, workspace=workspace)
    elsewhere = remembered("Otto sold his cow.", workspace=factories.workspace())
    link(first, elsewhere)
    assert reached(workspace) == set()
    assert ids(follow(workspace=workspace)) == {first.pk}


def test_a_recall_that_does_not_ask_for_the_graph_sends_no_statement_more(
    workspace: Workspace, with_graph: Callable[..., None], with_numbers: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """L19: and one that does sends two: one to walk, one to read what only the walk has found."""
    with_graph(seeds=1)
    with_numbers(candidates=1)
    sent: list[str] = []

    def spy(*, statement: str, **given: Any) -> Any:
        sent.append(statement)
        return run_prepared(statement=statement, **given)

    monkeypatch.setattr(related, "run_prepared", spy)
    chain(workspace, FLOOD, "Otto sold his cow.", "Lena bought a bell.")
    ask(FLOOD, workspace=workspace, limit=1)
    plain = list(sent)
    assert not [statement for statement in plain if "memory_edge" in statement]
    follow(FLOOD, workspace=workspace, limit=1)
    assert len(sent) - len(plain) == len(plain) + 2


@pytest.mark.django_db(transaction=True)
def test_a_graph_that_does_not_answer_in_time_is_named(
    workspace: Workspace, closed: Callable[..., AbstractContextManager[None]], with_numbers: Callable[..., None]
) -> None:
    """B17: the other channels answer all the same."""
    first, _ = chain(workspace, FLOOD, "Otto sold his cow.")
    with_numbers(channel_seconds=0.5)
    with closed("memory_edge"):
        recalled = follow(workspace=workspace)
    assert recalled.degraded == ("graph",)
    assert first.pk in ids(recalled)


def test_memories_without_links_are_recalled_as_ever(workspace: Workspace) -> None:
    crowd(workspace)
    plain = ask("the river rose in spring 3", workspace=workspace)
    linked = follow("the river rose in spring 3", workspace=workspace)
    assert [(result.id, result.score) for result in linked.results] == [
        (result.id, result.score) for result in plain.results
    ]
    assert linked.degraded == ()


def test_beliefs_alone_need_no_graph(workspace: Workspace) -> None:
    chain(workspace, FLOOD, "Otto sold his cow.")
    assert follow(workspace=workspace, types=[MemoryType.BELIEF]).results == ()


def test_what_edges_lead_to_is_looked_up_by_its_key(workspace: Workspace) -> None:
    """L19: however many memories there are."""
    linked, *_ = [remembered(f"The river rose in spring {count}.", workspace=workspace).pk for count in range(60)]
    with connection.cursor() as cursor:  # the planner may still believe what other tests left
        cursor.execute("ANALYZE memory_episode")
    reach = SearchScope(workspace_id=workspace.pk, projects=None, allowed=None, user="", now=factories.NOW)
    query = SearchQuery(vector=None, model="", words=None)

    def look() -> int:
        before = rows_read("memory_episode")
        assert [found.id for found in read_episode_candidates(reach=reach, query=query, ids=[linked])] == [linked]
        return rows_read("memory_episode") - before

    with TimedSearch(effort=64) as timed:
        assert timed.run(look, seconds=5.0) == 1
