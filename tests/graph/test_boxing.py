"""L7: memories come into boxes as they are linked; boxes are sealed, and traced to earlier ones."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from memory.graph.linking import link_memories, seal_idle_boxes
from memory.models import Box, BoxMember, Trace, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def told(workspace: Workspace, *names: str, minutes: float = 0, **given: Any) -> str:
    at = factories.NOW + timedelta(minutes=minutes)
    fields = {"session": "s", "occurred_at": at, "created_at": at} | given
    return factories.episode(workspace=workspace, entities=list(names), **fields).pk


def linked(workspace: Workspace) -> list[Box]:
    link_memories(workspace_id=workspace.pk)
    return list(Box.objects.order_by("pk"))


def seal_by(workspace: Workspace, *, minutes: float) -> int:
    now = factories.NOW + timedelta(minutes=minutes)
    return seal_idle_boxes(workspace_id=workspace.pk, now=now, policy=settings.POLICY.box)


def test_what_is_about_one_topic_is_in_one_box(workspace: Workspace) -> None:
    keys = {told(workspace, "garden", "apples", minutes=number) for number in range(3)}
    [box] = linked(workspace)
    assert set(box.members.values_list("episode_id", flat=True)) == keys
    assert (box.topics, box.seal) == (["garden", "apples"], "")
    assert (box.opened_at, box.last_at) == (factories.NOW, factories.NOW + timedelta(minutes=2))


def test_a_box_is_sealed_where_its_session_goes_on_to_something_else(workspace: Workspace) -> None:
    """L7: overlap below 0.35; in one batch or in two."""
    told(workspace, "garden", "apples")
    linked(workspace)
    told(workspace, "compiler", minutes=1)
    assert [(box.seal, box.topics) for box in linked(workspace)] == [
        ("shifted", ["garden", "apples"]),
        ("", ["compiler"]),
    ]


def test_a_session_that_comes_back_to_an_open_topic_finds_its_box(workspace: Workspace) -> None:
    """L7: one open box a topic, whoever of a project and user speaks of it."""
    told(workspace, "garden")
    told(workspace, "compiler", minutes=1, session="t")
    told(workspace, "garden", minutes=2, session="t")
    boxes = linked(workspace)
    assert [(box.seal, box.members.count()) for box in boxes] == [("", 2), ("", 1)]


def test_a_box_is_sealed_after_a_pause(workspace: Workspace) -> None:
    """L7: 30 minutes; by what comes after it, and by maintenance where nothing comes."""
    told(workspace, "garden")
    told(workspace, "garden", minutes=31)
    assert [box.seal for box in linked(workspace)] == ["idle", ""]
    assert (seal_by(workspace, minutes=61), seal_by(workspace, minutes=62), seal_by(workspace, minutes=62)) == (0, 1, 0)
    assert set(Box.objects.values_list("seal", flat=True)) == {"idle"}


def test_a_box_is_sealed_when_it_is_full(workspace: Workspace) -> None:
    """L7: 50 memories."""
    for number in range(51):
        told(workspace, "garden", minutes=number / 10)
    assert [(box.seal, box.members.count()) for box in linked(workspace)] == [("full", 50), ("", 1)]


def test_projects_and_users_have_boxes_of_their_own(workspace: Workspace) -> None:
    told(workspace, "garden")
    told(workspace, "garden", user="lena")
    told(workspace, "garden", project=factories.project(workspace=workspace))
    assert len(linked(workspace)) == 3


def test_a_later_box_of_the_same_topic_is_on_the_trace_of_the_earlier(workspace: Workspace) -> None:
    """L7: overlap ≥ 0.4 within 7 days."""
    day = 24 * 60
    for minutes, names in [(0, ["garden", "apples"]), (day, ["compiler"]), (2 * day, ["garden", "pears"])]:
        told(workspace, *names, minutes=minutes, session=str(minutes))
    first, _, third = linked(workspace)
    seal_by(workspace, minutes=3 * day)
    assert list(Trace.objects.values_list("earlier_id", "later_id", "overlap")) == [(first.pk, third.pk, 0.5)]


def test_every_memory_has_one_box(workspace: Workspace) -> None:
    keys = {told(workspace, f"topic {number % 4}", minutes=number) for number in range(20)}
    linked(workspace)
    assert set(BoxMember.objects.values_list("episode_id", flat=True)) == keys
