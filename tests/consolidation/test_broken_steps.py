"""B11: a step that broke leaves its cycle open for another attempt, and one that lasts too long is sent again."""

import time
from typing import Any

import pytest

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.read import plan_readings
from memory.domain.evidence import Verdict
from memory.models import ClusterJob, Cycle, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.world import World
from tests.model_server_acts import Act, Asked


def open_(world: World) -> Cycle:
    """Open a cycle."""
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def test_the_gate_waits_for_clusters_that_could_not_be_made(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The canvas goes on after a step that raised; the cycle must not."""
    said = world.say_all([f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9)], about="lock")
    cycle = open_(world)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    plan_readings(cycle_id=cycle.pk, attempt=1)
    with monkeypatch.context() as broken:
        broken.setattr("memory.consolidation.cluster.find_clusters", run_out_of_memory)
        with pytest.raises(MemoryError):
            cluster_episodes(cycle_id=cycle.pk, attempt=1)

    assert not apply_jobs(cycle_id=cycle.pk, attempt=1)

    run_steps(cycle=cycle)
    cycle.refresh_from_db()
    assert (cycle.state, cycle.counts["created"]) == ("finished", 1)
    assert set(world.states(*said)) == {"settled"}


def test_the_gate_waits_for_episodes_that_could_not_be_leased(world: World) -> None:
    """A cycle that leased nothing because leasing failed has not found nothing to do."""
    world.say("The lock of the archive lasts 5 seconds.", about="lock")
    cycle = open_(world)
    Cycle.objects.update(state="running")
    plan_readings(cycle_id=cycle.pk, attempt=1)
    cluster_episodes(cycle_id=cycle.pk, attempt=1)

    assert not apply_jobs(cycle_id=cycle.pk, attempt=1)


def run_out_of_memory(**_: object) -> None:
    raise MemoryError


def test_a_step_begins_no_call_after_its_time_however_many_it_has_made(world: World, decree: Decree) -> None:
    """B9: the candidate's verdicts are asked for in the same step as those on beliefs, and share its minute."""
    decree("budget", last_call_seconds=1.5, call_seconds=4.0, margin_seconds=0.1)
    statement = "The lock of the archive is blue."
    world.hold(statement, about="lock", likeness=0.85)
    said = world.say_all([f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9)], about="lock")
    world.verdicts |= {f"{statement}|{episode.text}": Verdict.IRRELEVANT for episode in said}
    slow_down(world, statement)
    cycle = open_(world)

    run_steps(cycle=cycle)

    assert world.calls("classify") == 1
    job = ClusterJob.objects.get()
    assert (job.state, job.lease_owner) == ("synthesized", "")
    run_steps(cycle=cycle)
    assert world.calls("classify") == 2
    assert set(world.states(*said)) == {"settled"}


def slow_down(world: World, statement: str) -> None:
    """Let the model think longer about a statement than a step may begin calls."""

    def answer(asked: Asked) -> Act | dict[str, Any]:
        if asked.purpose == "classify" and asked.items[0]["belief"] == statement:
            time.sleep(1.7)
        return world.answer(asked)

    world.server.script = answer
