"""B19: forgotten while a cycle is at work on it: no evidence comes of it, wherever the cycle stands."""

from collections.abc import Callable

import pytest

from memory.consolidation.cycle import open_cycle
from memory.domain.evidence import Verdict
from memory.forgetting import forget_episode
from memory.models import Belief, Cycle, Episode, Evidence, JobVerdict, StructuralJob, Trigger
from tests.consolidation.steps import steps_of
from tests.consolidation.test_scripted_year import EARLY, FIVE, SIX, STORM, script, state
from tests.consolidation.world import World
from tests.forgetting.forgetful import DAY, LENA, all_is_sound, episode_of

STEPS = ("extract", "cluster", "synthesize", "classify", "gate", "finish")


def run_with(world: World, *, before: str, act: Callable[[], object]) -> Cycle:
    """Run a cycle step by step and do something before the first step of that name."""
    world.now += DAY
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    done = False
    for step in steps_of(cycle):
        if step.name == before and not done:
            act()
            done = True
        step.run(cycle.attempt)
    assert done
    cycle.refresh_from_db()
    world.check(cycle)
    return cycle


def forgetting(world: World, *texts: str) -> Callable[[], object]:
    def act() -> None:
        for text in texts:
            forget_episode(episode=episode_of(text), actor=LENA, now=world.now)

    return act


@pytest.mark.parametrize("step", STEPS)
def test_a_member_of_a_new_cluster(world: World, step: str) -> None:
    """Four say the same: the belief is born of the other three, or counts without the fourth if it was there first."""
    script(world)
    world.say_all(EARLY[:4], about="kiln")
    run_with(world, before=step, act=forgetting(world, EARLY[1]))
    assert state(FIVE) == (4.0, 1.0, 3, 0, "active")
    assert Evidence.objects.filter(episode=episode_of(EARLY[1])).exists() == (step == "finish")
    all_is_sound(world)


@pytest.mark.parametrize("step", STEPS[:5])
def test_a_member_that_the_cluster_cannot_do_without(world: World, step: str) -> None:
    """Of three one is forgotten: nothing is founded, and the others wait in the pool."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    run_with(world, before=step, act=forgetting(world, EARLY[1]))
    assert not Belief.objects.exists()
    assert not Evidence.objects.exists()
    assert world.states(episode_of(EARLY[0]), episode_of(EARLY[2])) == ["pooled", "pooled"]
    world.cycle(after=DAY)
    assert not Evidence.objects.exists()


@pytest.mark.parametrize("step", [step for step in STEPS if step != "synthesize"])
def test_a_single_episode_near_a_belief(world: World, step: str) -> None:
    """Its verdict may be stored by then: it becomes no evidence."""
    script(world)
    belief = world.hold(FIVE, about="kiln", supports=4)
    world.say(STORM[0], about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    run_with(world, before=step, act=forgetting(world, STORM[0]))
    assert JobVerdict.objects.filter(episode=episode_of(STORM[0])).exists() == (step in ("gate", "finish"))
    belief.refresh_from_db()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (5.0, 1.0, 4)


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("step", ["gate", "restructure", "finish"])
def test_evidence_that_a_revision_rests_on(world: World, step: str) -> None:
    """B15: what was decided on other evidence is decided anew; the child never leans on what was forgotten."""
    script(world)
    world.say_all(EARLY, about="kiln")
    world.cycle()
    world.now += 78 * DAY
    world.say_all(STORM, about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    run_with(world, before=step, act=forgetting(world, STORM[0], EARLY[0]))
    world.cycle(after=DAY)
    assert state(FIVE)[4] == "revised"
    assert state(SIX)[:3] == (10.0, 5.0, 13)
    assert StructuralJob.objects.filter(state="applied").count() == 1
    all_is_sound(world)


def test_what_waits_for_its_turn(world: World) -> None:
    """An episode that is forgotten before any cycle took it up takes part in none."""
    script(world)
    world.say_all(EARLY[:4], about="kiln")
    forgetting(world, EARLY[0])()
    world.cycle()
    assert Episode.objects.get(text=EARLY[0]).state == "new"
    assert state(FIVE) == (4.0, 1.0, 3, 0, "active")
