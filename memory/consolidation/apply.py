"""Step 6: apply the judged jobs in order, run the gates on every touched belief, and let go of the episodes.

`apply_jobs` is the step, `apply_ready` does what it can of it while models still answer. One transaction a job, under
the workspace's lock: evidence, the new belief, where its episodes go; then some touched beliefs a transaction for the
gates.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Exists, Min, OuterRef

from memory.consolidation.belief_creation import create_from_cluster, record_job_evidence
from memory.consolidation.cycle import (
    TIME_SPENT,
    budget_policy,
    has_time_for_call,
    mark_budget_spent,
    read_current_cycle,
    renew_cycle,
)
from memory.consolidation.episode_states import EVIDENCE, PARTLY_ASKED
from memory.consolidation.gates import find_near_duplicates, find_recently_proposed, find_recently_settled, run_gates
from memory.consolidation.jobs import blame_members, dead_letter_broken_members
from memory.consolidation.restructure import adopt_carried_over_jobs
from memory.domain.gates import GATES, MergeGate
from memory.domain.lifecycle import OWN_ERRORS, REPLACED, ConsolidationState, CycleState, JobState, describe_own_error
from memory.ledger.transactions import lock_workspace, try_early_gate_lock
from memory.models import Belief, CallOutcome, ClusterJob, Cycle, CycleStep, GateDecision, JobKind
from memory.models.audit import PURPOSE_EMBED, PURPOSE_RECALL
from memory.models.cycles import OPEN_JOB_STATES, Blame

log = structlog.get_logger(__name__)
_BELIEFS_PER_RENEWAL = 50  # together well under a second; an attempt overtaken meanwhile decides what the next would


def apply_jobs(*, cycle_id: str, attempt: int) -> bool:
    """Apply the jobs that are ready, in order; true once none of the cycle's jobs is open any more.

    A job that another worker holds, or that waits for a model server, keeps the cycle open, and those after it
    unapplied: which of two twins came first must not depend on who was slow. The sweeper comes back to it. A job for
    which no time is left goes back to where it came from. The canvas goes on after a step that broke: without a plan
    there is nothing to end yet.
    """
    renew_cycle(cycle_id=cycle_id, attempt=attempt)
    cycle = read_current_cycle(cycle_id=cycle_id, attempt=attempt)
    if cycle is None:
        return False
    if not _is_planned(cycle):
        log.warning("gate_before_plan", cycle=cycle.pk)
        return False
    CycleStep.objects.get_or_create(cycle=cycle, name="gate", defaults={"workspace_id": cycle.workspace_id})
    _release_failed(cycle=cycle)
    _defer_without_time(cycle=cycle)
    began = monotonic()
    for job_id in _list_applicable(cycle):
        # Under the tasks' soft time limit, which would come in the middle of a job and be taken for its fault.
        is_late = monotonic() - began > budget_policy().last_call_seconds
        if is_late or not renew_cycle(cycle_id=cycle_id, attempt=attempt):
            return False
        _apply_or_fail(cycle=cycle, attempt=attempt, job_id=job_id)
    if ClusterJob.objects.filter(cycle=cycle).open().exists():
        return False
    return _run_gates_on_touched(cycle=cycle, attempt=attempt)


def _is_planned(cycle: Cycle) -> bool:
    """Tell whether the steps before the jobs have been done: no jobs means nothing to do only then."""
    done = CycleStep.objects.filter(cycle=cycle, name__in=_PLANNING_STEPS, finished_at__isnull=False)
    return done.count() == len(_PLANNING_STEPS)


def _release_failed(*, cycle: Cycle) -> None:
    for job_id in ClusterJob.objects.filter(cycle=cycle, state=JobState.FAILED).values_list("pk", flat=True):
        release_members(job_id=job_id, cycle=cycle)


def _defer_without_time(*, cycle: Cycle) -> None:
    """Put back the jobs that nobody holds when the cycle may start no more calls (B9)."""
    hopeless = ClusterJob.objects.filter(cycle=cycle).to_judge().free()
    if not has_time_for_call(cycle_id=cycle.pk) and hopeless.exists():
        mark_budget_spent(cycle_id=cycle.pk, reason=TIME_SPENT)
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


def _list_applicable(cycle: Cycle) -> list[int]:
    """List the jobs to apply that no job with calls to make precedes."""
    jobs = ClusterJob.objects.filter(cycle=cycle)
    first_open = jobs.to_judge().aggregate(number=Min("number"))["number"]
    ready = jobs.filter(state=JobState.CLASSIFIED)
    if first_open is not None:
        ready = ready.filter(number__lt=first_open)
    return list(ready.order_by("number").values_list("pk", flat=True))


def apply_ready(*, cycle_id: str, attempt: int) -> None:
    """Apply the jobs that no job with calls to make precedes, while models still answer about others.

    One worker does so at a time, and for as long as a step may last; what is left over is the gate's.
    """
    cycle = Cycle.objects.select_related("workspace").get(pk=cycle_id)
    began = monotonic()
    with try_early_gate_lock(cycle.workspace_id) as is_alone:
        while is_alone and (jobs := _list_applicable(cycle)):
            for job_id in jobs:
                is_late = monotonic() - began > budget_policy().last_call_seconds
                if is_late or not renew_cycle(cycle_id=cycle_id, attempt=attempt):
                    return
                _apply_or_fail(cycle=cycle, attempt=attempt, job_id=job_id)


def _apply_or_fail(*, cycle: Cycle, attempt: int, job_id: int) -> None:
    """Apply a job; one that cannot be applied must not keep those after it from being, nor one member all others."""
    try:
        apply_job(cycle=cycle, attempt=attempt, job_id=job_id)
    except (OperationalError, InterfaceError):
        raise  # the database's trouble, not the job's
    except Exception as error:
        log.exception("job_not_applied", cycle=cycle.pk, job=job_id)
        if isinstance(error, OWN_ERRORS) and dead_letter_broken_members(job=ClusterJob.objects.get(pk=job_id)):
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
    touched = record_job_evidence(cycle=cycle, job=job)
    touched += create_from_cluster(cycle=cycle, job=job)
    _end_job(job, JobState.APPLIED if touched else JobState.REFUSED)
    release_members(job_id=job.pk, cycle=cycle)
    return touched


def _end_job(job: ClusterJob, state: JobState) -> None:
    job.state = state
    job.save(update_fields=["state", "outcome", "refusal", "created_belief", "joined_belief", "suppressed_by"])


def _run_gates_on_touched(*, cycle: Cycle, attempt: int) -> bool:
    """Walk the gates of every belief that is due and that has not been walked; false if fenced off.

    Due is what has counted evidence that no gates have seen, whoever gave or took it (C3). What a change of structure
    made in this cycle waits for the next.

    Beliefs that rested since their last change are asked whether they merge, though nothing new was said of them.
    """
    walked = GateDecision.objects.filter(cycle=cycle, belief=OuterRef("pk"), gate=GATES[0].name)
    due = Belief.objects.for_workspace(cycle.workspace_id).filter(is_due=True)
    due = due.exclude(Exists(walked)).exclude(created_in=cycle, lineage_depth__gt=0)
    unwalked = list(due.order_by("pk").values_list("pk", flat=True))
    asked_for = {*find_recently_settled(cycle=cycle), *find_recently_proposed(cycle=cycle)}
    rested = sorted(asked_for - set(unwalked))
    twins = find_near_duplicates(cycle=cycle, changed=[*unwalked, *rested])
    alike = sorted(key for key in rested if key in twins)
    for ids, gates in ((unwalked, GATES), (alike, (MergeGate(),))):
        for start in range(0, len(ids), _BELIEFS_PER_RENEWAL):
            if not renew_cycle(cycle_id=cycle.pk, attempt=attempt):
                return False
            run_gates(cycle=cycle, belief_ids=ids[start : start + _BELIEFS_PER_RENEWAL], gates=gates, twins=twins)
    adopt_carried_over_jobs(cycle=cycle)
    return True


_PLANNING_STEPS = ("extract", "read", "cluster")
_S = ConsolidationState
# Part of a reading's messages may have been read before it failed.
_LEFT_TO_DO = f"(j.kind <> '{JobKind.READING}' OR e.read_at IS NULL)"

# One statement, and not the ORM's: building what says the same took a fifth of a gate's processor time.
_RELEASE_SQL = f"""
WITH ended AS (
    SELECT e.id, failed.state_reason AS failure, failed.id IS NOT NULL AND EXISTS (
        SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
        WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s AND j.state = '{JobState.FAILED}'
          AND {_LEFT_TO_DO} AND (m.blame = '{Blame.CONTENT}' OR m.blame = '{Blame.CALL}' AND EXISTS (
              SELECT FROM memory_modelcall c
              WHERE c.cycle_id = %(cycle)s AND c.outcome = '{CallOutcome.OK}' AND c.purpose <> ALL(%(vectors)s)))
    ) AS is_blamed, CASE
        WHEN failed.id IS NOT NULL THEN '{_S.FAILED}'
        WHEN EXISTS (SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
                     WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s
                       AND j.state = '{JobState.DEFERRED}') THEN 'put back'
        WHEN e.state_reason = %(partly)s THEN 'partly asked'
        WHEN EXISTS (SELECT FROM memory_evidence v JOIN memory_belief b ON b.id = v.belief_id
                     WHERE v.episode_id = e.id AND b.status <> ALL(%(replaced)s)) THEN '{_S.SETTLED}'
        ELSE '{_S.POOLED}' END AS fate
    FROM memory_clustermember mine JOIN memory_episode e ON e.id = mine.episode_id
    LEFT JOIN LATERAL (
        SELECT j.id, j.state_reason FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
        WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s AND j.state = '{JobState.FAILED}' AND {_LEFT_TO_DO}
        ORDER BY j.number LIMIT 1
    ) failed ON true
    WHERE mine.job_id = %(job)s AND e.workspace_id = %(workspace)s AND e.leased_by_id = %(cycle)s
      AND NOT EXISTS (SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
                      WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s
                        AND j.state = ANY(%(open)s))
)
UPDATE memory_episode e SET
    leased_by_id = NULL,
    state = CASE fate WHEN 'put back' THEN CASE WHEN pooled_at IS NULL THEN '{_S.NEW}' ELSE '{_S.POOLED}' END
                      WHEN 'partly asked' THEN '{_S.NEW}' ELSE fate END,
    state_reason = CASE fate WHEN '{_S.FAILED}' THEN failure WHEN 'put back' THEN state_reason
                             WHEN '{_S.SETTLED}' THEN %(evidence)s ELSE '' END,
    failures = CASE fate WHEN '{_S.FAILED}' THEN failures + is_blamed::int WHEN 'put back' THEN failures
                         WHEN 'partly asked' THEN failures ELSE 0 END,
    pooled_at = CASE fate WHEN '{_S.POOLED}' THEN coalesce(pooled_at, %(now)s) ELSE pooled_at END,
    dead_at = CASE WHEN is_blamed AND failures + 1 >= %(most)s THEN %(now)s ELSE dead_at END
