"""R14: a workspace's memory leaves a database and comes into another as it was, and beliefs live on there."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.apps import apps

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import open_cycle
from memory.consolidation.rebuild import CycleIsOpen
from memory.consolidation.undo import undo_cycle
from memory.erasure.erase import erase_memories
from memory.export import exporter
from memory.export.file_format import BrokenFile, tables
from memory.forgetting import forget_episode
from memory.graph.linking import link_memories
from memory.history import beliefs_as_of
from memory.models import (
    Belief,
    BeliefEvent,
    ContradictionCandidate,
    Cycle,
    Entity,
    Episode,
    Mention,
    ModelCall,
    Project,
    Trigger,
    Turn,
    TurnEpisode,
    Workspace,
)
from memory.models.conversations import RememberJob
from memory.search.vectors import read_episode_vectors
from tests import factories
from tests.consolidation.test_rebuild import live_a_year
from tests.consolidation.world import World
from tests.export.files import LENA, edited, exported, imported, moved
from tests.forgetting.forgetful import all_is_sound
from tests.recall.memories import remembered

# What a file leaves out, each with its reason.
LEFT_OUT = {
    "Workspace": "the header has what memories hang on; name, caps and people are a workspace's own",
    "Membership": "who belongs to a workspace is its own affair",
    "ApiKey": "keys open one workspace only",
    "WorkspacePause": "tells of model servers here and now",
    "TextStatistics": "counted anew",
    "TermFrequency": "counted anew",
    "VectorCount": "counted anew",
    "Redaction": "tells what was taken out here",
    "ReadingStream": "tells who reads here and now",
    "MaintenanceState": "told anew by which memories have links",
    "MetricCounter": "belongs to no workspace",
    "Heartbeat": "belongs to no workspace",
    "MemoryFile": "names a file of this machine",
    "PublishedBelief": "stands in a file of this machine",
    "GraduatedEpisode": "stands in a file of this machine",
    "PublicationStep": "tells of files of this machine",
    "PublicationDue": "waits for files of this machine",
}


def live(world: World) -> None:
    """Let a year pass in which everything happens: changes of structure, an undoing, a forgetting, an erasing."""
    world.workspace.projects.create(slug="mühle", path="/srv/mill", created_at=factories.NOW)
    live_a_year(world)
    newest = Cycle.objects.order_by("-opened_at").first()
    assert newest
    undo_cycle(cycle_id=newest.pk, actor=LENA, now=world.now)
    project = Project.objects.get()
    remembered("Zwölf Boxkämpfer: “Ω”\n…", workspace=world.workspace, project=project, user="mara", tags=["a", "b"])
    curate_belief(
        belief_id=Belief.objects.order_by("pk")[0].pk, act=CuratorAction.PIN, reason="dear", actor=LENA, now=world.now
    )
    first, second = Episode.objects.filter(text__startswith="Winter note")[:2]
    forget_episode(episode=first, actor=LENA, now=world.now)
    mine = Episode.objects.filter(pk=second.pk)
    erase_memories(workspace=world.workspace, episodes=mine, actor=LENA, now=world.now)


@pytest.mark.django_db
def test_times_of_any_year_move() -> None:
    """R14: from the first to the last of the calendar."""
    workspace = factories.workspace()
    for year in (1, 999, 9999):
        remembered(f"In {year} they built.", workspace=workspace, occurred_at=datetime(year, 6, 1, tzinfo=UTC))
    file, fresh = moved(workspace)
    assert exported(fresh) == file


@pytest.mark.django_db
def test_what_was_merged_moves_with_its_survivor() -> None:
    """R14, D3: in whatever order their rows come; a survivor that the file lacks is refused."""
    workspace = factories.workspace()
    for merged, survivor in (("ep_aa0000000000", "ep_ff0000000000"), ("ep_dd0000000000", "ep_bb0000000000")):
        factories.episode(workspace=workspace, id=survivor)
        factories.episode(workspace=workspace, id=merged, status="merged", merged_into_id=survivor)
    file, fresh = moved(workspace)
    assert exported(fresh) == file
    broken = file.replace(b'"merged_into":"ep_ff0000000000"', b'"merged_into":"ep_000000000001"')
    fresh.delete()
    with pytest.raises(BrokenFile, match="merged_into: the file has no ep_000000000001"):
        imported(broken, workspace=factories.workspace())


@pytest.mark.parametrize("at_once", [500, 1])
def test_it_is_the_same_to_the_last_byte_after_a_move(
    world: World, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: exported, read into an empty workspace, exported again; however many rows are on their way at once."""
    monkeypatch.setattr("memory.export.importer._BATCH", at_once)
    monkeypatch.setattr("memory.export.importer._KEYS_AT_ONCE", at_once)
    live(world)
    file, fresh = moved(world.workspace)
    assert exported(fresh) == file


