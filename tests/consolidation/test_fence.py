"""Exactly once: leases, attempts and messages that come twice, late, or never."""

from datetime import timedelta

import pytest
from django.db.models import Q
from django.db.models.functions import Now

from memory.consolidation.apply import apply_job
from memory.consolidation.belief_creation import record_job_evidence
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import begin_attempt, claim_attempt, enter_step, open_cycle, seconds_left
from memory.consolidation.extract import extract_episodes
from memory.consolidation.jobs import leased_job
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.read import plan_readings
from memory.consolidation.schedule import sweep
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import JobState
from memory.models import Belief, ClusterJob, Cycle, CycleStep, Heartbeat, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.steps import NAMES, steps_of
from tests.consolidation.world import World

KILN = "The kiln of the pottery burns 5 hours."


@pytest.fixture
def cycle(world: World) -> Cycle:
    """Open a cycle with a new cluster, a single near a belief, and a stranger."""
    world.hold(KILN, about="kiln", supports=6)
    world.say("The kiln of the pottery burns 7 hours.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    world.say_all([f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9)], about="lock")
    world.say("A barn stands alone.", about="barn")
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def assert_undisturbed(world: World, cycle: Cycle) -> None:
    """Assert what a run without disturbance gives, and that no call was made twice."""
    cycle.refresh_from_db()
    assert cycle.state == "finished"
    found = Belief.objects.order_by("created_at", "alpha").values_list("alpha", "beta", "evidence_count")
    assert sorted(found) == [(4.0, 1.0, 3), (7.0, 2.0, 7)]
    assert (world.calls("synthesize"), world.calls("classify")) == (1, 2)
    world.check(cycle)


def plan(cycle: Cycle) -> None:
    """Take the cycle to where its jobs are written down."""
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    plan_readings(cycle_id=cycle.pk, attempt=1)
    cluster_episodes(cycle_id=cycle.pk, attempt=1)


def abandon(cycle: Cycle) -> None:
    """Let the cycle's lease run out."""
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=Now() - timedelta(seconds=1))


