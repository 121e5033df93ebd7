"""L19, L7: what is stored is linked afterwards, once, and however it is woken."""

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from memory.domain.graph import EdgeKind
from memory.domain.policy import Policy
from memory.graph.linking import link_due_memories, link_memories, put_into_boxes
from memory.language.subjects import find_entities
from memory.models import Box, BoxMember, Edge, Entity, Episode, MaintenanceState, Mention, Trace, Workspace
from tests import factories
from tests.odd_texts import LONG

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def told(workspace: Workspace, *names: str, minutes: float = 0, **given: Any) -> Episode:
    """Store an episode that names somebody."""
    at = factories.NOW + timedelta(minutes=minutes)
    return factories.episode(workspace=workspace, entities=list(names), **{"occurred_at": at, "created_at": at} | given)


def pairs(kind: EdgeKind) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in Edge.objects.filter(kind=kind).values_list("source_id", "target_id")}


def everything() -> dict[str, list[Any]]:
    """Return all that linking wrote."""
    models = (Entity, Mention, Edge, Box, BoxMember, Trace)
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


def with_graph(**numbers: int) -> Policy:
    return replace(settings.POLICY, graph=replace(settings.POLICY.graph, **numbers))


def test_memories_that_name_the_same_are_linked(workspace: Workspace) -> None:
    """L19: in whatever case the name is written; with a new edge's confidence and a weight by the name's rarity."""
    first, second = told(workspace, "Mara"), told(workspace, "mara's", "Otto")
    told(workspace, "Lena")
    assert link_memories(workspace_id=workspace.pk) == 3
    [edge] = Edge.objects.filter(kind=EdgeKind.ENTITY)
    assert {edge.source_id, edge.target_id} == {first.pk, second.pk}
    assert (edge.weight, edge.confidence) == (pytest.approx(0.5906, abs=1e-4), 0.7)
    assert set(Entity.objects.values_list("name", flat=True)) == {"mara", "otto", "lena"}


def test_a_text_that_came_without_names_is_read_for_them(workspace: Workspace) -> None:
    factories.episode(workspace=workspace, text="Yesterday I met Mara Lind in Lisbon.", language="en")
    link_memories(workspace_id=workspace.pk)
    assert set(Mention.objects.values_list("name", flat=True)) == {"mara lind", "lisbon"}


def test_neighbours_in_a_session_are_linked_in_time(workspace: Workspace) -> None:
    """L19: the next one wholly, the one after that half; nobody across sessions and projects."""
    project = factories.project(workspace=workspace)
    one, two, three, four = (told(workspace, session="s", minutes=minutes) for minutes in range(4))
    told(workspace, session="t", minutes=1)
    told(workspace, session="s", minutes=2, project=project)
    link_memories(workspace_id=workspace.pk)
    weights = {
        frozenset((edge.source_id, edge.target_id)): edge.weight for edge in Edge.objects.filter(kind=EdgeKind.TIME)
    }
    near, far = [(one, two), (two, three), (three, four)], [(one, three), (two, four)]
    assert weights == {frozenset((a.pk, b.pk)): 1.0 for a, b in near} | {frozenset((a.pk, b.pk)): 0.5 for a, b in far}


def test_sessions_of_several_users_that_share_a_name_are_apart(workspace: Workspace) -> None:
    """L19: "monday" of one is not "monday" of another."""
    mine = [told(workspace, session="monday", user="lena", minutes=minutes) for minutes in (0, 2)]
    theirs = [told(workspace, session="monday", user="otto", minutes=minutes) for minutes in (1, 3)]
    link_memories(workspace_id=workspace.pk)
    assert pairs(EdgeKind.TIME) == {frozenset(one.pk for one in own) for own in (mine, theirs)}


def test_what_is_stored_late_is_linked_to_what_comes_after_it_too(workspace: Workspace) -> None:
    first, last = told(workspace, session="s"), told(workspace, session="s", minutes=10)
    link_memories(workspace_id=workspace.pk)
    between = told(workspace, session="s", minutes=5)
    link_memories(workspace_id=workspace.pk)
    assert pairs(EdgeKind.TIME) >= {frozenset((first.pk, between.pk)), frozenset((between.pk, last.pk))}


