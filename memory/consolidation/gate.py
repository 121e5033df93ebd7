"""Step 5: what was found becomes evidence and beliefs, and every touched belief passes the gates.

One transaction per job, in job order under a lock of the workspace: all evidence rows, the new belief, the settling of
its episodes. Then one transaction per touched belief for the gates.
"""

import structlog
from django.db import transaction

from memory.consolidation.birth import give_birth
from memory.consolidation.cycle import has_time_for_a_call, renew_cycle
from memory.consolidation.evidence import insert_evidence, recompute_belief
from memory.consolidation.locks import lock_beliefs, lock_workspace
from memory.consolidation.settling import fail_members, put_back, settle_members
from memory.consolidation.walk import return_from_archive, walk_gates
from memory.domain.lifecycle import CycleState, JobState
from memory.domain.verdicts import Verdict
from memory.models import ClusterJob, ClusterMember, Cycle, CycleStep, Episode
from memory.models.cycles import OPEN_JOB_STATES

log = structlog.get_logger(__name__)


def apply_jobs(*, cycle_id: str, attempt: int) -> bool:
    """Apply every job that is ready; true once none of the cycle's jobs is open any more.

    A job that another worker holds, or that waits for a model server, keeps the cycle open; the sweeper comes back to
    it. A job for which no time is left goes back to where it came from.
    """
    if not renew_cycle(cycle_id=cycle_id, attempt=attempt):
        return False
    cycle = Cycle.objects.select_related("workspace").get(pk=cycle_id)
    CycleStep.objects.get_or_create(cycle=cycle, name="gate", defaults={"workspace_id": cycle.workspace_id})
    for job_id in _jobs(cycle, JobState.CLASSIFIED, JobState.FAILED):
        if not renew_cycle(cycle_id=cycle_id, attempt=attempt):
            return False
        touched = apply_job(cycle=cycle, attempt=attempt, job_id=job_id)
        for belief_id in touched:
            walk_gates(cycle=cycle, belief_id=belief_id)
    _defer_hopeless(cycle=cycle)
    return not ClusterJob.objects.filter(cycle=cycle).unfinished().exists()


def _jobs(cycle: Cycle, *states: JobState) -> list[int]:
    return list(
        ClusterJob.objects.filter(cycle=cycle, state__in=states).order_by("number").values_list("pk", flat=True)
    )


@transaction.atomic
def apply_job(*, cycle: Cycle, attempt: int, job_id: int) -> list[str]:
    """Apply one job in one transaction; return the ids of the beliefs that it touched."""
    lock_workspace(cycle.workspace_id)
    current = Cycle.objects.select_for_update().filter(pk=cycle.pk, attempt=attempt, state=CycleState.RUNNING)
    job = ClusterJob.objects.select_for_update().filter(pk=job_id).first()
    if job is None or not current.exists():
        return []
    if job.state == JobState.FAILED:
        fail_members(job_id=job.pk, cycle=cycle, reason=job.state_reason)
        return []
    if job.state != JobState.CLASSIFIED:
        return []
    touched = _give_evidence(cycle=cycle, job=job)
    touched += give_birth(cycle=cycle, job=job)
    _end(job, JobState.APPLIED if touched else JobState.REFUSED)
    settle_members(job_id=job.pk, cycle=cycle)
    return touched


def _give_evidence(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Turn verdicts on existing beliefs into evidence; return the beliefs that gained some."""
    judged = job.verdicts.filter(belief__isnull=False).exclude(verdict=Verdict.IRRELEVANT)
    beliefs = lock_beliefs(set(judged.values_list("belief_id", flat=True)))
    touched = []
    for belief in beliefs:
        gained = insert_evidence(job_id=job.pk, target=belief.pk, belief_id=belief.pk, cycle=cycle)
        if gained:
            recompute_belief(belief=belief, now=cycle.now, gained=gained)
            return_from_archive(cycle=cycle, belief=belief, gained=gained)
            touched.append(belief.pk)
    if touched:
        job.outcome = "matched"
    return touched


def _end(job: ClusterJob, state: JobState) -> None:
    job.state = state
    job.save(update_fields=["state", "outcome", "refusal", "created_belief"])


def _defer_hopeless(*, cycle: Cycle) -> None:
    """Put back the jobs that nobody holds when the cycle may start no more calls (B9)."""
    cycle.refresh_from_db()
    if not cycle.budget_spent and has_time_for_a_call(cycle_id=cycle.pk):
        return
    for job_id in ClusterJob.objects.filter(cycle=cycle).to_judge().free().values_list("pk", flat=True):
        defer_job(cycle=cycle, job_id=job_id)


@transaction.atomic
def defer_job(*, cycle: Cycle, job_id: int) -> None:
    """Give a job's episodes back to the work that waits; what models said about them stays in the ledger."""
    ended = ClusterJob.objects.filter(pk=job_id, state__in=OPEN_JOB_STATES).update(
        state=JobState.DEFERRED, state_reason=cycle.budget_spent or "working time"
    )
    if ended:
        members = ClusterMember.objects.filter(job=job_id).values("episode")
        put_back(episodes=Episode.objects.filter(leased_by=cycle.pk, pk__in=members))
