"""B8.1: what a cycle leases, and in which order."""

import time
from datetime import timedelta

import pytest

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.read import plan_readings
from memory.models import CycleStep, Episode, EpisodeEmbedding, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.world import MODEL, World


def test_corrections_come_first_then_what_happened_first(world: World, decree: Decree) -> None:
    """B8.1: at most so many, corrections before all, the others by the time of what happened."""
    decree("consolidation", lease_episodes=3)
    hour = timedelta(hours=1)
    late = world.say("The shed was painted.", about="late", occurred_at=world.now)
    early = world.say("The shed was built.", about="early", occurred_at=world.now - 3 * hour)
    middle = world.say("The shed was roofed.", about="middle", occurred_at=world.now - 2 * hour)
    correction = world.say("No, the shed is green.", about="correction", category="correction")

    cycle = world.cycle()

    assert world.states(correction, early, middle, late) == ["pooled", "pooled", "pooled", "new"]
    assert CycleStep.objects.get(cycle=cycle, name="extract").counts == {"episodes": 3, "waiting": 4}


def test_what_was_left_is_taken_by_the_next_cycle(world: World, decree: Decree) -> None:
    """B7: state lies on each episode, so no straggler is skipped, however old."""
    decree("consolidation", lease_episodes=2)
    said = [world.say(f"Shed {n} stands alone.", about=f"shed {n}") for n in range(3)]
    world.cycle()
    straggler = world.say("An old shed stood here.", about="old", occurred_at=world.now - timedelta(days=300))

    world.cycle()

    assert set(world.states(*said, straggler)) == {"pooled"}


def test_every_leased_episode_gets_a_vector_of_todays_model(world: World) -> None:
    """B8.1: those that have one are not embedded again; the speaker's prefix is left out."""
    world.say("Ana: The shed is full.", about="shed", speaker="Ana")
    world.cycle()
    world.say("The barn is full.", about="barn")

    world.cycle()

    assert list(EpisodeEmbedding.objects.values_list("model", flat=True)) == [MODEL, MODEL]
    asked = [text for call in world.server.calls("embed") for text in call.texts]
    assert asked == ["The shed is full.", "The barn is full."]


def test_an_episode_that_is_all_echo_settles_and_stops_nobody(world: World) -> None:
    """B4: there is nothing to embed in it, and nothing to learn."""
    echo = world.say("[Belief (0.85): The shed is full.]", about="echo")
    said = world.say_all([f"Shed {n} is full." for n in range(3)], about="shed")

    world.cycle()

    assert world.states(echo, *said) == ["settled"] * 4
    assert Episode.objects.get(pk=echo.pk).state_reason == "echo"
    assert world.only_belief().evidence_count == 3


def test_what_a_crash_left_without_a_vector_is_not_pooled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7, B11: the step died of an error and the canvas went on; the episodes are as new as before."""
    said = world.say_all([f"Shed {n} is full." for n in range(3)], about="shed")
    monkeypatch.setattr("memory.consolidation.extract.embed_with_retries", lambda **_: 1 / 0)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    with pytest.raises(ZeroDivisionError):
        extract_episodes(cycle_id=cycle.pk, attempt=1)

    plan_readings(cycle_id=cycle.pk, attempt=1)
    cluster_episodes(cycle_id=cycle.pk, attempt=1)
    apply_jobs(cycle_id=cycle.pk, attempt=1)
    finish_cycle(cycle_id=cycle.pk, attempt=1)

    assert set(world.states(*said)) == {"new"}
    monkeypatch.undo()
    world.cycle()
    assert world.only_belief().evidence_count == 3


def test_what_a_step_has_no_time_for_goes_back(world: World, decree: Decree, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6, B9: a step ends before its task's limits do; the cycle goes on, and the next one embeds the rest."""
    monkeypatch.setattr("memory.consolidation.extract.EMBEDDING_BATCH", 1)
    decree("budget", call_seconds=3.0, margin_seconds=0.1, last_call_seconds=4.0)
    world.trouble.after_embedding = lambda: time.sleep(2.5)
    said = [world.say(f"Shed {n} stands alone.", about=f"shed {n}") for n in range(3)]

    cycle = world.cycle()

    assert (cycle.state, cycle.budget_spent) == ("finished", "")
    assert sorted(world.states(*said)) == ["new", "pooled", "pooled"]
    assert EpisodeEmbedding.objects.count() == 2
    world.trouble.after_embedding = lambda: None
    world.cycle()
    assert set(world.states(*said)) == {"pooled"}
