"""B22: what was undone is not done again, unless its episodes are released; and some changes not even then."""

from collections.abc import Callable

import pytest

from memory.consolidation.undone import CycleNotUndone, release_quarantined, select_quarantined
from memory.models import Belief, ClusterJob, Cycle, Episode, Evidence, GateDecision, StructuralJob
from tests.consolidation.conftest import Decree
from tests.consolidation.restructuring import OLD, TWIN, contradict, divided, doubted, job_of, twins
from tests.consolidation.undoing import DAY, HOUR, created, kept, reinforced, snapshot, undo
from tests.consolidation.world import World


def reason_of(belief: Belief, gate: str, cycle: Cycle) -> str:
    return GateDecision.objects.get(belief=belief, gate=gate, cycle=cycle).reason


def test_its_episodes_are_held_and_take_no_part(world: World) -> None:
    """B22: the next cycle finds nothing to do, and asks no model."""
    cycle = created(world)
    undo(world, cycle)
    asked = len(world.server.log)

    following = world.cycle(after=HOUR)

    assert set(Episode.objects.values_list("state", "state_reason")) == {("held", f"cycle {cycle.pk} undone")}
    assert (following.counts["episodes"], following.counts["clusters"], len(world.server.log)) == (0, 0, asked)
    assert not Episode.objects.pending().exists()


def test_released_episodes_are_taken_up_again_without_another_call(world: World) -> None:
    """B7, B22: the set that was tried counts as untried, and what models said of it is still stored."""
    cycle = created(world)
    undone = undo(world, cycle)
    asked = len(world.server.log)

    released = release_quarantined(episodes=select_quarantined(cycle=undone.cycle))
    again = world.cycle(after=HOUR)

    assert (released, again.counts["created"]) == (3, 1)
    assert Belief.objects.get(status="active").statement == OLD
    assert [call.purpose for call in world.server.log[asked:]] == ["embed"]


def test_an_episode_with_more_to_be_asked_is_held_although_it_is_new(world: World) -> None:
    """B8.3, B22: else the next cycle would take it up and do the same again."""
    created(world)
    cycle = reinforced(world)
    said = Evidence.objects.get(cycle=cycle).episode
    Episode.objects.filter(pk=said.pk).update(state="new", state_reason="more beliefs to be asked")

    undo(world, cycle)

    assert world.states(said) == ["held"]


def test_what_was_pooled_beside_a_full_cluster_is_held_too(world: World, decree: Decree) -> None:
    """B8.2, B22: what was pooled beside it says the same, and would found the same belief anew."""
    decree("consolidation", cluster_max=3)
    world.statements["kiln"] = OLD
    world.directions.place(OLD, {"kiln": 1.0})
    said = world.say_all([f"Potter's log {n}: the kiln burnt for 5 hours." for n in range(7)], about="kiln")
    elsewhere = world.say("The weir was mended.", about="weir")
    cycle = world.cycle()
    assert sorted(world.states(*said)) == ["pooled"] * 4 + ["settled"] * 3

    undone = undo(world, cycle)
    following = world.cycle(after=HOUR)

    assert (undone.held, set(world.states(*said)), world.states(elsewhere)) == (7, {"held"}, ["pooled"])
    assert (following.counts["created"], following.counts["clusters"]) == (0, 0)
    release_quarantined(episodes=select_quarantined(cycle=undone.cycle))
    assert world.cycle(after=HOUR).counts["created"] == 1


def test_evidence_of_an_earlier_cycle_stays_settled(world: World) -> None:
    """B22: what a structural change judged anew is not of the cycle's episodes."""
    old = doubted(world)
    contradict(world)
    cycle = world.cycle()

    undone = undo(world, cycle)

    assert undone.counts["held"] == 1
    assert set(Episode.objects.filter(evidence__belief=old).values_list("state", flat=True)) == {"settled"}


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize(("bring_about", "gate"), [(doubted, "revise"), (divided, "split")])
def test_a_change_that_was_undone_is_not_made_again_for_ninety_days(
    world: World, bring_about: Callable[[World], Belief], gate: str
) -> None:
    """B22: the gate says why, though its evidence was released; afterwards it opens."""
    belief = bring_about(world)
    if gate == "revise":
        contradict(world)
    undone = undo(world, world.cycle())

    release_quarantined(episodes=select_quarantined(cycle=undone.cycle))
    again = world.cycle(after=HOUR)

    decision = GateDecision.objects.get(belief=belief, gate=gate, cycle=again)
    assert (decision.passed, decision.reason) == (False, "undone_lately")
    assert decision.facts["days_since_undone"] == pytest.approx(1 / 24)
    assert (world.now_of(belief).status, StructuralJob.objects.count()) == ("active", 1)

    # A word or two more, so that the gate is asked.
    if gate == "revise":
        contradict(world)
        contradict(world)
    else:
        world.say("Potter's log: a word in favour of the kiln.", about="kiln", likeness=0.8)
    later = world.cycle(after=91 * DAY)
    assert GateDecision.objects.get(belief=belief, gate=gate, cycle=later).passed


def test_a_merge_that_was_undone_is_not_made_again_for_ninety_days(world: World) -> None:
    """B13, B22: neither belief is asked about with the other."""
    one, other = twins(world)
    before = snapshot(world)
    world.unions |= {OLD: "", TWIN: ""}
    cycle = world.cycle()
    assert cycle.counts["merged"] == 1

    undo(world, cycle)
    assert kept(world, before) == before
    world.say("Potter's log: 5 hours, as ever.", about="kiln", likeness=0.75)
    again = world.cycle(after=HOUR)

    assert {reason_of(one, "merge", again), reason_of(other, "merge", again)} == {"undone_lately"}
    world.say("Potter's log: 5 hours, to this day.", about="kiln", likeness=0.75)
    assert world.cycle(after=90 * DAY).counts["merged"] == 1


def test_a_change_that_was_only_decided_is_refused(world: World) -> None:
    """B22: a structural job that was carried over does not outlive the cycle that decided it."""
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: Cycle.objects.filter(finished_at=None).update(budget_spent="enough")
    cycle = world.cycle()
    assert (job_of(world).state, job_of(world).cycle) == ("queued", None)

    undo(world, cycle)
    world.before_gate = lambda: None
    world.cycle(after=HOUR)

    assert (job_of(world).state, job_of(world).refusal) == ("refused", "undone")
    assert (world.now_of(old).status, world.calls("revise")) == ("active", 0)


def test_only_an_undone_cycle_holds_episodes(world: World) -> None:
    cycle = created(world)

    with pytest.raises(CycleNotUndone, match="was not undone"):
        select_quarantined(cycle=cycle)


def test_an_invalidated_newborn_is_neither_judged_nor_a_tombstone(world: World) -> None:
    """B22: others may say the same, and it is believed on their word."""
    undo(world, created(world))
    world.say_all([f"The kiln log of {day}: 5 hours." for day in ("Monday", "Tuesday", "Friday")], about="kiln")

    cycle = world.cycle(after=HOUR)

    assert cycle.counts["created"] == 1
    assert ClusterJob.objects.get(cycle=cycle).verdicts.exclude(belief=None).count() == 0