def test_every_table_is_written_or_left_out_for_a_reason() -> None:
    """R14: a table that somebody adds is not forgotten."""
    models = {model.__name__ for model in apps.get_app_config("memory").get_models()}
    assert {table.model.__name__ for table in tables()} | LEFT_OUT.keys() == models
    assert not {table.model.__name__ for table in tables()} & LEFT_OUT.keys()


def test_numbers_and_order_do_not_tell_of_other_workspaces(world: World) -> None:
    """R14: keys that are the database's own are written as numbers from 1."""
    live(world)
    file = exported(world.workspace)
    for _ in range(3):
        factories.evidence(
            belief=factories.belief(workspace=factories.workspace()),
            episode=factories.episode(workspace=factories.workspace()),
        )
    world.workspace.delete()
    fresh = factories.workspace()
    imported(file, workspace=fresh)
    assert exported(fresh) == file


@pytest.mark.django_db(transaction=True)  # when a pin came, its transaction tells
def test_beliefs_live_on_where_they_came_to(world: World) -> None:
    """R14, B22: no drift, all as recorded, and the next cycle goes on."""
    live(world)
    _, world.workspace = moved(world.workspace)
    all_is_sound(world)
    world.say_all([f"Boat log {n}: the boat is blue." for n in range(3)], about="boat")
    cycle = world.cycle(after=timedelta(days=1))
    assert cycle.counts["created"] == 1
    all_is_sound(world)


def test_what_was_believed_then_is_believed_then(world: World) -> None:
    """R10: history comes along, and no row that tells of the import."""
    live(world)
    then = factories.NOW + timedelta(days=45)
    told = ("pgh_obj_id", "statement", "alpha")
    before = sorted(beliefs_as_of(beliefs=Belief.objects.all(), at=then).values_list(*told))
    events = BeliefEvent.objects.count()
    moved(world.workspace)
    assert sorted(beliefs_as_of(beliefs=Belief.objects.all(), at=then).values_list(*told)) == before
    assert (before != [], BeliefEvent.objects.count()) == (True, events)


def test_vectors_come_with_their_model(world: World) -> None:
    """R14: to the last bit."""
    episode = remembered("Tabs.", workspace=world.workspace)
    model = episode.embeddings.get().model
    _, before = read_episode_vectors(model=model, ids=[episode.pk])
    moved(world.workspace)
    _, after = read_episode_vectors(model=model, ids=[episode.pk])
    assert np.array_equal(before, after)


def test_a_workspace_takes_over_what_its_memory_hangs_on(world: World) -> None:
    """R10a, L4: the model of confidence, what was erased, and the key of that."""
    Workspace.objects.update(confidence_model="additive", discount_repeats=False, erasure_key=b"k" * 32)
    world.workspace.refresh_from_db()
    _, fresh = moved(world.workspace)
    assert (fresh.confidence_model, fresh.discount_repeats) == ("additive", False)
    assert bytes(fresh.erasure_key or b"") == b"k" * 32


def test_numbers_that_do_not_follow_from_the_evidence_are_counted_anew(world: World) -> None:
    """R14, B4: whoever wrote the file."""
    belief = world.hold("The mill burns.", about="mill", supports=3)

    def change(lines: list[Any]) -> None:
        next(line["belief"] for line in lines if "belief" in line)["alpha"] = 50.0

    file = edited(exported(world.workspace), change)
    world.workspace.delete()
    fresh = factories.workspace()
    assert imported(file, workspace=fresh).recomputed == 1
    assert Belief.objects.get(pk=belief.pk).alpha == 4.0
    assert BeliefEvent.objects.latest("pgh_id").pgh_context["actor"] == "person lena"


def test_later_episodes_come_after_those_that_were_imported(world: World) -> None:
    """Turns of a session keep their order."""
    world.say_all(["One.", "Two.", "Three."], about="x")
    moved(world.workspace)
    numbers = list(Episode.objects.order_by("number").values_list("text", flat=True))
    later = factories.episode(workspace=Workspace.objects.get())
    later.refresh_from_db()
    assert numbers == ["One.", "Two.", "Three."]
    assert later.number > max(Episode.objects.exclude(pk=later.pk).values_list("number", flat=True))


def test_an_open_cycle_stands_in_the_way(world: World) -> None:
    """R14: half of its work would be neither here nor there."""
    open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    with pytest.raises(CycleIsOpen):
        exported(world.workspace)


