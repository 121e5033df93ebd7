"""B13: which beliefs become one, and what the one rests on."""

from datetime import timedelta

from memory.consolidation.cycle import claim_attempt, open_cycle
from memory.consolidation.gates import NearDuplicate, run_gates
from memory.models import Belief, Evidence, GateDecision, Lineage, StructuralJob, Trigger
from tests.consolidation.restructuring import OLD, TWIN, child_of, job_of, reasons, twins
from tests.consolidation.world import World

AGAIN = "The kiln of the pottery burns: 5 hours."


def test_a_merge_has_two_parents_and_the_evidence_of_both(world: World) -> None:
    """B13: 5 + 3 episodes; the better evidenced statement where the model gives none."""
    one, other = twins(world)
    world.unions[OLD] = ""

    cycle = world.cycle()

    child = child_of(one)
    assert (child.statement, child.alpha, child.beta) == (OLD, 9.0, 1.0)
    assert child.pk not in (one.pk, other.pk)
    assert set(Lineage.objects.filter(child=child).values_list("parent", "kind")) == {
        (one.pk, "merge"), (other.pk, "merge")
    }  # fmt: skip
    assert {world.now_of(one).status, world.now_of(other).status} == {"merged"}
    assert cycle.counts["merged"] == 1
    assert world.calls("classify") == 1  # the new episode against both; nothing is judged anew


def test_a_merge_takes_the_models_words_where_it_has_some(world: World) -> None:
    """B13."""
    one, _ = twins(world)
    world.unions[OLD] = "The kiln of the pottery is on for 5 hours."

    world.cycle()

    assert child_of(one).statement == "The kiln of the pottery is on for 5 hours."


def test_verdicts_that_clash_are_partial_in_the_merged_belief(world: World) -> None:
    """B13: an episode that supports one and contradicts the other."""
    one, other = twins(world)
    world.unions[OLD] = ""
    shared = Evidence.objects.filter(belief=one).earliest("pk").episode
    Evidence.objects.create(
        workspace=world.workspace, belief=other, episode=shared, verdict="CONTRADICTS", basis="model",
        created_at=world.now,
    )  # fmt: skip

    world.before_gate = lambda: _recompute(other)
    world.cycle()

    child = child_of(one)
    row = Evidence.objects.get(belief=child, episode=shared)
    assert (row.verdict, row.basis, row.call) == ("PARTIAL", "united", None)
    assert (child.alpha, child.beta) == (1 + 4 + 3 + 0.5, 1.5)


def test_a_merge_hands_on_how_each_verdict_was_found(world: World) -> None:
    """B13: what the guard or a person said stays theirs, and what a model said names its call."""
    one, other = twins(world)
    world.unions[OLD] = ""
    first, second = Evidence.objects.filter(belief=other).order_by("pk")[:2]
    Evidence.objects.filter(pk=first.pk).update(basis="guard", reason="")
    Evidence.objects.filter(pk=second.pk).update(basis="person", reason="I was there.")

    world.cycle()

    asked = Evidence.objects.get(belief=job_of(world).belief, call__isnull=False)
    child = Evidence.objects.filter(belief=child_of(one))
    found = {row.episode_id: (row.basis, row.reason, row.call_id) for row in child}
    assert found[first.episode_id] == ("guard", "", None)
    assert found[second.episode_id] == ("person", "I was there.", None)
    assert found[asked.episode_id] == ("model", "as scripted", asked.call_id)


def _recompute(belief: Belief) -> None:
    from memory.ledger.confidence import recompute_beliefs

    recompute_beliefs(beliefs=[Belief.objects.get(pk=belief.pk)], now=belief.updated_at)