def lose(job: ClusterJob) -> None:
    """Let a job look as a worker leaves it that was killed: claimed, and its lease run out."""
    ClusterJob.objects.filter(pk=job.pk).update(
        lease_owner="gone", leased_until=Now() - timedelta(seconds=1), claims=job.claims + 1
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_older_attempt_finds_nothing_to_do(world: World, cycle: Cycle, name: str) -> None:
    """The fence: a message of attempt 1 that comes when attempt 2 is at work changes no row and makes no call."""
    for step in steps_of(cycle):
        if step.name == name:
            abandon(cycle)
            assert begin_attempt(cycle_id=cycle.pk) == 2
            if name != "extract":
                assert claim_attempt(cycle_id=cycle.pk, attempt=2)
            before, calls = world.rows(), len(world.server.log)
            step.run(1)
            assert world.rows() == before
            assert len(world.server.log) == calls
            return
        step.run(1)
    raise AssertionError(f"no step {name}")


def test_a_step_that_is_overtaken_as_it_begins_does_nothing(world: World, cycle: Cycle) -> None:
    """The fence: a step of an older attempt has no body."""
    claim_attempt(cycle_id=cycle.pk, attempt=1)
    abandon(cycle)
    begin_attempt(cycle_id=cycle.pk)
    before = world.rows()

    with enter_step(cycle_id=cycle.pk, attempt=1, name="extract") as step:
        assert step is None

    assert world.rows()["Episode"] == before["Episode"]
    assert not CycleStep.objects.filter(finished_at__isnull=False).exists()


def test_a_gate_that_is_overtaken_between_two_jobs_applies_no_more(world: World, cycle: Cycle) -> None:
    """The fence: asked again inside the transaction of every job, not only when the message comes."""
    for step in steps_of(cycle):
        if step.name == "gate":
            break
        step.run(1)
    abandon(cycle)
    begin_attempt(cycle_id=cycle.pk)
    before = world.rows()

    for job in ClusterJob.objects.all():
        assert apply_job(cycle=cycle, attempt=1, job_id=job.pk) == []

    assert world.rows() == before


def test_every_message_twice_changes_nothing(world: World, cycle: Cycle) -> None:
    """Exactly once: each step a second time, at once."""
    for step in steps_of(cycle):
        step.run(1)
        before = world.rows()
        step.run(1)
        assert world.rows() == before, step.name

    assert_undisturbed(world, cycle)


def test_all_messages_again_after_the_end_change_nothing(world: World, cycle: Cycle) -> None:
    """Exactly once: the whole canvas comes back after the visibility time-out."""
    run_steps(cycle=cycle)
    before = world.rows()

    run_steps(cycle=cycle)

    assert world.rows() == before
    assert_undisturbed(world, cycle)


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_takes_over_where_a_worker_was_lost(
    world: World, cycle: Cycle, name: str, woken: list[tuple[str, int]]
) -> None:
    """A cycle abandoned before any step ends as an undisturbed one, with no call repeated."""
    for step in steps_of(cycle):
        if step.name == name:
            break
        step.run(1)
    abandon(cycle)

    assert sweep() == 1

    assert woken == [(cycle.pk, 2)]
    cycle.refresh_from_db()
    run_steps(cycle=cycle)
    assert_undisturbed(world, cycle)


def test_a_sweep_leaves_a_living_cycle_alone(world: World, cycle: Cycle, woken: list[tuple[str, int]]) -> None:
    """A lease that has not run out is somebody's."""
    assert sweep() == 0
    assert woken == []
    assert Heartbeat.objects.filter(name="sweep").exists()


def test_a_reply_that_was_stored_before_the_kill_is_not_paid_for_twice(world: World, cycle: Cycle) -> None:
    """B7: killed between the reply and its use: the next attempt finds it in the ledger."""
    plan(cycle)
    job = ClusterJob.objects.get(kind="cluster")
    synthesize_cluster(job_id=job.pk, attempt=1)
    ClusterJob.objects.filter(pk=job.pk).update(
        state=JobState.QUEUED, candidate=None, candidate_vector=None, candidate_hash=""
    )
    lose(job)

    run_steps(cycle=cycle)

    assert_undisturbed(world, cycle)


def test_evidence_that_is_there_is_not_inserted_again(world: World, cycle: Cycle) -> None:
    """Exactly once: the last line of defence is the row's own constraint."""
    run_steps(cycle=cycle)
    job = ClusterJob.objects.get(kind="singles")
    before = world.rows()

    assert record_job_evidence(cycle=cycle, job=job) == []

    assert world.rows() == before


def test_a_job_that_another_worker_holds_is_left_to_it(world: World, cycle: Cycle) -> None:
    """The lease: a second message of the same attempt finds the job taken; the gate waits, too."""
    plan(cycle)
    job = ClusterJob.objects.get(kind="cluster")

    with leased_job(job_id=job.pk, attempt=1, ready=Q(state=JobState.QUEUED)) as lease:
        assert lease is not None
        run_steps(cycle=cycle)
        assert world.calls("synthesize") == 0
        cycle.refresh_from_db()
        assert cycle.state == "running"

    run_steps(cycle=cycle)
    assert_undisturbed(world, cycle)


def test_jobs_are_applied_in_their_order_whoever_is_slow(world: World, cycle: Cycle) -> None:
    """B8.5: what comes after a job that is still being worked on waits for it."""
    plan(cycle)
    first, second = ClusterJob.objects.order_by("number")
    with leased_job(job_id=first.pk, attempt=1, ready=Q(state=JobState.QUEUED)):
        run_steps(cycle=cycle)

    second.refresh_from_db()
    assert second.state == JobState.CLASSIFIED
    run_steps(cycle=cycle)
    assert_undisturbed(world, cycle)


def test_a_job_that_kills_its_workers_is_given_up(world: World, cycle: Cycle, decree: Decree) -> None:
    """Poison: claims are counted; the others' work is applied, its own episodes stay pending with the reason."""
    decree("budget", job_claims=3)
    plan(cycle)
    for _ in range(3):
        lose(ClusterJob.objects.get(kind="cluster"))

    run_steps(cycle=cycle)

    cycle.refresh_from_db()
    job = ClusterJob.objects.get(kind="cluster")
    assert (job.state, job.state_reason) == ("failed", "claimed too often")
    assert world.only_belief().beta == 2.0
    assert (cycle.state, cycle.counts["failed"]) == ("finished", 1)
    failed = world.workspace.episodes.filter(state="failed")
    assert set(failed.values_list("state_reason", "failures")) == {("claimed too often", 1)}
    world.cycle()
    assert sorted(Belief.objects.values_list("alpha", flat=True)) == [4.0, 7.0]


def test_work_that_ends_well_counts_no_claim(world: World, cycle: Cycle) -> None:
    """Poison: only ends that the job brought about are counted."""
    run_steps(cycle=cycle)

    assert set(ClusterJob.objects.values_list("claims", flat=True)) == {0}


def test_an_error_in_a_step_counts_as_a_claim(world: World, cycle: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poison: a job that no code can stomach ends, too."""
    plan(cycle)
    job = ClusterJob.objects.get(kind="singles")
    monkeypatch.setattr("memory.consolidation.judge.judge_targets", lambda **_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        classify_cluster(job_id=job.pk, attempt=1)

    job.refresh_from_db()
    assert (job.claims, job.lease_owner, job.state) == (1, "", "queued")


def test_a_job_that_cannot_be_applied_keeps_no_other_from_it(
    world: World, cycle: Cycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate: its transaction is undone, it fails alone, and the next cycle tries again."""
    monkeypatch.setattr("memory.consolidation.belief_creation.create_belief", lambda **_: 1 / 0)

    run_steps(cycle=cycle)

    cycle.refresh_from_db()
    assert (cycle.state, cycle.counts["failed"]) == ("finished", 1)
    assert world.only_belief().beta == 2.0
    assert (
        world.workspace.episodes.filter(
            state="failed", state_reason="our own error: at the gate: ZeroDivisionError"
        ).count()
        == 3
    )
    monkeypatch.undo()
    world.cycle()
    assert sorted(Belief.objects.values_list("alpha", flat=True)) == [4.0, 7.0]
    assert world.calls("synthesize") == 1


def test_a_cycle_that_was_tried_too_often_fails_and_gives_everything_back(
    world: World, cycle: Cycle, decree: Decree
) -> None:
    """B9: after so many attempts; the work waits for another cycle, and no reply is lost."""
    decree("budget", cycle_attempts=2)
    plan(cycle)
    synthesize_cluster(job_id=ClusterJob.objects.get(kind="cluster").pk, attempt=1)
    abandon(cycle)
    sweep()
    claim_attempt(cycle_id=cycle.pk, attempt=2)
    abandon(cycle)

    sweep()

    cycle.refresh_from_db()
    assert (cycle.state, cycle.state_reason) == ("failed", "too many attempts")
    world.check(cycle)
    assert world.workspace.episodes.filter(state="new").count() == 4
    world.cycle()
    assert sorted(Belief.objects.values_list("alpha", flat=True)) == [4.0, 7.0]
    assert world.calls("synthesize") == 1


def test_attempts_that_nobody_took_up_do_not_count(cycle: Cycle, decree: Decree) -> None:
    """B9: workers may be away, and a queue long, for as long as it takes."""
    decree("budget", cycle_attempts=2)
    for _ in range(5):
        abandon(cycle)
        assert sweep() == 1

    cycle.refresh_from_db()
    assert (cycle.state, cycle.attempt, cycle.claims) == ("queued", 6, 0)


def test_an_attempt_counts_once_however_often_its_message_comes(cycle: Cycle) -> None:
    """B9: an attempt is claimed by the first that takes it up."""
    for attempt in (1, 1, 1):
        claim_attempt(cycle_id=cycle.pk, attempt=attempt)

    cycle.refresh_from_db()
    assert (cycle.taken_attempt, cycle.claims) == (1, 1)


def test_a_new_attempt_has_its_minimum_and_a_repeated_message_no_more(world: World, cycle: Cycle) -> None:
    """B9: thirty seconds at least for another attempt; a message that comes again extends nothing."""
    claim_attempt(cycle_id=cycle.pk, attempt=1)
    Cycle.objects.filter(pk=cycle.pk).update(deadline_at=Now() + timedelta(seconds=3))

    claim_attempt(cycle_id=cycle.pk, attempt=1)
    assert seconds_left(cycle_id=cycle.pk) < 4

    abandon(cycle)
    begin_attempt(cycle_id=cycle.pk)
    claim_attempt(cycle_id=cycle.pk, attempt=2)
    assert 25 < seconds_left(cycle_id=cycle.pk) <= 31


def test_time_without_a_worker_is_no_working_time(world: World, cycle: Cycle) -> None:
    """B9: the wait for a lost worker moves the deadline."""
    claim_attempt(cycle_id=cycle.pk, attempt=1)
    Cycle.objects.filter(pk=cycle.pk).update(
        seen_at=Now() - timedelta(seconds=100), deadline_at=Now() - timedelta(seconds=20)
    )
    abandon(cycle)
    begin_attempt(cycle_id=cycle.pk)

    claim_attempt(cycle_id=cycle.pk, attempt=2)

    assert 75 < seconds_left(cycle_id=cycle.pk) <= 81
