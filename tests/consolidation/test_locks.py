"""What a job's end does when another session has its hands on the same rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from memory.consolidation.apply import apply_job, release_members
from memory.domain.lifecycle import JobState
from memory.models import ClusterJob, ClusterMember, Cycle, Episode, JobKind
from tests import factories
from tests.consolidation.test_one_worker_a_job import wait_for_blocked


@pytest.fixture
def job(transactional_db: None) -> ClusterJob:
    """Store a running cycle's job that is judged, with one episode."""
    workspace = factories.workspace()
    cycle = Cycle.objects.create(workspace=workspace, now=factories.NOW, trigger="person", state="running", attempt=1)
    job = ClusterJob.objects.create(
        workspace=workspace, cycle=cycle, number=1, kind=JobKind.CLUSTER, members_hash="", state=JobState.CLASSIFIED
    )
    episode = factories.episode(workspace=workspace, state="leased", leased_by=cycle)
    ClusterMember.objects.create(workspace=workspace, job=job, episode=episode, position=0)
    return job


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in a session that ends with it."""
    try:
        work()
    finally:
        connection.close()


def test_a_job_is_applied_under_its_cycles_lock_first(job: ClusterJob) -> None:
    """Who closes a cycle holds it and then wants its jobs: the other order would be a deadlock."""
    with ThreadPoolExecutor(1) as gate:
        with transaction.atomic():
            Cycle.objects.select_for_update(no_key=True).get(pk=job.cycle_id)
            applied = gate.submit(elsewhere, lambda: apply_job(cycle=job.cycle, attempt=1, job_id=job.pk))
            wait_for_blocked(1)
            free = ClusterJob.objects.select_for_update(skip_locked=True).filter(pk=job.pk).values_list("pk", flat=True)
            assert list(free) == [job.pk]
        applied.result(timeout=20)

    assert ClusterJob.objects.get(pk=job.pk).state == JobState.REFUSED
    assert Episode.objects.get().state == "pooled"


def test_an_episode_that_was_taken_from_the_cycle_meanwhile_is_left_alone(job: ClusterJob) -> None:
    """Whoever gave it back has said where it goes."""
    ClusterJob.objects.update(state=JobState.REFUSED)
    with ThreadPoolExecutor(1) as gate:
        with transaction.atomic():
            Episode.objects.update(state="new", leased_by=None)
            released = gate.submit(elsewhere, lambda: release_members(job_id=job.pk, cycle=job.cycle))
            wait_for_blocked(1)
        released.result(timeout=20)

    assert Episode.objects.filter(state="new", leased_by=None, pooled_at=None).exists()
