"""B8.6, exactly once: structural jobs whose messages come twice or late, and whose workers die."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from memory.consolidation import restructure
from memory.consolidation.cycle import begin_attempt, claim_attempt, open_cycle
from memory.consolidation.finish import finish_cycle
from memory.consolidation.restructure import restructure_belief
from memory.consolidation.schedule import sweep
from memory.ledger.confidence import recompute_beliefs
from memory.models import Belief, Cycle, Evidence, Lineage, StructuralJob, Trigger
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.restructuring import NEW, child_of, contradict, doubted, job_of
from tests.consolidation.steps import steps_of
from tests.consolidation.world import World
from tests.model_server_acts import refuse


@pytest.fixture
def cycle(world: World) -> Cycle:
    """Open a cycle in which a belief will be revised."""
    doubted(world)
    contradict(world)
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def run_to_restructure(cycle: Cycle) -> None:
    """Take the cycle's first attempt to where its structural job is opened."""
    for step in steps_of(cycle):
        if step.name == "restructure":
            return
        step.run(1)


def abandon(cycle: Cycle) -> None:
    """Let the leases of the cycle and its job run out."""
    past = Now() - timedelta(seconds=1)
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=past)
    StructuralJob.objects.filter(cycle=cycle, leased_until__isnull=False).update(leased_until=past)


def assert_revised_once(world: World, cycle: Cycle) -> None:
    """Assert what a run without disturbance gives, and that no call was made twice."""
    cycle.refresh_from_db()
    assert (cycle.state, cycle.counts["revised"]) == ("finished", 1)
    assert Belief.objects.filter(statement=NEW).count() == Lineage.objects.count() == 1
    assert (world.calls("revise"), world.calls("classify")) == (1, 2)
    world.check(cycle)


def test_every_message_twice_changes_nothing(world: World, cycle: Cycle) -> None:
    """B8.6: each step a second time, at once."""
    for step in steps_of(cycle):
        step.run(1)
        before = world.rows()
        step.run(1)
        assert world.rows() == before, step.name

    assert_revised_once(world, cycle)


def test_all_messages_again_after_the_end_change_nothing(world: World, cycle: Cycle) -> None:
    """B8.6: the whole canvas comes back after the visibility time-out."""
    run_steps(cycle=cycle)
    job = job_of(world)
    before = world.rows()

    run_steps(cycle=cycle)
    restructure_belief(job_id=job.pk, attempt=1)

    assert world.rows() == before
    assert_revised_once(world, cycle)


def test_a_message_of_an_older_attempt_finds_nothing_to_do(world: World, cycle: Cycle) -> None:
    """B8.6: the fence."""
    run_to_restructure(cycle)
    abandon(cycle)
    assert begin_attempt(cycle_id=cycle.pk) == 2
    assert claim_attempt(cycle_id=cycle.pk, attempt=2)
    before, calls = world.rows(), len(world.server.log)

    restructure_belief(job_id=job_of(world).pk, attempt=1)

    assert (world.rows(), len(world.server.log)) == (before, calls)


def test_an_attempt_overtaken_before_it_applies_applies_nothing(
    world: World, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8.6: asked again inside the transaction."""
    run_to_restructure(cycle)
    apply = restructure.apply_structural_job

    def be_overtaken_first(**given: object) -> None:
        abandon(cycle)
        begin_attempt(cycle_id=cycle.pk)
        apply(**given)  # type: ignore[arg-type]  # whatever the step gave

    monkeypatch.setattr(restructure, "apply_structural_job", be_overtaken_first)
    restructure_belief(job_id=job_of(world).pk, attempt=1)

    assert (job_of(world).state, Lineage.objects.count()) == ("classified", 0)


@pytest.mark.parametrize("phase", ["embed_statement", "reclassify_children", "apply_structural_job"])
def test_what_was_answered_before_a_death_is_not_asked_again(
    world: World, cycle: Cycle, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8.6, B7: killed between a reply and its use; the next attempt goes on from the rows."""
    run_to_restructure(cycle)
    with monkeypatch.context() as dying:
        dying.setattr(restructure, phase, lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restructure_belief(job_id=job_of(world).pk, attempt=1)
    assert not finish_cycle(cycle_id=cycle.pk, attempt=1)
    abandon(cycle)

    assert sweep() == 1
    cycle.refresh_from_db()
    run_steps(cycle=cycle)

    assert_revised_once(world, cycle)


def test_a_death_amid_the_writing_leaves_no_half_of_a_change(
    world: World, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8.6: children, evidence, lineage and the old belief's status are one transaction."""
    run_to_restructure(cycle)
    before = {name: world.rows()[name] for name in ("Belief", "Evidence", "Lineage")}
    with monkeypatch.context() as dying:
        dying.setattr(restructure, "change_status", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restructure_belief(job_id=job_of(world).pk, attempt=1)

    assert {name: world.rows()[name] for name in before} == before


def test_a_job_that_kills_its_workers_is_given_up(world: World, cycle: Cycle, decree: Decree) -> None:
    """B9: claimed too often it counts as poison, and the cycle ends without it."""
    decree("budget", job_claims=2)
    run_to_restructure(cycle)
    StructuralJob.objects.update(claims=2)

    restructure_belief(job_id=job_of(world).pk, attempt=1)

    assert (job_of(world).state, job_of(world).state_reason) == ("failed", "claimed too often")
    assert finish_cycle(cycle_id=cycle.pk, attempt=1)


def test_a_job_that_must_wait_keeps_its_cycle_and_is_sent_again(
    world: World, cycle: Cycle, woken: list[tuple[str, int]]
) -> None:
    """B8, B9: a long Retry-After is not slept through; the sweeper sends the cycle again without a new attempt."""
    run_to_restructure(cycle)
    world.server.then(refuse(429, retry_after=30), purpose="revise")
    restructure_belief(job_id=job_of(world).pk, attempt=1)
    assert job_of(world).not_before is not None
    assert not finish_cycle(cycle_id=cycle.pk, attempt=1)
    StructuralJob.objects.update(not_before=Now() - timedelta(seconds=1))

    assert sweep() == 1
    assert woken == [(cycle.pk, 1)]
    run_steps(cycle=cycle)

    cycle.refresh_from_db()
    assert cycle.counts["revised"] == 1


def test_a_word_that_comes_while_models_think_is_not_lost(
    world: World, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8.6: apply checks the version: a new job takes the new evidence into account."""
    run_to_restructure(cycle)
    old = job_of(world).belief
    apply = restructure.apply_structural_job

    def speak_first(**given: object) -> None:
        late = factories.episode(workspace=world.workspace, text="A late word on 6 hours.", occurred_at=world.now)
        world.verdicts[late.text] = "SUPPORTS"
        Evidence.objects.create(
            workspace=world.workspace, belief=old, episode=late, verdict="CONTRADICTS", basis="model",
            created_at=world.now,
        )  # fmt: skip
        recompute_beliefs(beliefs=[Belief.objects.get(pk=old.pk)], now=world.now)
        apply(**given)  # type: ignore[arg-type]  # whatever the step gave

    with monkeypatch.context() as speaking:
        speaking.setattr(restructure, "apply_structural_job", speak_first)
        run_steps(cycle=cycle)
    cycle.refresh_from_db()
    assert (cycle.state, cycle.counts["revised"]) == ("finished", 0)

    after = world.cycle(after=timedelta(days=1))

    assert (after.counts["revised"], child_of(old).evidence_count) == (1, 10)
    assert list(StructuralJob.objects.order_by("pk").values_list("refusal", flat=True)) == ["belief_changed", ""]
