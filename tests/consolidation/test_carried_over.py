"""B8.6: structural jobs that a cycle leaves to a later one."""

from datetime import timedelta
from typing import Any

import pytest

from memory.consolidation import apply, restructure
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import mark_budget_spent, open_cycle
from memory.consolidation.finish import close_cycle
from memory.consolidation.gates import run_gates
from memory.consolidation.restructure import restructure_belief
from memory.domain.lifecycle import CycleState, JobState, Reason
from memory.models import Cycle, StructuralChild, StructuralJob, Trigger
from tests.consolidation.restructuring import NEW, child_of, contradict, doubted, job_of, reasons
from tests.consolidation.steps import steps_of
from tests.consolidation.undoing import LENA
from tests.consolidation.world import MODEL, World


def test_over_budget_a_job_is_left_to_a_later_cycle(world: World) -> None:
    """B8.6, B9: unfinished jobs carry over; until then the belief is not archived."""
    old = doubted(world, supports=3, against=9)
    contradict(world)
    world.before_gate = lambda: mark_budget_spent(cycle_id=Cycle.objects.latest("opened_at").pk, reason="working time")

    first = world.cycle()

    assert (first.state, job_of(world).cycle, job_of(world).state) == ("over_budget", None, "queued")
    assert (world.now_of(old).status, reasons(old, first)["archive"]) == ("active", "open_structural_job")
    world.before_gate = lambda: None
    second = world.cycle(after=timedelta(days=1))
    assert (second.counts["revised"], job_of(world).decided_in, job_of(world).cycle) == (1, first, second)
    assert world.now_of(old).status == "revised"


def test_what_was_carried_over_is_decided_again(world: World) -> None:
    """B8.6: support that came meanwhile takes the ground away."""
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: mark_budget_spent(cycle_id=Cycle.objects.latest("opened_at").pk, reason="working time")
    world.cycle()
    world.before_gate = lambda: None
    for n in range(5):
        world.say(f"Potter's log: 5 hours, as it says in line {n}.", about="kiln", likeness=0.8)

    world.cycle(after=timedelta(days=1))

    assert (job_of(world).state, job_of(world).refusal) == ("refused", Reason.STILL_CONFIDENT)
    assert (world.now_of(old).status, world.calls("revise")) == ("active", 0)


def test_evidence_that_came_meanwhile_makes_a_new_job(world: World) -> None:
    """B8.6: decision and version are checked again; what was asked of other evidence is not used."""
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: mark_budget_spent(cycle_id=Cycle.objects.latest("opened_at").pk, reason="working time")
    world.cycle()
    world.before_gate = lambda: None
    contradict(world)

    world.cycle(after=timedelta(days=1))

    states = list(StructuralJob.objects.order_by("pk").values_list("state", "refusal"))
    assert states == [(JobState.REFUSED, "belief_changed"), (JobState.APPLIED, "")]
    assert child_of(old).evidence_count == 10


def test_what_an_ended_cycle_left_behind_is_taken_up(world: World) -> None:
    """B8.6: a job that still names a cycle that is no more waits like any other, and keeps no belief for ever."""
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: mark_budget_spent(cycle_id=Cycle.objects.latest("opened_at").pk, reason="working time")
    first = world.cycle()
    StructuralJob.objects.update(cycle=first, lease_owner="dead", leased_until=world.now + timedelta(days=99999))
    world.before_gate = lambda: None

    second = world.cycle(after=timedelta(hours=1))

    assert (job_of(world).state, job_of(world).cycle) == (JobState.APPLIED, second)
    assert world.now_of(old).status == "revised"


def test_what_was_judged_under_another_embedding_model_is_embedded_anew(world: World) -> None:
    """B8.6, B22: a child is held against tombstones in today's space, and asked about no more."""
    doubted(world)
    buried = world.hold(NEW, about="kiln", likeness=0.8, supports=3)
    curate_belief(belief_id=buried.pk, act=CuratorAction.FORGET, reason="not ours to know", actor=LENA, now=world.now)
    contradict(world)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    for step in steps_of(cycle):
        if step.name == "restructure":
            break
        step.run(1)
    unapplied = pytest.MonkeyPatch()
    unapplied.setattr(restructure, "apply_structural_job", lambda **_: None)
    restructure_belief(job_id=job_of(world).pk, attempt=1)
    unapplied.undo()
    StructuralChild.objects.update(vector=[1.0] + [0.0] * 767, vector_model="an older model")
    asked = world.calls("classify")

    restructure_belief(job_id=job_of(world).pk, attempt=1)

    child = StructuralChild.objects.get()
    assert (child.vector_model, child.suppressed_by, job_of(world).refusal) == (MODEL, buried, "suppressed")
    assert world.calls("classify") == asked


def test_gates_open_nothing_for_a_cycle_that_has_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: closed between its last sign of life and the gates, a cycle decides nothing that nobody would take up."""
    old = doubted(world)
    contradict(world)

    def late(*, cycle: Cycle, **given: Any) -> Any:
        close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.FAILED, reason="too many attempts")
        return run_gates(cycle=cycle, **given)

    monkeypatch.setattr(apply, "run_gates", late)
    cycle = world.cycle()

    assert (cycle.state, reasons(old, cycle)) == ("failed", {})
    assert not StructuralJob.objects.exists()


def test_an_overtaken_attempt_asks_no_gate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: what an older attempt would decide is left to the one that took over."""
    doubted(world)
    contradict(world)

    def late(*, cycle: Cycle, **given: Any) -> Any:
        Cycle.objects.filter(pk=cycle.pk).update(attempt=cycle.attempt + 1)
        decisions = run_gates(cycle=cycle, **given)
        assert decisions == []
        Cycle.objects.filter(pk=cycle.pk).update(attempt=cycle.attempt)
        return run_gates(cycle=cycle, **given)

    monkeypatch.setattr(apply, "run_gates", late)
    world.cycle()

    assert job_of(world).state == JobState.APPLIED