FROM ended WHERE e.id = ended.id AND e.leased_by_id = %(cycle)s  -- asked again of a row that somebody just changed
RETURNING e.dead_at IS NOT NULL
"""  # noqa: S608  (names of states)


def release_members(*, job_id: int, cycle: Cycle) -> None:
    """Say where a job's members go from here, those apart that another job of the cycle still holds.

    Called after the job's own state is set. A failed or deferred job that an episode was in keeps it pending, for
    something about it was left unasked, whatever evidence another job brought. Else it settles with its evidence, or
    waits in the pool; the first time there counts for how long it has waited. What has failed too often by its own
    fault, as `blame` tells, becomes a dead letter.
    """
    parameters: dict[str, Any] = {
        "job": job_id,
        "cycle": cycle.pk,
        "workspace": cycle.workspace_id,
        "now": cycle.now,
        "partly": PARTLY_ASKED,
        "evidence": EVIDENCE,
        "replaced": sorted(REPLACED),
        "open": list(OPEN_JOB_STATES),
        "vectors": [PURPOSE_EMBED, PURPOSE_RECALL],
        "most": settings.POLICY.budget.episode_failures,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE_SQL, parameters)
        buried = sum(is_dead for (is_dead,) in cursor.fetchall())
    if buried:
        log.warning("dead_letters", cycle=cycle.pk, workspace=cycle.workspace_id, episodes=buried)
