"""Does what a gate decided still stand? Asked before a structural job is applied, and before a cycle takes one up."""

from django.db import transaction

from memory.consolidation.cycle import keep_running
from memory.consolidation.structural import open_structural_job, refuse, versions_of
from memory.consolidation.walk import decide_again
from memory.domain.gates import GateDecision, GateName
from memory.domain.lifecycle import Reason
from memory.ledger.gates import has_successor, is_closed
from memory.ledger.transactions import lock_beliefs
from memory.models import Cycle, StructuralJob, StructuralKind

BELIEF_CHANGED = "belief_changed"


def adopt_jobs(*, cycle: Cycle) -> None:
    """Take up what earlier cycles left over, as far as what was decided still stands."""
    for job_id in StructuralJob.objects.for_workspace(cycle.workspace_id).carried_over().values_list("pk", flat=True):
        _adopt(cycle=cycle, job_id=job_id)


@transaction.atomic
def _adopt(*, cycle: Cycle, job_id: int) -> None:
    if not keep_running(cycle=cycle):
        return
    left = StructuralJob.objects.carried_over().filter(pk=job_id)
    job = left.select_for_update(of=("self",), no_key=True).first()
    if job and check_again(job=job, cycle=cycle, in_cycle=True):
        left.update(cycle=cycle, state_reason="", lease_owner="", leased_until=None, not_before=None)


def check_again(*, job: StructuralJob, cycle: Cycle, in_cycle: bool) -> GateDecision | None:
    """Lock a job's beliefs and decide again: None, and the job ended, where its ground is gone.

    Where the evidence changed and the gate would open all the same, a new job takes the place of the old one: what a
    model said of other evidence is not used. It is for this cycle or for a later one.
    """
    locked = {belief.pk: belief for belief in lock_beliefs([key for key in (job.belief_id, job.twin_id) if key])}
    job.belief, job.twin = locked[job.belief_id], locked.get(job.twin_id or "")
    decision = _decide(job, cycle)
    if not decision.passed:
        refuse(job=job, refusal=decision.reason)
        return None
    versions = versions_of(list(locked.values()))
    if versions[job.belief_id] == job.belief_version and versions.get(job.twin_id or "", "") == job.twin_version:
        return decision
    refuse(job=job, refusal=BELIEF_CHANGED)
    open_structural_job(cycle=cycle, belief=job.belief, twin=job.twin, decision=decision, in_cycle=in_cycle)
    return None


def _decide(job: StructuralJob, cycle: Cycle) -> GateDecision:
    """Ask a job's gate once more; what was closed must be closed still, and nothing have come in its place (C2)."""
    if job.kind == StructuralKind.CLOSE:
        stands = is_closed(job.belief) and not has_successor(job.belief)
        reason = Reason.CHANGED if stands else Reason.NOT_LIVE
        return GateDecision(gate=GateName.CLOSE, passed=stands, reason=reason, facts=job.facts)
    similarity = job.facts.get("similarity", 0.0)
    return decide_again(cycle=cycle, gate=GateName(job.kind), belief=job.belief, twin=job.twin, similarity=similarity)
