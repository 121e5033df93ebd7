"""B8.5: what is judged is applied while models still answer about the rest, in the order of the jobs all the same."""

from datetime import timedelta

from django.db import connection

from memory.consolidation.apply import apply_jobs, apply_ready
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.jobs import find_cycle_to_apply
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.read import plan_readings
from memory.models import Belief, ClusterJob, Cycle, Trigger
from tests import factories
from tests.consolidation.test_near_duplicates import FIVE, say_two_clusters
from tests.consolidation.world import World


def plan_two_jobs(world: World) -> tuple[Cycle, ClusterJob, ClusterJob]:
    """Open a cycle over two clusters that say the same, and take it to its jobs."""
    say_two_clusters(world, (FIVE, FIVE))
    cycle, _ = open_cycle(
        workspace_id=world.workspace.pk, now=factories.NOW + timedelta(days=1), trigger=Trigger.PERSON
    )
    extract_episodes(cycle_id=cycle.pk, attempt=cycle.attempt)
    plan_readings(cycle_id=cycle.pk, attempt=cycle.attempt)
    cluster_episodes(cycle_id=cycle.pk, attempt=cycle.attempt)
    first, second = ClusterJob.objects.filter(cycle=cycle).order_by("number")
    return cycle, first, second


def judge(job: ClusterJob, cycle: Cycle) -> None:
    synthesize_cluster(job_id=job.pk, attempt=cycle.attempt)
    classify_cluster(job_id=job.pk, attempt=cycle.attempt)


def test_a_job_that_none_precedes_is_applied_before_the_others_are_judged(world: World) -> None:
    """B8.5: the first of two is a belief while the second still waits for its model."""
    cycle, first, _ = plan_two_jobs(world)
    judge(first, cycle)
    assert find_cycle_to_apply(job_id=first.pk) == cycle.pk

    apply_ready(cycle_id=cycle.pk, attempt=cycle.attempt)

    assert list(ClusterJob.objects.order_by("number").values_list("state", flat=True)) == ["applied", "queued"]
    assert Belief.objects.get().alpha == 4.0


def test_a_job_behind_one_that_is_still_judged_waits(world: World) -> None:
    """B8.5: which of two twins came first must not depend on who was slow."""
    cycle, _, second = plan_two_jobs(world)
    judge(second, cycle)
    assert find_cycle_to_apply(job_id=second.pk) is None

    apply_ready(cycle_id=cycle.pk, attempt=cycle.attempt)

    assert list(ClusterJob.objects.order_by("number").values_list("state", flat=True)) == ["queued", "classified"]
    assert not Belief.objects.exists()


def test_what_a_cycle_founds_early_is_a_twin_to_its_later_jobs_and_no_existing_belief(world: World) -> None:
    """B8.4, B8.5: the second cluster joins the first at the gate, and is not held against it as an existing belief."""
    cycle, first, second = plan_two_jobs(world)
    judge(first, cycle)
    apply_ready(cycle_id=cycle.pk, attempt=cycle.attempt)
    judge(second, cycle)
    assert apply_jobs(cycle_id=cycle.pk, attempt=cycle.attempt)
    finish_cycle(cycle_id=cycle.pk, attempt=cycle.attempt)

    belief = world.only_belief()
    assert (belief.alpha, belief.beta) == (7.0, 1.0)
    assert not second.verdicts.filter(belief__isnull=False).exists()


def test_an_older_attempt_applies_nothing_early(world: World) -> None:
    """B8: what an older attempt left under way finds nothing to do."""
    cycle, first, _ = plan_two_jobs(world)
    judge(first, cycle)

    apply_ready(cycle_id=cycle.pk, attempt=cycle.attempt - 1)

    assert not Belief.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 2")
        assert cursor.fetchone() == (0,)
