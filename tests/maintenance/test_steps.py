"""L8: each step of maintenance, what it changes and what it leaves alone; done again it changes nothing."""

import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from memory.domain.lifecycle import ConsolidationState
from memory.graph.linking import link_memories
from memory.ledger.transactions import lock_workspace
from memory.maintenance.maintain import MaintenanceRun, decay_edges, merge_entities, merge_notes, seal_boxes
from memory.models import Box, Edge, Entity, Episode, Mention, Transition, Workspace
from memory.search.vectors import NearEpisode, nearest_older_episodes
from tests import factories
from tests.recall.memories import remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def visit(workspace: Workspace, *, days: float = 0) -> MaintenanceRun:
    now = factories.NOW + timedelta(days=days)
    return MaintenanceRun(workspace_id=workspace.pk, now=now, ends_at=time.monotonic() + 60, policy=settings.POLICY)


def told(workspace: Workspace, *names: str, **given: Any) -> Episode:
    return factories.episode(workspace=workspace, entities=list(names), **given)


def noted(workspace: Workspace, text: str, *, minutes: float = 0, **given: Any) -> Episode:
    at: datetime = factories.NOW + timedelta(minutes=minutes)
    fields: dict[str, Any] = {
        "state": ConsolidationState.SETTLED,
        "category": "preference",
        "occurred_at": at,
        "speaker": "Mara",
    }
    return remembered(text, workspace=workspace, **fields | given)


def test_entities_whose_names_differ_in_accents_or_a_possessive_are_one(workspace: Workspace) -> None:
    """L8, L19: the one that is named most stays, and every memory goes on saying the name that it said."""
    plain = [told(workspace, "zoe") for _ in range(2)]
    accented, possessive = told(workspace, "Zoë"), told(workspace, "Zoe’", "Zoë")
    told(workspace, "Otto")
    link_memories(workspace_id=workspace.pk)
    assert merge_entities(visit(workspace)) == 2
    assert set(Entity.objects.values_list("name", flat=True)) == {"zoe", "otto"}
    zoe = Entity.objects.get(name="zoe")
    said = dict(zoe.mentions.values_list("episode_id", "name"))
    assert said == {plain[0].pk: "zoe", plain[1].pk: "zoe", accented.pk: "zoë", possessive.pk: said[possessive.pk]}
    assert merge_entities(visit(workspace)) == 0


def test_what_names_a_united_entity_is_linked(workspace: Workspace) -> None:
    one, other = told(workspace, "zoe"), told(workspace, "Zoë")
    link_memories(workspace_id=workspace.pk)
    assert Edge.objects.count() == 0
    merge_entities(visit(workspace))
    [edge] = Edge.objects.all()
    assert {edge.source_id, edge.target_id} == {one.pk, other.pk}


def test_a_united_entity_is_known_by_every_name_it_had(workspace: Workspace) -> None:
    told(workspace, "zoe")
    told(workspace, "Zoë")
    link_memories(workspace_id=workspace.pk)
    merge_entities(visit(workspace))
    told(workspace, "Zoë")
    link_memories(workspace_id=workspace.pk)
    assert (Entity.objects.count(), Mention.objects.count()) == (1, 3)


def test_entities_of_other_workspaces_stay_apart(workspace: Workspace) -> None:
    other = factories.workspace()
    for one, name in ((workspace, "zoe"), (other, "Zoë")):
        told(one, name)
        link_memories(workspace_id=one.pk)
    assert merge_entities(visit(workspace)) == 0
    assert Entity.objects.count() == 2


def test_a_note_that_says_what_an_older_one_says_is_merged_into_it(workspace: Workspace) -> None:
    """L8: the older one stays; the way is in the record (D3)."""
    first = noted(workspace, "Mara prefers tea.")
    again = noted(workspace, "Mara prefers tea!", minutes=5)
    third = noted(workspace, "Mara prefers tea", minutes=9)
    assert merge_notes(visit(workspace)) == 2
    statuses = dict(Episode.objects.values_list("pk", "status"))
    assert statuses == {first.pk: "active", again.pk: "merged", third.pk: "merged"}
    reasons = set(Transition.objects.values_list("reason", "actor"))
    assert reasons == {(f"merged into {first.pk}", "system maintain_memory")}
    assert set(Episode.objects.values_list("pk", "merged_into")) == {
        (first.pk, None), (again.pk, first.pk), (third.pk, first.pk),
    }  # fmt: skip
    assert merge_notes(visit(workspace)) == 0


