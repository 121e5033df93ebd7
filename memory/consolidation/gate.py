"""Step 5: what was found becomes evidence and beliefs, and every touched belief passes the gates.

One transaction per job, in job order under a lock of the workspace: all evidence rows, the new belief, the settling of
its episodes. Then one transaction per touched belief for the gates.
"""

from time import monotonic

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, Min, OuterRef

from memory.consolidation.birth import give_birth
from memory.consolidation.blame import blame_members
from memory.consolidation.claims import hear_claim
from memory.consolidation.cycle import (
    TIME_IS_UP,
    budget_policy,
    has_time_for_a_call,
    read_current,
    renew_cycle,
    spend_budget,
)
from memory.consolidation.release import release_members
from memory.consolidation.setting_aside import set_members_aside
from memory.consolidation.standing import adopt_jobs
from memory.consolidation.testimony import give_evidence
from memory.consolidation.twins import find_twins, proposed_lately, settled_lately
from memory.consolidation.walk import walk_gates
from memory.domain.gates import GATES, MergeGate
from memory.domain.lifecycle import OWN_ERRORS, CycleState, JobState, describe_own_error
from memory.ledger.transactions import lock_workspace, try_early_gate_lock
from memory.models import Belief, ClusterJob, Cycle, CycleStep, GateDecision, JobKind
from memory.models.cycles import OPEN_JOB_STATES

log = structlog.get_logger(__name__)

_PLANNING = ("extract", "cluster")

_WALKS_PER_RENEWAL = 50  # together well under a second; an attempt overtaken meanwhile decides what the next would


def apply_jobs(*, cycle_id: str, attempt: int) -> bool:
    """Apply the jobs that are ready, in order; true once none of the cycle's jobs is open any more.

    A job that another worker holds, or that waits for a model server, keeps the cycle open, and those after it
    unapplied: which of two twins came first must not depend on who was slow. The sweeper comes back to it. A job for
    which no time is left goes back to where it came from. The canvas goes on after a step that broke: without a plan
    there is nothing to end yet.
    """
    renew_cycle(cycle_id=cycle_id, attempt=attempt)
    cycle = read_current(cycle_id=cycle_id, attempt=attempt)
    if cycle is None:
        return False
    if not _is_planned(cycle):
        log.warning("gate_before_plan", cycle=cycle.pk)
        return False
    CycleStep.objects.get_or_create(cycle=cycle, name="gate", defaults={"workspace_id": cycle.workspace_id})
    _release_failed(cycle=cycle)
    _defer_hopeless(cycle=cycle)
    began = monotonic()
    for job_id in _applicable(cycle):
        # Under the tasks' soft time limit, which would come in the middle of a job and be taken for its fault.
        is_late = monotonic() - began > budget_policy().last_call_seconds
        if is_late or not renew_cycle(cycle_id=cycle_id, attempt=attempt):
            return False
        _apply_or_fail(cycle=cycle, attempt=attempt, job_id=job_id)
    if ClusterJob.objects.filter(cycle=cycle).unfinished().exists():
        return False
    return _walk_touched(cycle=cycle, attempt=attempt)


def apply_ready(*, cycle_id: str, attempt: int) -> None:
    """Apply the jobs that no job with calls to make precedes, while models still answer about others.

    One worker does so at a time; what is left over is the gate's.
    """
    cycle = Cycle.objects.select_related("workspace").get(pk=cycle_id)
    with try_early_gate_lock(cycle.workspace_id) as is_alone:
        while is_alone and (jobs := _applicable(cycle)):
            for job_id in jobs:
                if not renew_cycle(cycle_id=cycle_id, attempt=attempt):
                    return
                _apply_or_fail(cycle=cycle, attempt=attempt, job_id=job_id)


def _is_planned(cycle: Cycle) -> bool:
    """Tell whether the steps before the jobs have been done: no jobs means nothing to do only then."""
    done = CycleStep.objects.filter(cycle=cycle, name__in=_PLANNING, finished_at__isnull=False)
    return done.count() == len(_PLANNING)


def _applicable(cycle: Cycle) -> list[int]:
    """List the jobs to apply that no job with calls to make precedes."""
    jobs = ClusterJob.objects.filter(cycle=cycle)
    first_open = jobs.to_judge().aggregate(number=Min("number"))["number"]
    ready = jobs.filter(state=JobState.CLASSIFIED)
    if first_open is not None:
        ready = ready.filter(number__lt=first_open)
    return list(ready.order_by("number").values_list("pk", flat=True))


