"""B8.6, B12: a split of which one child is not borne out: what is made, what waits, what is not asked twice."""

from collections import Counter
from datetime import timedelta

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.evidence import Verdict
from memory.models import Belief, ChildVerdict, Episode, Evidence, JobVerdict, StructuralChild
from tests.consolidation.restructuring import OLD, SUMMER, WINTER, child_of, divided, job_of
from tests.consolidation.undoing import DAY, LENA, kept, snapshot, undo
from tests.consolidation.world import World

LOGS = [f"Potter's summer log {n}: 6 hours." for n in range(3)]
PARTIAL = [f"Potter's log {n}: 5 hours in winter only." for n in range(2)]


def disputed(world: World, *, for_summer: int = 2, for_winter: int = 5) -> tuple[Belief, list[Episode]]:
    """Hold a belief that three support and three contradict; return it and what contradicts.

    Of what contradicts, so many will support the summer's half, and nothing else will; so many others the winter's.
    """
    belief = world.hold(OLD, about="kiln", supports=3)
    early = [f"Earlier word {number} on: {OLD}" for number in range(3)]
    for number, text in enumerate([*early, *PARTIAL, *LOGS]):
        world.verdicts[f"{WINTER}|{text}"] = Verdict.SUPPORTS if number < for_winter else Verdict.IRRELEVANT
        world.verdicts[f"{SUMMER}|{text}"] = Verdict.IRRELEVANT
    for text in LOGS[:for_summer]:
        world.verdicts[f"{SUMMER}|{text}"] = Verdict.SUPPORTS
    world.divisions[OLD] = {"in winter": WINTER, "in summer": SUMMER}
    world.directions.place(WINTER, {"kiln": 0.9})
    world.statements["kiln"] = SUMMER
    logs = world.say_all(LOGS, about="kiln", likeness=0.9, verdict=Verdict.CONTRADICTS)
    world.cycle()
    assert set(world.states(*logs)) == {"settled"}
    return belief, logs


def qualify(world: World) -> None:
    """Say the partial words that make the belief one to be split."""
    world.say_all(PARTIAL, about="kiln", likeness=0.8, verdict=Verdict.PARTIAL)


def pairs_told(world: World) -> Counter[tuple[str, str]]:
    """Count how often a model was asked about each pair of statement and episode."""
    by_call = {
        *JobVerdict.objects.exclude(call=None).values_list("call", "statement_hash", "episode"),
        *ChildVerdict.objects.exclude(call=None).values_list("call", "child__statement_hash", "episode"),
    }
    return Counter((statement, episode) for _, statement, episode in by_call)


def test_a_split_is_made_with_the_child_that_is_borne_out(world: World) -> None:
    """B8.6, B12: the weak one is refused with its reason, and the belief known to be too wide lives no longer."""
    old, _ = disputed(world)
    qualify(world)

    cycle = world.cycle(after=DAY)

    assert (job_of(world).state, job_of(world).refusal) == ("applied", "")
    refusals = dict(StructuralChild.objects.values_list("statement", "refusal"))
    assert refusals == {WINTER: "", SUMMER: "too_few_supports"}
    assert (child_of(old).statement, child_of(old).evidence_count) == (WINTER, 5)
    assert (world.now_of(old).status, cycle.counts["split"]) == ("split", 1)


def test_a_suppressed_child_is_refused_and_the_other_made(world: World) -> None:
    """B12, B22: what a person forgot is not said again, and keeps nothing else from being said."""
    old, _ = disputed(world, for_summer=3)
    buried = world.hold(SUMMER, about="buried", supports=3)
    curate_belief(belief_id=buried.pk, act=CuratorAction.FORGET, reason="not ours to know", actor=LENA, now=world.now)
    qualify(world)

    world.cycle(after=DAY)

    child = StructuralChild.objects.get(statement=SUMMER)
    assert (child.refusal, child.suppressed_by, child.belief) == ("suppressed", buried, None)
    assert (child_of(old).statement, job_of(world).state) == (WINTER, "applied")


def test_a_split_without_a_child_that_is_borne_out_is_refused(world: World) -> None:
    """B8.6: the belief stays as it is, and so does what its evidence settled."""
    old, logs = disputed(world, for_winter=2)
    qualify(world)

    world.cycle(after=DAY)

    assert (job_of(world).state, job_of(world).refusal) == ("refused", "too_few_supports")
    assert set(StructuralChild.objects.values_list("refusal", flat=True)) == {"too_few_supports"}
    assert (world.now_of(old).status, Belief.objects.count()) == ("active", 1)
    assert set(world.states(*logs)) == {"settled"}


def test_what_spoke_only_for_the_refused_part_waits_in_the_pool(world: World) -> None:
    """B1, B12: from now on, with its full time; what speaks for the child that was made stays settled."""
    old, logs = disputed(world)
    Episode.objects.filter(pk=logs[0].pk).update(pooled_at=world.now - timedelta(days=89))
    qualify(world)

    cycle = world.cycle(after=DAY)

    assert world.states(*logs) == ["pooled"] * 3
    assert set(Episode.objects.filter(state="pooled").values_list("pooled_at", flat=True)) == {cycle.now}
    others = Evidence.objects.filter(belief=child_of(old)).values("episode")
    assert set(Episode.objects.filter(pk__in=others).values_list("state", flat=True)) == {"settled"}