def test_linking_again_adds_nothing(workspace: Workspace) -> None:
    """L19: idempotent, also where the rows that say what is linked were lost."""
    for minutes in range(6):
        told(workspace, "Mara", session="s", minutes=minutes)
    link_memories(workspace_id=workspace.pk)
    before = everything()
    assert (link_memories(workspace_id=workspace.pk), everything()) == (0, before)
    BoxMember.objects.all().delete()
    link_memories(workspace_id=workspace.pk)
    after = everything()
    assert [after[name] for name in ("Entity", "Mention", "Edge")] == [
        before[name] for name in ("Entity", "Mention", "Edge")
    ]


def test_a_name_that_everybody_says_does_not_link_everybody(workspace: Workspace) -> None:
    """L19: at most so many edges for each memory, to the latest ones."""
    told_by = [told(workspace, "Mara") for _ in range(30)]
    link_memories(workspace_id=workspace.pk, policy=with_graph(entity_neighbours=3, entity_reach=10))
    assert Edge.objects.count() == 3 * 30 - 6
    last = Edge.objects.touching([told_by[-1].pk])
    assert {end for edge in last for end in (edge.source_id, edge.target_id)} == {one.pk for one in told_by[-4:]}


def test_what_is_of_the_same_project_and_user_is_linked_first(workspace: Workspace) -> None:
    mine = [told(workspace, "Mara", user="lena") for _ in range(2)]
    for _ in range(5):
        told(workspace, "Mara", user="otto")
    latest = told(workspace, "Mara", user="lena")
    link_memories(workspace_id=workspace.pk, policy=with_graph(entity_neighbours=2))
    assert {frozenset((latest.pk, one.pk)) for one in mine} <= pairs(EdgeKind.ENTITY)


def test_the_same_words_from_elsewhere_reinforce_the_links_of_the_first(workspace: Workspace) -> None:
    """L19: seen again, +0.05, and the grace begins anew; once, however often it is looked at."""
    told(workspace, "Mara")
    first = told(workspace, "Mara", text="Mara grows apples.")
    link_memories(workspace_id=workspace.pk)
    seen = Edge.objects.get()
    told(workspace, "Mara", text=first.text, minutes=60)
    link_memories(workspace_id=workspace.pk)
    link_memories(workspace_id=workspace.pk)
    edge = Edge.objects.get(pk=seen.pk)
    assert (seen.confidence, edge.confidence) == (0.7, 0.75)
    assert edge.last_seen_at == factories.NOW + timedelta(minutes=60)
    assert edge.decays_at == edge.last_seen_at + timedelta(days=180)


def test_memories_of_other_workspaces_are_never_linked(workspace: Workspace) -> None:
    told(workspace, "Mara", session="s")
    told(factories.workspace(), "Mara", session="s")
    assert link_due_memories(policy=settings.POLICY) == 2
    assert (Edge.objects.count(), Entity.objects.count(), Box.objects.count()) == (0, 2, 2)


def test_what_is_not_active_is_not_linked(workspace: Workspace) -> None:
    told(workspace, "Mara", status="forgotten")
    told(workspace, "Mara")
    assert link_memories(workspace_id=workspace.pk) == 1
    assert Edge.objects.count() == 0


def test_batches_together_are_as_good_as_one(workspace: Workspace) -> None:
    for minutes in range(7):
        told(workspace, "Mara", session="s", minutes=minutes)
    link_memories(workspace_id=workspace.pk, policy=with_graph(batch=2))
    in_batches = everything()["Edge"]
    Entity.objects.all().delete()
    Edge.objects.all().delete()
    Box.objects.all().delete()
    link_memories(workspace_id=workspace.pk)
    ends = ("source_id", "target_id", "kind", "confidence")
    assert {tuple(edge[name] for name in ends) for edge in in_batches} == set(Edge.objects.values_list(*ends))


