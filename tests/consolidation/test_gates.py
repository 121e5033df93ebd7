"""B14 and B23: what is archived, what comes back, what a storm does, and that every decision is written down."""

from datetime import timedelta
from typing import Any

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import claim_attempt, open_cycle
from memory.consolidation.gates import run_gates
from memory.consolidation.schedule import open_due_cycles
from memory.domain.evidence import Verdict
from memory.domain.gates import ArchiveGate
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus
from memory.models import BeliefEmbedding, ClusterJob, GateDecision, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.steps import steps_of
from tests.consolidation.world import World

KILN = "The kiln of the pottery burns 5 hours."


def contradict(world: World, times: int, *, likeness: float = 0.75) -> None:
    """Store contradictions from so many origins: near the belief, and near each other only from .84 on."""
    for hours in range(6, 6 + times):
        text = f"The kiln of the pottery burns {hours} hours."
        world.say(text, about="kiln", likeness=likeness, verdict=Verdict.CONTRADICTS)


def decisions(world: World) -> list[tuple[str, bool, str]]:
    """List what was decided about archiving, oldest first."""
    rows = GateDecision.objects.filter(workspace=world.workspace, gate__in=("archive", "return"))
    return list(rows.order_by("cycle__now", "gate").values_list("gate", "passed", "reason"))


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("likeness", [0.75, 0.95], ids=["singles", "one cluster"])
@pytest.mark.parametrize(
    ("supports", "status", "reason"),
    [(5, BeliefStatus.ACTIVE, "open_structural_job"), (3, BeliefStatus.ARCHIVED, "low_confidence")],
)
def test_a_storm_of_ten_contradictions(world: World, likeness: float, supports: int, status: str, reason: str) -> None:
    """B23: ten in one cycle: β = 11 exactly, α as before; where nobody knows better, it is archived or stays."""
    belief = world.hold(KILN, about="kiln", supports=supports)
    contradict(world, 10, likeness=likeness)

    cycle = world.cycle()

    belief = world.now_of(belief)
    assert (belief.alpha, belief.beta, belief.status) == (1.0 + supports, 11.0, status)
    assert decisions(world) == [("archive", status == BeliefStatus.ARCHIVED, reason)]
    assert cycle.counts["archived"] == int(status == BeliefStatus.ARCHIVED)
    assert world.only_belief() == belief


@pytest.mark.usefixtures("without_closing")
def test_a_storm_over_several_jobs_is_decided_once(world: World, decree: Decree) -> None:
    """B8.5, B23: gates come after all jobs, so the decision that archived is the one that is kept."""
    decree("consolidation", classify_episodes=3)
    belief = world.hold(KILN, about="kiln", supports=3)
    contradict(world, 12)

    cycle = world.cycle()

    assert ClusterJob.objects.count() == 4
    assert (world.now_of(belief).beta, world.now_of(belief).status) == (13.0, "archived")
    assert decisions(world) == [("archive", True, "low_confidence")]
    assert GateDecision.objects.get(gate="archive").facts["confidence"] == pytest.approx(4 / 17)
    assert cycle.counts["archived"] == 1


def test_time_archives_what_a_person_challenged_too(world: World) -> None:
    """B14: challenged beliefs are live; a stale and weak one is put away, and the schedule comes for it."""
    belief = world.hold(KILN, about="kiln", supports=3)
    lena = Actor(kind=ActorKind.PERSON, name="lena")
    curate_belief(belief_id=belief.pk, act=CuratorAction.CHALLENGE, reason="Is it?", actor=lena, now=world.now)
    world.now += timedelta(days=91)

    opened = open_due_cycles(now=world.now)
    world.cycle()

    assert len(opened) == 1
    assert (world.now_of(belief).status, decisions(world)) == ("archived", [("archive", True, "stale_and_weak")])


def test_a_decision_that_is_renewed_bears_the_time_of_its_renewal(world: World) -> None:
    """B8.5: a belief asked twice in a cycle keeps the later decision, and when it was made."""
    belief = world.hold(KILN, about="kiln", supports=3)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    claim_attempt(cycle_id=cycle.pk, attempt=cycle.attempt)
    run_gates(cycle=cycle, belief_ids=[belief.pk], gates=(ArchiveGate(),))
    first = GateDecision.objects.get().created_at

    run_gates(cycle=cycle, belief_ids=[belief.pk], gates=(ArchiveGate(),))

    assert GateDecision.objects.get().created_at > first


def test_an_archived_belief_is_found_by_no_search(world: World) -> None:
    """B14: its vector says so, too."""
    belief = world.hold(KILN, about="kiln", supports=2)
    contradict(world, 8)

    world.cycle()

    assert not BeliefEmbedding.objects.get(belief=belief).is_active