def test_what_is_evidence_of_another_live_belief_too_stays_settled(world: World) -> None:
    """B12: it is not lost."""
    _, logs = disputed(world)
    other = world.hold("The pottery keeps a log.", about="logs")
    Evidence.objects.create(
        workspace=world.workspace, belief=other, episode=logs[0], verdict="SUPPORTS", basis="model",
        created_at=world.now,
    )  # fmt: skip
    world.before_gate = lambda: _recompute(other)
    qualify(world)

    world.cycle(after=DAY)

    assert world.states(*logs) == ["settled", "pooled", "pooled"]


def _recompute(belief: Belief) -> None:
    from memory.ledger.confidence import recompute_beliefs

    recompute_beliefs(beliefs=[Belief.objects.get(pk=belief.pk)], now=belief.updated_at)


def test_a_split_whole_leaves_what_speaks_of_neither_part_settled(world: World) -> None:
    """B12: no part was refused for which it could have spoken."""
    divided(world)

    world.cycle()

    assert set(Episode.objects.values_list("state", flat=True)) == {"settled"}


def test_pooled_ones_found_a_belief_of_their_own_once_there_are_enough(world: World) -> None:
    """B8.4, B12: two supports were too few; with the next word on it they found what the split could not."""
    _, logs = disputed(world)
    qualify(world)
    world.cycle(after=DAY)
    new = "Potter's summer log 9: 6 hours."
    world.verdicts |= {f"{WINTER}|{new}": Verdict.IRRELEVANT, f"{SUMMER}|{new}": Verdict.SUPPORTS}
    late = world.say(new, about="kiln", likeness=0.9)

    cycle = world.cycle(after=DAY)

    own = Belief.objects.get(statement=SUMMER)
    assert (own.status, own.lineage_depth, own.created_in) == ("active", 0, cycle)
    assert world.verdicts_of(own) == dict.fromkeys([*LOGS[:2], new], "SUPPORTS")
    assert world.states(*logs, late) == ["settled", "settled", "pooled", "settled"]


def test_no_pair_is_asked_about_twice(world: World) -> None:
    """B7: neither what is left over against the child that was made, nor the refused statement said anew."""
    disputed(world)
    qualify(world)
    world.contexts[SUMMER] = "in summer"  # as the refused one has it: another context is another question
    world.cycle(after=DAY)
    new = "Potter's summer log 9: 6 hours."
    world.verdicts |= {f"{WINTER}|{new}": Verdict.IRRELEVANT, f"{SUMMER}|{new}": Verdict.SUPPORTS}
    world.say(new, about="kiln", likeness=0.9)
    paid = world.server.calls("classify")

    world.cycle(after=DAY)

    assert [len(call.texts) for call in world.server.calls("classify")[len(paid) :]] == [
        1,
        1,
    ]  # the new one, about either
    assert set(pairs_told(world).values()) == {1}
    assert world.cycle(after=DAY).counts["clusters"] == 0


def test_a_change_that_is_decided_anew_asks_only_about_what_is_new(world: World) -> None:
    """B7, B12: the same two halves again, after a split that was refused."""
    disputed(world, for_winter=2)
    qualify(world)
    world.cycle(after=DAY)
    text = "Potter's log 7: 5 hours in winter only."
    world.verdicts |= {f"{WINTER}|{text}": Verdict.SUPPORTS, f"{SUMMER}|{text}": Verdict.IRRELEVANT}
    world.say(text, about="kiln", likeness=0.8, verdict=Verdict.PARTIAL)

    world.cycle(after=30 * DAY)

    assert ChildVerdict.objects.filter(episode__text=text).count() == 2
    assert ChildVerdict.objects.filter(episode__text=LOGS[0]).count() == 4
    assert set(pairs_told(world).values()) == {1}


def test_undoing_it_settles_what_it_pooled(world: World) -> None:
    """B22: all stands as before; only the undone cycle's own episodes are held."""
    disputed(world)
    before = snapshot(world)
    qualify(world)
    cycle = world.cycle(after=DAY)

    undone = undo(world, cycle)

    assert kept(world, before) == before
    states = dict(Episode.objects.values_list("text", "state"))
    assert {text for text, state in states.items() if state == "held"} == set(PARTIAL)
    assert set(states.values()) == {"held", "settled"}
    assert undone.held == 2
    assert release_quarantined(episodes=select_quarantined(cycle=undone.cycle)) == 2


def test_what_was_pooled_and_founded_a_belief_since_stays_with_it(world: World) -> None:
    """B22: a later cycle's work on other beliefs is not touched."""
    old, logs = disputed(world)
    qualify(world)
    cycle = world.cycle(after=DAY)
    new = "Potter's summer log 9: 6 hours."
    world.verdicts |= {f"{WINTER}|{new}": Verdict.IRRELEVANT, f"{SUMMER}|{new}": Verdict.SUPPORTS}
    world.say(new, about="kiln", likeness=0.9)
    world.cycle(after=DAY)

    undo(world, cycle)

    assert (Belief.objects.get(statement=SUMMER).status, world.now_of(old).status) == ("active", "active")
    assert set(world.states(*logs)) == {"settled"}


@pytest.mark.parametrize("wreck", [False, True])
def test_rebuilding_makes_the_one_child_again(world: World, wreck: bool) -> None:
    """B22: under its id, without the refused one, and what waits in the pool waits there."""
    _, logs = disputed(world)
    qualify(world)
    world.cycle(after=DAY)
    before = snapshot(world)
    if wreck:
        Evidence.objects.filter(belief__statement=WINTER).delete()

    rebuilt = rebuild_beliefs(workspace=world.workspace, now=world.now)

    assert bool(rebuilt.differences) is wreck
    assert snapshot(world) == before
    assert world.states(*logs) == ["pooled"] * 3
