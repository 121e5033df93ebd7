"""B11: whatever a model server does, nothing is lost and nothing counts twice."""

import pytest

from memory.consolidation.cycle import open_cycle
from memory.domain.evidence import Verdict
from memory.models import Belief, ClusterJob, Episode, ModelCall, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.steps import steps_of
from tests.consolidation.world import World
from tests.model_server_acts import (
    close_socket,
    garbage,
    half_reply,
    html,
    refuse,
    stall,
    truncated_json,
    unknown_ids,
    wrong_schema,
)

pytestmark = pytest.mark.usefixtures("hasty")

FAULTS = {
    "429": refuse(429, retry_after=0.01),
    "500": refuse(500),
    "503": refuse(503),
    "closed": close_socket(),
    "half": half_reply(),
    "truncated": truncated_json(),
    "html": html(),
    "garbage": garbage(),
    "schema": wrong_schema(),
    "ids": unknown_ids(),
}


def say_locks(world: World) -> list[Episode]:
    """Store three episodes that the guard tells apart, so that both kinds of call are made."""
    return world.say_all([f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9)], about="lock")


def assert_undisturbed(world: World, said: list[Episode]) -> None:
    """Assert what a run without faults gives."""
    belief = world.only_belief()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (4.0, 1.0, 3)
    assert set(world.states(*said)) == {"settled"}


@pytest.mark.parametrize("purpose", ["synthesize", "classify"])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_costs_a_repetition_and_nothing_else(world: World, purpose: str, fault: str) -> None:
    """B11: the call is made again within the budget, and the cycle ends as if nothing had happened."""
    said = say_locks(world)
    world.server.then(FAULTS[fault], purpose=purpose)

    cycle = world.cycle()

    assert cycle.state == "finished"
    assert_undisturbed(world, said)


@pytest.mark.parametrize("purpose", ["synthesize", "classify", "embed"])
@pytest.mark.parametrize("fault", ["500", "html", "closed"])
def test_a_fault_that_stays_leaves_the_episodes_pending(world: World, purpose: str, fault: str) -> None:
    """B11: never read as "nothing found"; the next cycle with a healthy server finds everything."""
    said = say_locks(world)
    world.trouble.broken[purpose] = FAULTS[fault]

    world.cycle()

    assert not Belief.objects.exists()
    assert set(world.states(*said)) == {"failed"}
    assert all(Episode.objects.values_list("state_reason", flat=True))
    world.trouble.broken.clear()
    world.cycle()
    assert_undisturbed(world, said)


def test_a_mix_of_all_faults_ends_as_an_undisturbed_run(world: World) -> None:
    """B11: every fault twice, in whatever call it hits, over as many cycles as it takes."""
    said = say_locks(world)
    said += world.say_all([f"The kiln of the pottery burns {n} hours." for n in (5, 7, 9)], about="kiln")
    world.server.then(*FAULTS.values(), *FAULTS.values())

    for _ in range(6):
        world.cycle()

    assert list(Belief.objects.values_list("alpha", "beta", "evidence_count")) == [(4.0, 1.0, 3)] * 2
    assert set(world.states(*said)) == {"settled"}


def test_a_stall_is_a_timeout_and_is_asked_again(world: World, decree: Decree) -> None:
    """B9, B11: a call that takes longer than its time is given up and repeated."""
    decree("budget", call_seconds=0.6, margin_seconds=0.2)
    said = say_locks(world)
    world.server.then(stall(1.2), purpose="synthesize")

    world.cycle()

    assert_undisturbed(world, said)
    outcomes = ModelCall.objects.filter(purpose="synthesize").order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["timeout", "ok"]


def test_a_failed_job_takes_no_other_with_it(world: World) -> None:
    """B11: one cluster's malformed replies leave the other's belief alone."""
    said = say_locks(world)
    other = world.say_all([f"The kiln of the pottery burns {n} hours." for n in (5, 7, 9)], about="kiln")
    world.statements["kiln"] = "no JSON at all"
    world.spoilt.add("no JSON at all")

    cycle = world.cycle()

    assert_undisturbed(world, said)
    assert set(world.states(*other)) == {"failed"}
    assert (cycle.counts["created"], cycle.counts["failed"]) == (1, 1)


def test_a_key_that_is_refused_fails_at_once_and_keeps_everything(world: World) -> None:
    """B11: 401 is not repeated; the episodes stay pending with the reason."""
    said = say_locks(world)
    world.trouble.broken["synthesize"] = refuse(401)

    world.cycle()

    assert world.calls("synthesize") == 1
    assert set(world.states(*said)) == {"failed"}
    assert ClusterJob.objects.get().state_reason.startswith("auth")