def test_what_a_slow_writer_stored_meanwhile_is_found(workspace: Workspace) -> None:
    """A number is drawn before its row is seen: the mark waits for those who may still be storing."""
    slow = told(workspace, "Mara")
    latest = told(workspace, "Mara")
    Episode.objects.filter(pk=slow.pk).update(status="archived")  # nobody sees it yet
    link_memories(workspace_id=workspace.pk)
    assert MaintenanceState.objects.get().linked_number == 0
    Episode.objects.filter(pk=slow.pk).update(status="active")
    assert link_memories(workspace_id=workspace.pk) == 1
    assert pairs(EdgeKind.ENTITY) == {frozenset((slow.pk, latest.pk))}
    assert BoxMember.objects.count() == 2


def test_the_mark_follows_when_writers_must_be_done(workspace: Workspace) -> None:
    latest = told(workspace, "Mara")
    link_memories(workspace_id=workspace.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_maintenancestate SET next_at = now() - interval '16 minutes'")
    link_memories(workspace_id=workspace.pk)
    assert MaintenanceState.objects.get().linked_number == latest.number


def test_a_workspace_that_somebody_else_links_is_left_to_them(workspace: Workspace) -> None:
    told(workspace, "Mara")
    facts = connection.settings_dict
    with psycopg.connect(host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"]) as other:
        other.execute("SELECT pg_advisory_xact_lock(4, %s)", [workspace.pk])
        assert link_memories(workspace_id=workspace.pk) == 0
    assert BoxMember.objects.count() == 0
    assert link_memories(workspace_id=workspace.pk) == 1


def test_a_cause_that_an_extraction_named_is_linked_to_its_effect(workspace: Workspace) -> None:
    """L19: from the memory that says the cause, in its session, with the share of its words that it has."""
    cause = told(workspace, session="s", text="The dam broke in the night.")
    told(workspace, session="t", text="The dam broke in the night.")
    told(workspace, session="s", user="otto", text="The dam broke in the night.")
    why = ["The dam broke", "Nobody said this"]
    effect = told(workspace, session="s", text="The mill is closed.", minutes=1, causes=why)
    link_memories(workspace_id=workspace.pk)
    [edge] = Edge.objects.filter(kind=EdgeKind.CAUSAL)
    assert (edge.source_id, edge.target_id, edge.kind) == (cause.pk, effect.pk, EdgeKind.CAUSAL)
    assert (edge.weight, edge.confidence) == (1.0, 0.8)


def test_a_text_that_breaks_the_reading_of_names_has_none(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6 (14): those of its batch are linked."""

    def break_over_one(*, text: str, **given: Any) -> tuple[str, ...]:
        if "99:99" in text:
            raise ValueError("invalid literal: '99:99'")
        return find_entities(text=text, **given)

    monkeypatch.setattr("memory.graph.edges.find_entities", break_over_one)
    for text in ("They met Rosalind at 99:99.", "They met Rosalind at noon.", "They saw Rosalind again."):
        factories.episode(workspace=workspace, text=text, language="en")
    assert link_memories(workspace_id=workspace.pk) == 3
    assert Mention.objects.count() == 2


def test_an_error_in_one_workspace_ends_no_other_ones_linking(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6 (15)."""
    after = factories.workspace()
    for one in (workspace, after):
        told(one, "rosalind")

    def break_for_the_first(*, workspace_id: int, **given: Any) -> None:
        if workspace_id == workspace.pk:
            raise KeyError(workspace_id)
        put_into_boxes(workspace_id=workspace_id, **given)

    monkeypatch.setattr("memory.graph.linking.put_into_boxes", break_for_the_first)
    assert link_due_memories(policy=settings.POLICY) == 1
    assert BoxMember.objects.get().workspace_id == after.pk


def test_texts_as_long_as_may_be_are_linked_in_no_time(workspace: Workspace) -> None:
    """E6 (14): one letter, one word, one name, over and over."""
    for part in ("x", "aB", "Rosalind ", "_", "é"):
        factories.episode(workspace=workspace, text=part * (LONG // len(part.encode())), language="en")
    began = time.thread_time()
    assert link_memories(workspace_id=workspace.pk) == 5
    assert time.thread_time() - began < 5.0
