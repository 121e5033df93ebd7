"""Which belief says what a new statement says is asked of the database, and only what is alike is read."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.ledger.beliefs import BeliefDraft, find_equivalent, says_the_same
from memory.llm.registry import default_embedder
from memory.models import Belief
from memory.text.names import SpokenText
from tests.consolidation.world import World

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs over spaces."


def same(world: World, statement: str = TABS) -> str | None:
    draft = BeliefDraft(workspace_id=world.workspace.pk, statement=statement, subject="Ana", language="en")
    [vector] = default_embedder().embed([statement])
    among = Belief.objects.for_workspace(world.workspace.pk).active()
    return find_equivalent(workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector, among=among)


def test_the_most_similar_that_passes_the_guard_says_the_same(world: World) -> None:
    """B8.5: above 0.92."""
    world.directions.place(TABS, {"tabs": 1.0})
    world.hold("Ana prefers spaces over tabs.", about="tabs", likeness=0.99)
    world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.94)
    best = world.hold("Ana prefers tabs over spaces .", about="tabs", likeness=0.96)
    assert same(world) == best.pk
    Belief.objects.filter(pk=best.pk).update(status="archived")
    assert same(world) not in (None, best.pk)


def test_what_is_not_alike_says_something_else(world: World) -> None:
    world.directions.place(TABS, {"tabs": 1.0})
    world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.91)
    assert same(world) is None


def test_only_beliefs_that_are_alike_are_read(world: World) -> None:
    """B8.5: a founding reads no vector of the workspace, and no other statement, under its lock."""
    world.directions.place(TABS, {"tabs": 1.0})
    others = [world.hold(f"The mill opens at {hour}.", about=f"mill {hour}") for hour in range(20)]
    alike = world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.95)
    with CaptureQueriesContext(connection) as asked:
        assert same(world) == alike.pk
    [read] = [query["sql"] for query in asked if 'FROM "memory_belief"' in query["sql"]]
    assert alike.pk in read
    assert not any(other.pk in read for other in others)


def test_where_nothing_is_alike_no_belief_is_read(world: World) -> None:
    world.directions.place(TABS, {"tabs": 1.0})
    world.hold("The mill opens at eight.", about="mill")
    with CaptureQueriesContext(connection) as asked:
        assert same(world) is None
    assert not any('FROM "memory_belief"' in query["sql"] for query in asked)


@pytest.mark.parametrize("text", ["I have two cats.", "J'ai deux chats.", "J’ai deux chats."])
def test_two_people_who_say_the_same_of_themselves_say_two_things(text: str) -> None:
    """B8.4: whatever form the word for "I" has."""
    assert not says_the_same(left=SpokenText(text=text, speaker="Mara"), right=SpokenText(text=text, speaker="Ole"))
    assert says_the_same(left=SpokenText(text=text, speaker="Mara"), right=SpokenText(text=text, speaker="mara"))