def test_one_text_that_cannot_be_embedded_takes_none_with_it(world: World) -> None:
    """B11: a batch that the server refuses is halved down to the one bad text."""
    said = say_locks(world)
    bad = world.say("A line that poisons the model.", about="poison")
    world.trouble.refused_word = "poisons"

    world.cycle()

    assert_undisturbed(world, said)
    assert world.states(bad) == ["failed"]
    assert Episode.objects.get(pk=bad.pk).state_reason == "embedding: bad_request"


def test_evidence_for_one_belief_does_not_settle_what_a_failed_call_was_to_say_of_another(world: World) -> None:
    """B11: the episode stays pending until both beliefs have heard it."""
    opening = world.hold("The shop opens at 8 on weekdays.", about="opening")
    closing = world.hold("The shop closes at 9 on weekdays.", about="closing")
    both = world.say("The shop is open from 10 to 11 on weekdays.", about="", verdict=Verdict.CONTRADICTS)
    world.directions.place(both.text, {"opening": 0.707, "closing": 0.707})
    world.spoilt.add(closing.statement)

    world.cycle()

    assert world.states(both) == ["failed"]
    world.spoilt.clear()
    world.cycle()
    assert world.states(both) == ["settled"]
    betas = Belief.objects.filter(pk__in=[opening.pk, closing.pk]).values_list("beta", flat=True)
    assert list(betas) == [2.0, 2.0]


def test_what_half_a_batch_said_is_not_lost_with_the_other_half(world: World) -> None:
    """B11: verdicts that came before the job failed become evidence in the next cycle, without another call."""
    belief = world.hold("The shop opens at 8 on weekdays.", about="shop", supports=6)
    said = [
        world.say(f"The shop opens at {hour} on weekdays.", about="shop", likeness=0.8, verdict=Verdict.CONTRADICTS)
        for hour in (9, 10)
    ]
    world.server.script = lambda asked: (
        garbage() if said[1].text in [episode["text"] for episode in asked.episodes] else world.answer(asked)
    )

    world.cycle()

    assert set(world.states(*said)) == {"failed"}
    assert world.now_of(belief).beta == 1.0
    world.server.script = world.answer
    world.server.log.clear()
    world.cycle()
    assert [call.texts for call in world.server.calls("classify")] == [[said[1].text]]
    assert world.now_of(belief).beta == 3.0
    assert set(world.states(*said)) == {"settled"}


def test_a_cluster_that_always_fails_lets_the_others_pass(world: World, decree: Decree) -> None:
    """B11: however large it is and however long it has waited, it comes after what has not failed."""
    decree("consolidation", clusters=1)
    world.statements["kiln"] = "no JSON at all"
    world.spoilt.add("no JSON at all")
    large = world.say_all([f"The kiln of the pottery burns {n} hours." for n in range(5, 15)], about="kiln")
    world.cycle()
    said = say_locks(world)

    world.cycle()

    assert_undisturbed(world, said)
    assert set(world.states(*large)) == {"new"}
    world.spoilt.clear()
    world.statements.clear()
    world.cycle()
    assert set(world.states(*large)) == {"settled"}


def test_a_batch_that_always_fails_lets_the_others_be_asked(world: World, decree: Decree) -> None:
    """B11: nor does the most similar of single episodes, where there is one call to make."""
    decree("consolidation", gathered_calls=1)
    shop, mill = (world.hold(f"The {name} opens at 8.", about=name) for name in ("shop", "mill"))
    near = world.say("The shop opens at 9.", about="shop", likeness=0.85, verdict=Verdict.CONTRADICTS)
    world.spoilt.add(shop.statement)
    world.cycle()
    other = world.say("The mill opens at 9.", about="mill", likeness=0.8, verdict=Verdict.CONTRADICTS)

    world.cycle()

    assert world.now_of(mill).beta == 2.0
    assert world.states(other) == ["settled"]
    world.spoilt.clear()
    world.cycle()
    assert (world.now_of(shop).beta, world.states(near)) == (2.0, ["settled"])


def test_a_cluster_that_was_forgotten_meanwhile_costs_no_call(world: World) -> None:
    """B8.3: fewer than three are left when the synthesis comes to be made."""
    said = say_locks(world)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    for number, step in enumerate(steps_of(cycle)):
        if number == 3:  # extract, read, cluster
            Episode.objects.filter(pk=said[0].pk).update(status="forgotten")
        step.run(1)

    assert world.calls("synthesize") == 0
    assert ClusterJob.objects.get().refusal == "too_few_members"
    assert world.states(*said[1:]) == ["pooled", "pooled"]
