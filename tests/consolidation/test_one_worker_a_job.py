"""B8: one worker at a time holds a job, however many messages there are of it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.db.models import Q

from memory.consolidation.cycle import begin_attempt, claim_attempt, database_now, enter_step, open_cycle
from memory.consolidation.jobs import leased_job
from memory.domain.lifecycle import JobState
from memory.models import ClusterJob, Cycle, CycleStep, JobKind, Trigger
from tests import factories

WORKERS = 3


@pytest.fixture
def job(transactional_db: None) -> ClusterJob:
    """Store a job of a running cycle."""
    workspace = factories.workspace()
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    assert claim_attempt(cycle_id=cycle.pk, attempt=1)
    Cycle.objects.update(leased_until=database_now(plus=600))
    return ClusterJob.objects.create(workspace=workspace, cycle=cycle, number=1, kind=JobKind.CLUSTER, members_hash="")


def test_workers_that_reach_for_a_job_at_the_same_moment_do_not_both_get_it(job: ClusterJob) -> None:
    """Each has looked at the free job before any of them could write."""
    held: list[str] = []
    all_have_tried = threading.Barrier(WORKERS, timeout=20)

    def work() -> None:
        with leased_job(job_id=job.pk, attempt=1, ready=Q(state=JobState.QUEUED)) as lease:
            held.extend([lease.owner] if lease else [])
            all_have_tried.wait()
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    with transaction.atomic():
        ClusterJob.objects.select_for_update().get(pk=job.pk)
        for worker in workers:
            worker.start()
        wait_for_blocked(WORKERS)
    for worker in workers:
        worker.join()

    assert len(held) == 1


def test_nobody_overtakes_an_attempt_within_a_step_of_its_cycle(job: ClusterJob) -> None:
    """The step holds the cycle's row from its sign of life to its end, however late that sign was."""
    Cycle.objects.update(leased_until=database_now(plus=-1))
    with ThreadPoolExecutor(1) as sweeper, enter_step(cycle_id=job.cycle_id, attempt=1, name="cluster") as step:
        assert step is not None
        assert sweeper.submit(try_to_overtake, job.cycle_id).result(timeout=20) is None

    assert CycleStep.objects.get(cycle=job.cycle_id, finished_at__isnull=False).started_at == step.began
    assert begin_attempt(cycle_id=job.cycle_id) is None


def try_to_overtake(cycle_id: str) -> int | None:
    """Begin another attempt, from a session of its own."""
    try:
        return begin_attempt(cycle_id=cycle_id)
    finally:
        connection.close()


def wait_for_blocked(count: int) -> None:
    """Wait until so many sessions wait for a lock."""
    blocked = 0
    for _ in range(1000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            (blocked,) = cursor.fetchone()
            if blocked == count:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError(f"{blocked} of {count} sessions wait")