def test_a_users_file_is_theirs_alone(world: World) -> None:
    """R14: their episodes, their beliefs, what speaks of these, and nobody else's name."""
    mine = remembered("Mara likes tabs.", workspace=world.workspace, user="mara")
    remembered("Toma likes spaces.", workspace=world.workspace, user="toma")
    belief = factories.belief(workspace=world.workspace, user="mara", statement="Mara likes tabs.")
    factories.evidence(belief=belief, episode=mine)
    factories.evidence(belief=factories.belief(workspace=world.workspace, statement="All like tabs."), episode=mine)
    file = exported(world.workspace, user="mara").decode()
    kinds = [next(iter(json.loads(line))) for line in file.splitlines()]
    assert kinds == ["engram", "episode", "episode_vector", "belief", "belief_change", "evidence"]
    assert "Toma" not in file
    assert "All like" not in file


@pytest.mark.django_db
def test_a_users_file_has_what_links_their_memories() -> None:
    """R14: what is named in them, their edges and boxes, and what was remembered at once; nothing of others'."""
    workspace = factories.workspace()
    for user in ("mara", "toma"):
        for text in ("Zoe rows.", "Zoe sails."):
            told = factories.episode(workspace=workspace, user=user, text=f"{user}: {text}", entities=["zoe"])
        RememberJob.objects.create(workspace=workspace, episode=told, actor=user, created_at=factories.NOW)
    link_memories(workspace_id=workspace.pk)
    rows = [json.loads(line) for line in exported(workspace, user="mara").decode().splitlines()]
    counts = Counter(next(iter(row)) for row in rows)
    kept = {kind: counts[kind] for kind in ("entity", "mention", "edge", "box_member", "remembrance")}
    assert kept == {"entity": 1, "mention": 2, "edge": 1, "box_member": 2, "remembrance": 1}
    assert counts["box"] >= 1
    assert "toma" not in json.dumps(rows)


@pytest.mark.django_db
def test_a_users_file_has_which_of_their_beliefs_may_contradict_each_other() -> None:
    """R14, R11: and none that is another's, nor what somebody else calls what they name, too."""
    workspace = factories.workspace()
    mine, other, shared = sorted(factories.belief(workspace=workspace, user=user).pk for user in ("mara", "mara", ""))
    owners = dict(Belief.objects.values_list("pk", "user"))
    for first, second in ((mine, other), (mine, shared), (other, shared)):
        ContradictionCandidate.objects.create(
            workspace=workspace, first_id=first, second_id=second, similarity=0.7, created_at=factories.NOW
        )
    for user, name in (("toma", "robert"), ("mara", "bob")):
        told = factories.episode(workspace=workspace, user=user)
        entity, _ = Entity.objects.get_or_create(
            workspace=workspace, defaults={"name": "robert", "created_at": factories.NOW}
        )
        Mention.objects.create(workspace=workspace, entity=entity, episode=told, name=name)
    rows = [json.loads(line) for line in exported(workspace, user="mara").decode().splitlines()]
    rivals = [row["rival"] for row in rows if "rival" in row]
    assert [{owners[pair["first"]], owners[pair["second"]]} for pair in rivals] == [{"mara"}]
    assert [row["mention"]["name"] for row in rows if "mention" in row] == ["bob"]
    assert [row["mention"]["entity"] for row in rows if "mention" in row] == [None]
    assert "robert" not in json.dumps(rows)


@pytest.mark.django_db
def test_conversations_move_with_what_was_read_out_of_them() -> None:
    """R14, L2: what waits, waits on there."""
    workspace = factories.workspace()
    project = factories.project(workspace=workspace, slug="harbour")
    told = factories.turn(workspace=workspace, session="s", user="mara", project=project, state="extracted")
    factories.turn(workspace=workspace, session="s", user="mara", project=project, content="“Ω”\n…", turn_id="m-1")
    factories.turn(workspace=workspace, session="t", user="toma", state="failed", state_reason="malformed")
    episode = remembered("The tide is low.", workspace=workspace, user="mara", project=project)
    TurnEpisode.objects.create(workspace=workspace, turn=told, episode=episode)
    ModelCall.objects.create(
        workspace=workspace, conversation=told.conversation, purpose="facts", model="m", input_hash="h", outcome="ok"
    )
    theirs = exported(workspace, user="mara").decode()
    assert "toma" not in theirs
    assert [row["turn"]["conversation"] for row in map(json.loads, theirs.splitlines()) if "turn" in row] == [1, 1]
    file, fresh = moved(workspace)
    assert exported(fresh) == file
    waiting = Turn.objects.waiting().get(workspace=fresh)
    assert (waiting.content, waiting.conversation.buffered, waiting.conversation.session) == ("“Ω”\n…", 1, "s")
    assert ModelCall.objects.get(workspace=fresh).conversation == waiting.conversation


def test_what_is_exported_is_held_in_small_parts(world: World) -> None:
    """R14: a block for so many rows."""
    world.say_all([f"Note {n}." for n in range(450)], about="x")
    blocks = list(exporter.export_workspace(workspace=world.workspace))
    assert max(block.rows for block in blocks) <= exporter._BATCH
    assert sum(block.rows for block in blocks) == blocks[0].of == 450
