"""B8.4 and B8.5: what founds a belief, what joins one, and what is turned away."""

import pytest

from memory.consolidation.belief_creation import NOT_CONFIDENT, TOO_FEW_SUPPORTS
from memory.domain.evidence import Verdict
from memory.models import Belief, ClusterJob, Evidence
from tests import factories
from tests.consolidation.world import World

LOCKS = [f"The lock of the archive lasts {seconds} seconds." for seconds in (5, 7, 9)]


def test_three_alike_episodes_found_a_belief_that_they_support(world: World) -> None:
    """B8.4: three episodes, three supports, α = 4 and β = 1; every episode settles with it."""
    said = world.say_all(LOCKS, about="lock")

    cycle = world.cycle()

    belief = world.only_belief()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (4.0, 1.0, 3)
    assert belief.statement in LOCKS
    assert world.states(*said) == ["settled"] * 3
    assert cycle.state == "finished"
    assert cycle.counts["created"] == 1


def test_two_alike_episodes_found_nothing_and_wait(world: World) -> None:
    """B8.2, B23: fewer than three make no belief, cost no call and are pooled."""
    said = world.say_all(LOCKS[:2], about="lock")

    world.cycle()

    assert not Belief.objects.exists()
    assert world.states(*said) == ["pooled", "pooled"]
    assert world.calls("synthesize") == world.calls("classify") == 0


def test_members_that_fail_the_guard_are_asked(world: World) -> None:
    """B8.4: only what the guard passes supports a new statement without a call."""
    world.say_all(LOCKS, about="lock")

    world.cycle()

    asked = world.server.calls("classify")
    assert len(asked) == 1
    assert len(asked[0].texts) == 2
    assert sorted(Evidence.objects.values_list("basis", flat=True)) == ["guard", "model", "model"]


def test_what_is_in_a_cluster_and_says_nothing_of_it_does_not_tell_whose_it_is(world: World) -> None:
    """B8.3: three of one project found a belief of that project, whatever else was alike."""
    north, south = (factories.project(workspace=world.workspace) for _ in range(2))
    world.say_all(LOCKS, about="lock", project=north)
    world.say("The lock of the harbour is red.", about="lock", project=south, verdict=Verdict.IRRELEVANT)
    world.statements["lock"] = LOCKS[0]

    world.cycle()

    assert world.only_belief().project == north


def test_too_few_supports_make_no_belief(world: World) -> None:
    """B8.4: fewer than three SUPPORTS; the episodes are pooled and the job says why."""
    said = [*world.say_all(LOCKS[:2], about="lock"), world.say(LOCKS[2], about="lock", verdict=Verdict.IRRELEVANT)]
    world.statements["lock"] = LOCKS[0]

    world.cycle()

    assert not Belief.objects.exists()
    job = ClusterJob.objects.get()
    assert (job.state, job.refusal) == ("refused", TOO_FEW_SUPPORTS)
    assert world.states(*said) == ["pooled"] * 3


def test_a_statement_that_is_no_more_likely_than_not_is_refused(world: World) -> None:
    """B8.4: three supports against three contradictions are confidence one half, which is not enough."""
    said = world.say_all([f"Shed {n} holds {n} bikes." for n in range(3, 6)], about="shed")
    said += world.say_all(
        [f"Shed {n} holds {n} bikes." for n in range(6, 9)], about="shed", verdict=Verdict.CONTRADICTS
    )
    world.statements["shed"] = "Shed 1 holds 2 bikes."

    world.cycle()

    assert not Belief.objects.exists()
    assert ClusterJob.objects.get().refusal == NOT_CONFIDENT
    assert set(world.states(*said)) == {"pooled"}


def test_irrelevant_verdicts_are_no_evidence(world: World) -> None:
    """B8.5: a member that says nothing about the new belief is pooled beside it."""
    world.say_all(LOCKS, about="lock")
    odd = world.say("The lock of the archive has 11 pins.", about="lock", verdict=Verdict.IRRELEVANT)
    world.statements["lock"] = LOCKS[0]

    world.cycle()

    assert odd.text not in world.verdicts_of(world.only_belief())
    assert world.states(odd) == ["pooled"]


def test_partial_and_contradicting_members_count_against(world: World) -> None:
    """B4: four supports, one contradiction, one partial: α = 1 + 4 + ½, β = 1 + 1 + ½."""
    world.say_all([*LOCKS, "The lock of the archive lasts 11 seconds."], about="lock")
    world.say("The lock of the archive lasts 13 seconds.", about="lock", verdict=Verdict.CONTRADICTS)
    world.say("The lock of the archive lasts 15 seconds.", about="lock", verdict=Verdict.PARTIAL)
    world.statements["lock"] = LOCKS[0]

    world.cycle()

    belief = world.only_belief()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (5.5, 2.5, 6)


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("Does Ana lock the archive at night?", "question"),
        ("Ana locks " + " and locks".join([" the archive"] * 12), "too_long"),
        ("", "no_statement"),
    ],
)
def test_a_candidate_that_cannot_stand_alone_is_refused(world: World, statement: str, refusal: str) -> None:
    """B8.3: refused with its reason, before anything is asked about it."""
    said = world.say_all(LOCKS, about="lock")
    world.statements["lock"] = statement

    world.cycle()

    assert not Belief.objects.exists()
    assert ClusterJob.objects.get().refusal == refusal
    assert world.states(*said) == ["pooled"] * 3
    assert world.calls("classify") == 0