def test_what_a_model_finds_different_stays_two_and_is_not_asked_again(world: World) -> None:
    """B13: cosine and guard alone never merge."""
    one, other = twins(world)

    first = world.cycle()
    world.say("Potter's log again: 5 hours.", about="kiln", likeness=0.75)
    second = world.cycle(after=timedelta(days=1))

    assert (job_of(world).refusal, world.calls("merge")) == ("found_different", 1)
    assert (reasons(one, first)["merge"], reasons(one, second)["merge"]) == (
        "says_the_same", "found_different_before"
    )  # fmt: skip
    assert {world.now_of(one).status, world.now_of(other).status} == {"active"}


def test_a_pinned_belief_is_not_merged(world: World) -> None:
    """D9, B13."""
    one, _ = twins(world, is_pinned=True)
    world.unions[OLD] = ""

    assert reasons(one, world.cycle())["merge"] == "pinned"
    assert not StructuralJob.objects.exists()


def test_a_twin_that_cannot_merge_hides_no_other(world: World) -> None:
    """B13: one pass finds all pairs; the nearest one's pin keeps only the nearest apart."""
    world.hold(AGAIN, about="kiln", supports=4, is_pinned=True)
    one = world.hold(OLD, about="kiln", likeness=0.999, supports=4)
    other = world.hold(TWIN, about="kiln", likeness=0.95, supports=3)
    world.unions |= {OLD: "", TWIN: ""}
    world.say("Potter's log: 5 hours.", about="kiln", likeness=0.75)

    cycle = world.cycle()

    assert cycle.counts["merged"] == 1
    assert (world.now_of(one).status, world.now_of(other).status) == ("merged", "merged")


def test_where_no_twin_can_merge_the_nearest_is_named(world: World) -> None:
    """B13, B8.5: one decision a belief, on its best twin."""
    nearest = world.hold(AGAIN, about="kiln", supports=4, is_pinned=True)
    one = world.hold(OLD, about="kiln", likeness=0.999, supports=4)
    world.hold(TWIN, about="kiln", likeness=0.95, supports=3, is_pinned=True)
    world.say("Potter's log: 5 hours.", about="kiln", likeness=0.75)

    cycle = world.cycle()

    decision = GateDecision.objects.get(belief=one, cycle=cycle, gate="merge")
    assert (decision.reason, decision.twin) == ("pinned", nearest)


def test_a_twin_archived_in_the_same_walk_is_no_twin(world: World) -> None:
    """B13, B14: what one belief's gates did, the next one's know, and no model is asked about what is put away."""
    stale = world.hold(OLD, about="kiln", supports=4, id="bl_000000000001")
    firm = world.hold(TWIN, about="kiln", likeness=0.95, supports=6, id="bl_000000000002")
    later = world.now + timedelta(days=91)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=later, trigger=Trigger.PERSON)
    claim_attempt(cycle_id=cycle.pk, attempt=cycle.attempt)
    shut = NearDuplicate(id=firm.pk, similarity=0.95, passes_guard=False, was_found_different=False)
    near = NearDuplicate(id=stale.pk, similarity=0.95, passes_guard=True, was_found_different=False)

    run_gates(cycle=cycle, belief_ids=[stale.pk, firm.pk], twins={stale.pk: [shut], firm.pk: [near]})

    assert world.now_of(stale).status == "archived"
    assert reasons(firm, cycle)["merge"] == "no_twin"
    assert not StructuralJob.objects.exists()


def test_beliefs_of_two_projects_or_users_are_no_twins(world: World) -> None:
    """B13: same scope, project and user."""
    one, _ = twins(world, user="ben")
    world.unions[OLD] = ""

    assert reasons(one, world.cycle())["merge"] == "no_twin"


def test_three_alike_merge_two_a_cycle(world: World) -> None:
    """B13, C3: what two become joins the third, which says the same already."""
    twins(world)
    world.hold(AGAIN, about="kiln", likeness=0.97, supports=3)
    world.unions[OLD] = ""

    counts = [world.cycle(after=timedelta(days=days)).counts["merged"] for days in (0, 1, 7)]

    assert counts == [1, 0, 0]
    assert Belief.objects.get(status="active").evidence_count == 5 + 3 + 3
