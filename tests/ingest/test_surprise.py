"""L2: a turn that is far from all that is remembered has its buffer read early."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from memory.ingest.scheduling import flush_surprising
from memory.models import Conversation, Turn, Workspace
from tests import factories
from tests.ingest.arriving import take
from tests.ingest.reading import say, wake

pytestmark = pytest.mark.django_db

REMEMBERED = [f"The ferry to the island leaves from pier {n} in the harbour." for n in range(1, 8)]
KNOWN = "The ferry to the island leaves from pier 9 in the harbour."
NEW = "Chess openings with an early queen sacrifice puzzle her students."


@pytest.fixture
def workspace() -> Workspace:
    workspace = factories.workspace()
    take(*REMEMBERED, workspace=workspace)
    return workspace


def surprises() -> list[float | None]:
    return list(Turn.objects.order_by("pk").values_list("surprise", flat=True))


def reasons() -> list[str]:
    return list(Conversation.objects.order_by("pk").values_list("due_reason", flat=True))


def test_what_is_far_from_all_memories_is_read_early(workspace: Workspace) -> None:
    """L2: 1 − the mean similarity of the nearest 5 above 0.35."""
    say(KNOWN, workspace=workspace, session="known")
    say(NEW, workspace=workspace, session="new")
    assert flush_surprising() == 1
    known, new = surprises()
    assert known is not None
    assert new is not None
    assert known <= 0.35 < new
    assert (reasons(), wake()) == (["", "a surprising turn"], 1)


def test_nothing_is_compared_twice(workspace: Workspace) -> None:
    say(NEW, workspace=workspace)
    assert (flush_surprising(), flush_surprising()) == (1, 0)


def test_what_surprises_nobody(workspace: Workspace) -> None:
    """L2: a few words, what a model or a tool says, and anything where nothing is remembered yet."""
    say("Pineapple!", workspace=workspace)
    say(NEW, workspace=workspace, role="assistant")
    say(NEW, workspace=workspace, user="mara")
    say(NEW, workspace=factories.workspace())
    assert flush_surprising() == 0
    assert surprises() == [0.0, None, 0.0, 0.0]


def test_turns_whose_vectors_a_server_makes_take_no_place_of_others(workspace: Workspace, settings: Settings) -> None:
    """L2: they are never compared, and those behind them all the same."""
    settings.POLICY = replace(settings.POLICY, turns=replace(settings.POLICY.turns, surprise_turns=1))
    say(NEW, workspace=workspace, session="before")
    flush_surprising()
    Workspace.objects.filter(pk=workspace.pk).update(embedding_model="far-away-model")
    say(NEW, workspace=workspace, session="theirs")
    near = factories.workspace()
    take(*REMEMBERED, workspace=near)
    say(NEW, workspace=near, session="ours")
    assert flush_surprising() == 1
    marked = Turn.objects.exclude(surprise=None).values_list("conversation__session", flat=True)
    assert sorted(marked) == ["before", "ours"]


def test_what_is_due_already_is_not_compared(workspace: Workspace) -> None:
    say("Never moor at the east pier of the harbour.", NEW, workspace=workspace)
    assert (flush_surprising(), surprises()) == (0, [None, None])