@pytest.mark.parametrize(
    ("supports", "contradicts", "days", "reason"),
    [
        (4, 0, 91, "stale_and_weak"),
        (4, 0, 89, ""),
        (5, 0, 400, ""),
        (4, 5, 181, "doubtful"),
        (4, 5, 179, ""),
        (5, 5, 400, ""),
    ],
)
def test_time_alone_archives(world: World, supports: int, contradicts: int, days: int, reason: str) -> None:
    """B14: stale after 90 days with fewer than five rows, doubtful after 180 under one half; no episode needed."""
    belief = world.hold(KILN, about="kiln", supports=supports, contradicts=contradicts)

    world.cycle(after=timedelta(days=days))

    assert (world.now_of(belief).status, world.now_of(belief).status_reason) == (
        ("archived", reason) if reason else ("active", "")
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"is_pinned": True}, "pinned"), ({"restored_by_person_at": True}, "restored_by_person")],
)
def test_what_a_person_protects_stays_and_the_gate_says_why(world: World, given: dict[str, Any], reason: str) -> None:
    """B14: a refused decision is written down as well as a passed one."""
    fields: dict[str, Any] = {name: world.now if name.endswith("_at") else value for name, value in given.items()}
    belief = world.hold(KILN, about="kiln", supports=1, **fields)
    contradict(world, 9)

    world.cycle()

    assert world.now_of(belief).status == "active"
    assert decisions(world) == [("archive", False, reason)]


def test_a_stale_belief_comes_back_with_the_first_support(world: World) -> None:
    """B14: under its id, at once."""
    belief = world.hold(KILN, about="kiln", supports=3)
    world.cycle(after=timedelta(days=91))
    assert world.now_of(belief).status == "archived"

    world.say(KILN, about="kiln", likeness=1.0, created_at=world.now + timedelta(days=1))
    world.cycle(after=timedelta(days=1))

    belief = world.only_belief()
    assert (belief.status, belief.alpha) == ("active", 5.0)
    assert BeliefEmbedding.objects.get(belief=belief).is_active
    assert decisions(world)[1:] == [("archive", False, "no_ground"), ("return", True, "fresh_support")]


def test_a_disbelieved_belief_comes_back_only_above_one_half(world: World) -> None:
    """B14: archived at 2/7; 5/10 is not enough, 6/11 is."""
    belief = world.hold(KILN, about="kiln", supports=1)
    contradict(world, 4)
    world.cycle()
    assert world.now_of(belief).status == "archived"

    for _ in range(3):
        world.say(KILN, about="kiln", likeness=1.0)
    world.cycle(after=timedelta(days=1))
    assert (world.now_of(belief).confidence, world.now_of(belief).status) == (0.5, "archived")

    world.say(KILN, about="kiln", likeness=1.0)
    world.cycle(after=timedelta(days=1))
    belief = world.only_belief()
    assert (belief.confidence, belief.status, belief.status_reason) == (6 / 11, "active", "confident_again")


@pytest.mark.parametrize("reason", ["by_person", "we moved house", ""])
def test_what_a_person_archived_never_comes_back_by_itself(world: World, reason: str) -> None:
    """B14: it takes the evidence, whatever reason the person wrote."""
    belief = world.hold(KILN, about="kiln", status=BeliefStatus.ARCHIVED, status_reason=reason)
    world.say(KILN, about="kiln", likeness=1.0)

    cycle = world.cycle()

    assert (world.now_of(belief).status, world.now_of(belief).alpha) == ("archived", 5.0)
    assert ("return", False, "archived_by_person") in decisions(world)
    assert cycle.counts["failed"] == 0


def test_an_empty_store_has_a_cycle_too(world: World) -> None:
    """B23: nothing to do is done at once, without a call."""
    cycle = world.cycle()

    assert (cycle.state, cycle.budget_spent) == ("finished", "")
    assert not any(cycle.counts.values())
    assert world.server.log == []


def test_a_first_cycle_of_strangers_makes_no_belief(world: World) -> None:
    """B23: episodes that have nothing to do with each other wait, and cost no call but their vectors."""
    said = [world.say(f"Barn {n} is full.", about=f"barn {n}") for n in range(5)]

    world.cycle()

    assert not world.workspace.beliefs.exists()
    assert set(world.states(*said)) == {"pooled"}
    assert {call.purpose for call in world.server.log} == {"embed"}


@pytest.mark.usefixtures("without_closing")
def test_a_gate_message_that_comes_twice_leaves_the_decision_that_archived(world: World) -> None:
    """B14, exactly once: a second walk would find the belief archived and write over why."""
    world.hold(KILN, about="kiln", supports=2)
    contradict(world, 8)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)

    for step in steps_of(cycle):
        step.run(1)
        if step.name == "gate":
            step.run(1)

    assert decisions(world) == [("archive", True, "low_confidence")]
    cycle.refresh_from_db()
    assert cycle.counts["archived"] == 1


@pytest.mark.usefixtures("without_closing")
def test_what_died_between_evidence_and_gates_is_decided_by_the_next_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8.5: the evidence is in, the worker gone before any gate: none is left out."""
    belief = world.hold(KILN, about="kiln", supports=5)
    contradict(world, 3)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    with monkeypatch.context() as dying:
        dying.setattr("memory.consolidation.apply.run_gates", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_steps(cycle=cycle)
    assert (world.now_of(belief).beta, decisions(world)) == (4.0, [])

    run_steps(cycle=cycle)

    assert decisions(world) == [("archive", False, "no_ground")]
    assert world.now_of(belief).beta == 4.0