def test_what_was_merged_before_follows_its_survivor(workspace: Workspace) -> None:
    """L8, D3: no way is longer than a step."""
    first, second = noted(workspace, "Mara prefers tea."), noted(workspace, "Mara prefers tea!", minutes=5)
    third = noted(workspace, "She prefers tea.", minutes=9, status="merged", merged_into=second)
    assert merge_notes(visit(workspace)) == 1
    third.refresh_from_db()
    assert third.merged_into == first


def test_notes_are_looked_for_without_a_lock(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """L8: nothing that is consolidated or remembered waits for a search."""
    noted(workspace, "Mara prefers tea.")
    noted(workspace, "Mara prefers tea!", minutes=5)
    held: list[int] = []

    def search(**given: Any) -> dict[str, list[NearEpisode]]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
            held.append(cursor.fetchone()[0])
        return nearest_older_episodes(**given)

    monkeypatch.setattr("memory.maintenance.notes.nearest_older_episodes", search)
    assert merge_notes(visit(workspace)) == 1
    assert held == [0]


def test_notes_are_merged_as_far_as_time_allows(workspace: Workspace) -> None:
    """L8."""
    noted(workspace, "Mara prefers tea.")
    noted(workspace, "Mara prefers tea!", minutes=5)
    assert merge_notes(replace(visit(workspace), ends_at=time.monotonic())) == 0
    assert merge_notes(visit(workspace)) == 1


def test_a_note_is_not_merged_into_what_is_forgotten_meanwhile(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L8: between being found and being merged, one of the two may leave."""
    first = noted(workspace, "Mara prefers tea.")
    again = noted(workspace, "Mara prefers tea!", minutes=5)

    def lock(workspace_id: int) -> None:
        Episode.objects.filter(pk=first.pk).update(status="forgotten")
        lock_workspace(workspace_id)

    monkeypatch.setattr("memory.maintenance.notes.lock_workspace", lock)
    assert merge_notes(visit(workspace)) == 0
    again.refresh_from_db()
    assert again.status == "active"


@pytest.mark.parametrize(
    "given",
    [
        {"state": ConsolidationState.NEW},
        {"state": ConsolidationState.POOLED},
        {"category": "moment"},
        {"speaker": "Otto"},
        {"user": "otto"},
        {"text": "Mara does not prefer tea."},
        {"is_derived": True},
    ],
    ids=str,
)
def test_what_is_no_settled_note_that_says_the_same_is_left_alone(workspace: Workspace, given: dict[str, Any]) -> None:
    noted(workspace, "Mara prefers tea.")
    noted(workspace, given.pop("text", "Mara prefers tea!"), minutes=5, **given)
    assert merge_notes(visit(workspace)) == 0
    assert set(Episode.objects.values_list("status", flat=True)) == {"active"}


@pytest.mark.parametrize(("days", "confidence"), [(179, 0.7), (180, 0.6), (365, 0.4), (4_000, 0.1)])
def test_edges_that_nobody_saw_fade(workspace: Workspace, days: float, confidence: float) -> None:
    """L19: in rows as in the rule, and a second look the same day changes nothing."""
    for _ in range(2):
        told(workspace, "zoe")
    link_memories(workspace_id=workspace.pk)
    decay_edges(visit(workspace, days=days))
    assert Edge.objects.get().confidence == confidence
    assert decay_edges(visit(workspace, days=days)) == 0
    assert Edge.objects.get().last_seen_at == factories.NOW


@pytest.mark.parametrize("cadence", [1, 30, 200])
def test_edges_fade_alike_at_any_cadence(workspace: Workspace, cadence: int) -> None:
    """L19."""
    for _ in range(2):
        told(workspace, "zoe")
    link_memories(workspace_id=workspace.pk)
    for days in range(cadence, 401, cadence):
        decay_edges(visit(workspace, days=days))
    assert Edge.objects.get().confidence == 0.4


def test_the_edges_of_what_was_confirmed_are_seen_again(workspace: Workspace) -> None:
    """L19, L15: once for each confirmation."""
    confirmed = told(workspace, "zoe")
    told(workspace, "zoe")
    link_memories(workspace_id=workspace.pk)
    later = factories.NOW + timedelta(days=100)
    Episode.objects.filter(pk=confirmed.pk).update(confirmed_at=later)
    for _ in range(2):
        decay_edges(visit(workspace, days=200))
    edge = Edge.objects.get()
    assert (edge.confidence, edge.last_seen_at) == (0.75, later)


def test_boxes_into_which_nothing_comes_are_sealed(workspace: Workspace) -> None:
    """L7."""
    told(workspace, "zoe")
    link_memories(workspace_id=workspace.pk)
    assert (
        seal_boxes(visit(workspace)),
        seal_boxes(visit(workspace, days=1)),
        seal_boxes(visit(workspace, days=2)),
    ) == (
        0,
        1,
        0,
    )
    assert Box.objects.get().seal == "idle"