def _walk_touched(*, cycle: Cycle, attempt: int) -> bool:
    """Walk the gates of every belief that is due and that has not been walked; false if fenced off.

    Due is what has counted evidence that no gates have seen, whoever gave or took it (C3). What a change of structure
    made in this cycle waits for the next.

    Beliefs that rested since their last change are asked whether they merge, though nothing new was said of them.
    """
    walked = GateDecision.objects.filter(cycle=cycle, belief=OuterRef("pk"), gate=GATES[0].name)
    due = Belief.objects.for_workspace(cycle.workspace_id).filter(is_due=True)
    due = due.exclude(Exists(walked)).exclude(born_in=cycle, lineage_depth__gt=0)
    unwalked = list(due.order_by("pk").values_list("pk", flat=True))
    asked_for = {*settled_lately(cycle=cycle), *proposed_lately(cycle=cycle)}
    rested = sorted(asked_for - set(unwalked))
    twins = find_twins(cycle=cycle, changed=[*unwalked, *rested])
    alike = sorted(key for key in rested if key in twins)
    for ids, gates in ((unwalked, GATES), (alike, (MergeGate(),))):
        for start in range(0, len(ids), _WALKS_PER_RENEWAL):
            if not renew_cycle(cycle_id=cycle.pk, attempt=attempt):
                return False
            walk_gates(cycle=cycle, belief_ids=ids[start : start + _WALKS_PER_RENEWAL], gates=gates, twins=twins)
    adopt_jobs(cycle=cycle)
    return True


def _apply_or_fail(*, cycle: Cycle, attempt: int, job_id: int) -> None:
    """Apply a job; one that cannot be applied must not keep those after it from being, nor one member all others."""
    try:
        apply_job(cycle=cycle, attempt=attempt, job_id=job_id)
    except (OperationalError, InterfaceError):
        raise  # the database's trouble, not the job's
    except Exception as error:
        log.exception("job_not_applied", cycle=cycle.pk, job=job_id)
        if isinstance(error, OWN_ERRORS) and set_members_aside(job=ClusterJob.objects.get(pk=job_id)):
            return _apply_or_fail(cycle=cycle, attempt=attempt, job_id=job_id)
        reason = describe_own_error(f"at the gate: {type(error).__name__}")
        ClusterJob.objects.filter(pk=job_id, state=JobState.CLASSIFIED).update(
            state=JobState.FAILED, state_reason=reason
        )
        blame_members(job_id=job_id)
        release_members(job_id=job_id, cycle=cycle)


@transaction.atomic
def apply_job(*, cycle: Cycle, attempt: int, job_id: int) -> list[str]:
    """Apply one job in one transaction; return the ids of the beliefs that it touched."""
    lock_workspace(cycle.workspace_id)
    # Rows are locked in the order named here: whoever closes a cycle holds it before its jobs.
    jobs = ClusterJob.objects.select_related("cycle", "workspace").select_for_update(of=("cycle", "self"), no_key=True)
    job = jobs.filter(
        pk=job_id, state=JobState.CLASSIFIED, cycle__attempt=attempt, cycle__state=CycleState.RUNNING
    ).first()
    if job is None:
        return []
    if job.kind == JobKind.CLAIM:
        touched = hear_claim(cycle=cycle, job=job)
    else:
        touched = give_evidence(cycle=cycle, job=job)
        touched += give_birth(cycle=cycle, job=job)
    _end(job, JobState.APPLIED if touched else JobState.REFUSED)
    release_members(job_id=job.pk, cycle=cycle)
    return touched


def _end(job: ClusterJob, state: JobState) -> None:
    job.state = state
    job.save(update_fields=["state", "outcome", "refusal", "created_belief", "joined_belief", "suppressed_by"])


def _defer_hopeless(*, cycle: Cycle) -> None:
    """Put back the jobs that nobody holds when the cycle may start no more calls (B9)."""
    hopeless = ClusterJob.objects.filter(cycle=cycle).to_judge().free()
    if not has_time_for_a_call(cycle_id=cycle.pk) and hopeless.exists():
        spend_budget(cycle_id=cycle.pk, reason=TIME_IS_UP)
    cycle.refresh_from_db(fields=["budget_spent"])  # not the attempt: this one's work is its own
    if cycle.budget_spent:
        for job_id in hopeless.values_list("pk", flat=True):
            defer_job(cycle=cycle, job_id=job_id)


@transaction.atomic
def defer_job(*, cycle: Cycle, job_id: int) -> None:
    """Give a job's episodes back to the work that waits; what models said about them stays in the ledger."""
    free = ClusterJob.objects.free().filter(pk=job_id, state__in=OPEN_JOB_STATES)
    ended = free.update(state=JobState.DEFERRED, state_reason=cycle.budget_spent)
    if ended:
        release_members(job_id=job_id, cycle=cycle)


def _release_failed(*, cycle: Cycle) -> None:
    for job_id in ClusterJob.objects.filter(cycle=cycle, state=JobState.FAILED).values_list("pk", flat=True):
        release_members(job_id=job_id, cycle=cycle)
