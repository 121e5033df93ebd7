"""B22: a dry run decides as the cycle would, says what it would cost, and writes nothing."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError

from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import BeliefsDisabled, open_cycle
from memory.consolidation.dry_run import _read_only, dry_run_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import cancel_cycle
from memory.consolidation.read import plan_readings
from memory.domain.identity import Actor, ActorKind
from memory.models import Belief, ClusterJob, Episode, EpisodeEmbedding, ModelCall, Trigger, Workspace
from tests import factories
from tests.consolidation.steps import steps_of
from tests.consolidation.test_budget import say_matters
from tests.consolidation.world import World

KILN = "The kiln of the pottery burns 5 hours."


def planned(workspace: Workspace, now: Any) -> list[tuple[str, list[str], list[str]]]:
    rehearsal = dry_run_cycle(workspace=workspace, now=now)
    return [(job.kind, sorted(job.beliefs), list(job.episodes)) for job in rehearsal.jobs]


def stored(cycle_id: str) -> list[tuple[str, list[str], list[str]]]:
    return [
        (job.kind, sorted(job.pairs), [member.episode_id for member in job.members.all()])
        for job in ClusterJob.objects.filter(cycle=cycle_id).open().order_by("number")
    ]


@pytest.fixture
def busy(world: World) -> World:
    """Return a world with clusters, more than one cycle takes, singles near a belief, and some in the pool."""
    world.hold(KILN, about="kiln")
    world.say("The kiln of the pottery burns wood.", about="kiln", likeness=0.8)
    world.say("A lone word.", about="nothing")
    world.cycle()
    world.now += timedelta(days=1)
    say_matters(world, 12)
    world.say("The kiln of the pottery burns oak.", about="kiln", likeness=0.8)
    world.say("A correction about barn 3.", about="barn 3", category="correction")
    return world


def embed_all(world: World) -> None:
    """Let every episode have its vector before, as those that came over the API have."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    Episode.objects.filter(leased_by=cycle.pk).update(state="new", leased_by=None)
    cycle.delete()


def test_the_plan_is_the_cycles_own(busy: World) -> None:
    """B22: the same clusters of the same episodes in the same order, and the same singles."""
    embed_all(busy)
    foreseen = planned(busy.workspace, busy.now)

    cycle, _ = open_cycle(workspace_id=busy.workspace.pk, now=busy.now, trigger=Trigger.PERSON)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    plan_readings(cycle_id=cycle.pk, attempt=1)
    cluster_episodes(cycle_id=cycle.pk, attempt=1)

    assert foreseen == stored(cycle.pk)
    assert {kind for kind, _, _ in foreseen} == {"cluster", "singles"}


def test_nothing_is_written_and_nobody_asked(busy: World) -> None:
    """B22: not even a lease."""
    embed_all(busy)
    before, asked = busy.rows(), len(busy.server.log)
    dry_run_cycle(workspace=busy.workspace, now=busy.now)
    assert (busy.rows(), len(busy.server.log)) == (before, asked)


@pytest.mark.django_db(transaction=True)
def test_the_database_lets_nothing_be_written() -> None:
    with pytest.raises(DatabaseError, match="read-only transaction"), _read_only():
        Workspace.objects.filter(name="x").update(name="y")


@pytest.mark.django_db
def test_writing_is_possible_again_afterwards() -> None:
    with _read_only():
        assert not Workspace.objects.filter(name="x").exists()
    assert Workspace.objects.filter(name="x").update(name="y") == 0


def test_the_estimate_is_not_exceeded(busy: World, settings: Any) -> None:
    """B22: calls by purpose are what the cycle makes at most, prompts' tokens near to what it sends."""
    settings.ENGRAM_PRICES = {settings.ENGRAM_SYNTHESIS_MODEL: [1, 2], settings.ENGRAM_CLASSIFICATION_MODEL: [1, 2]}
    embed_all(busy)
    ModelCall.objects.all().delete()
    estimate = dry_run_cycle(workspace=busy.workspace, now=busy.now).estimate

    busy.cycle()

    made = {
        purpose: ModelCall.objects.filter(purpose=purpose).count() for purpose in ("synthesize", "classify", "embed")
    }
    assert made["synthesize"] == estimate.calls["synthesize"] == 10
    assert made["embed"] == estimate.calls["embed"] == 10
    assert 0 < made["classify"] <= estimate.calls["classify"]
    assert estimate.tokens > 0
    assert estimate.cost_usd > Decimal(0)


def test_what_is_answered_already_costs_nothing(world: World) -> None:
    """B7, B22: a cycle that was cancelled left its replies in the ledger."""
    say_matters(world, 2)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    for number, step in enumerate(steps_of(cycle)):
        if number == 4:  # extract, read, cluster and the first synthesis
            cancel_cycle(cycle_id=cycle.pk, actor=Actor(kind=ActorKind.PERSON, name="lena"))
        step.run(1)
    rehearsal = dry_run_cycle(workspace=world.workspace, now=world.now)
    assert rehearsal.estimate.calls["synthesize"] == 1
    assert sorted(job.calls for job in rehearsal.jobs) == [2, 3]


def test_episodes_without_a_vector_are_told_apart(world: World) -> None:
    """B22: a server would have to embed them first; that is counted, and not done."""
    said = say_matters(world, 2)
    rehearsal = dry_run_cycle(workspace=world.workspace, now=world.now)
    assert (rehearsal.episodes, rehearsal.unembedded, list(rehearsal.jobs)) == (len(said), 6, [])
    assert rehearsal.estimate.calls == {"embed": 1, "read": 0, "synthesize": 0, "classify": 0}
    assert world.server.log == []


@pytest.mark.django_db
def test_a_local_model_embeds_for_the_rehearsal_alone(workspace: Workspace) -> None:
    """B22: offline, nothing is to be paid, and no vector is stored."""
    for number in range(3):
        factories.episode(
            workspace=workspace, text="Mara deploys the shop on Tuesday.", language="en",
            content_hash=f"{number:064}",
        )  # fmt: skip
    rehearsal = dry_run_cycle(workspace=workspace, now=factories.NOW)
    assert [(job.kind, len(job.episodes)) for job in rehearsal.jobs] == [("cluster", 3)]
    assert (rehearsal.estimate.tokens, rehearsal.estimate.cost_usd) == (0, Decimal(0))
    assert not EpisodeEmbedding.objects.exists()


def test_beliefs_due_by_time_are_counted(world: World) -> None:
    """B14, B22."""
    belief = world.hold(KILN, about="kiln")
    Belief.objects.filter(pk=belief.pk).update(archive_due_at=world.now)
    assert dry_run_cycle(workspace=world.workspace, now=world.now).archive_due == 1


def test_without_beliefs_there_is_nothing_to_rehearse(world: World) -> None:
    Workspace.objects.update(beliefs_enabled=False)
    with pytest.raises(BeliefsDisabled):
        dry_run_cycle(workspace=world.workspace, now=world.now)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()
