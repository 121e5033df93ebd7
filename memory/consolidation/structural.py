"""Structural jobs: opened by a gate, taken up by a cycle, carried over where it ends too soon."""

import hashlib
import json
from collections.abc import Sequence

import structlog
from django.db import transaction

from memory.consolidation.cycle import TIME_IS_UP, has_time_for_a_call, spend_budget
from memory.domain.gates import GateDecision
from memory.domain.lifecycle import BeliefStatus, JobState
from memory.ledger.confidence import read_evidence_rows
from memory.models import Belief, Cycle, CycleStep, StructuralJob, StructuralKind

log = structlog.get_logger(__name__)

STEP = "restructure"


def open_structural_job(
    *, cycle: Cycle, belief: Belief, twin: Belief | None, decision: GateDecision, in_cycle: bool = True
) -> StructuralJob:
    """Open the job that a gate has decided on; the caller holds the beliefs' locks."""
    versions = versions_of([belief, twin] if twin else [belief])
    return StructuralJob.objects.create(
        workspace_id=cycle.workspace_id,
        kind=StructuralKind(decision.gate.value),
        belief=belief,
        twin=twin,
        belief_version=versions[belief.pk],
        twin_version=versions[twin.pk] if twin else "",
        decided_in=cycle,
        cycle=cycle if in_cycle else None,
        facts=dict(decision.facts),
    )


def versions_of(beliefs: Sequence[Belief]) -> dict[str, str]:
    """Hash what a decision about each belief rests on: its status, its words and its evidence."""
    return {belief.pk: version_of(belief=belief, status=BeliefStatus(belief.status)) for belief in beliefs}


def version_of(*, belief: Belief, status: BeliefStatus) -> str:
    """Hash the same of one belief as if it had a status."""
    evidence = sorted((row.episode_id, row.verdict, row.base_weight) for row in read_evidence_rows(belief_id=belief.pk))
    seen = json.dumps([status, belief.statement_hash, evidence])
    return hashlib.sha256(seen.encode()).hexdigest()


def jobs_to_restructure(*, cycle_id: str) -> list[int]:
    """List the cycle's structural jobs that nobody holds and that need not wait, and show that the step has begun.

    Over budget, only what has no calls to make is brought to its end.
    """
    open_jobs = StructuralJob.objects.open().filter(cycle=cycle_id)
    if Cycle.objects.filter(pk=cycle_id).exclude(budget_spent="").exists():
        open_jobs = open_jobs.filter(state=JobState.CLASSIFIED)
    jobs = list(open_jobs.free().order_by("pk").values_list("pk", "workspace_id"))
    for _, workspace_id in jobs[:1]:
        CycleStep.objects.get_or_create(cycle_id=cycle_id, name=STEP, defaults={"workspace_id": workspace_id})
    return [job_id for job_id, _ in jobs]


def let_go_of_jobs(*, cycle: Cycle) -> bool:
    """Carry over the structural jobs for which no time is left; false while the cycle could still end some."""
    left = StructuralJob.objects.open().filter(cycle=cycle)
    if not left.exists():
        return True
    if not cycle.budget_spent and not has_time_for_a_call(cycle_id=cycle.pk):
        spend_budget(cycle_id=cycle.pk, reason=TIME_IS_UP)
        cycle.refresh_from_db(fields=["budget_spent", "cancelled_by"])
    if cycle.budget_spent:
        carry_over(cycle=cycle, only_free=True)
    return not left.exists()


def carry_over(*, cycle: Cycle, only_free: bool = False) -> None:
    """Leave a cycle's open structural jobs to the next one; what models said for them stays."""
    left = StructuralJob.objects.open().filter(cycle=cycle)
    if only_free:
        left = left.free()
    left.update(cycle=None, state_reason=cycle.budget_spent, lease_owner="", leased_until=None, not_before=None)


@transaction.atomic
def refuse(*, job: StructuralJob, refusal: str) -> None:
    """End a job without a change, and say why; the caller holds its lease or its row."""
    job.state, job.refusal = JobState.REFUSED, refusal
    job.save(update_fields=["state", "refusal"])
    log.info("structural_job_refused", job=job.pk, kind=job.kind, belief=job.belief_id, refusal=refusal)
