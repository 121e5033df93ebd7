"""Step 6: take a structural job to its end: propose statements, judge the old evidence anew, apply the change (B8.6).

`restructure_belief` is the step; each phase leaves its rows before the next begins. A change is applied only where
its gate still opens, asked once more under the beliefs' locks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from memory.consolidation.belief_creation import NOT_CONFIDENT, TOO_FEW_SUPPORTS
from memory.consolidation.cycle import TIME_SPENT, has_time_for_call, lock_running_cycle, mark_budget_spent
from memory.consolidation.episode_states import pool_orphaned_evidence
from memory.consolidation.gates import compute_versions, open_structural_job, reevaluate_gate
from memory.consolidation.jobs import JobLease, leased_structural_job
from memory.consolidation.model_calls import embed_statement
from memory.consolidation.proposals import merge_verdicts, propose_children, reclassify_children, refuse_structural_job
from memory.domain.evidence import EvidenceRow, Verdict, weigh_evidence
from memory.domain.gates import GateDecision, GateName
from memory.domain.lifecycle import LIVE, BeliefStatus, CycleState, JobState, Reason
from memory.ledger.beliefs import (
    BeliefDraft,
    CreationOutcome,
    StatementVector,
    create_belief,
    draft_successor,
    find_suppressed,
)
from memory.ledger.confidence import WITHDRAWN_STATUSES, confidence_policy
from memory.ledger.evidence import EvidenceInput
from memory.ledger.gates import has_successor, is_closed
from memory.ledger.transactions import Author, LineageInput, change_status, lock_beliefs, lock_workspace
from memory.llm.embeddings import embedder_of
from memory.models import (
    Basis,
    Belief,
    ChildVerdict,
    Cycle,
    CycleStep,
    Evidence,
    EvidenceKind,
    LineageKind,
    StructuralChild,
    StructuralJob,
    StructuralKind,
)
from memory.models.cycles import OPEN_JOB_STATES

log = structlog.get_logger(__name__)
BELIEF_CHANGED = "belief_changed"
RESTRUCTURE_STEP = "restructure"


def restructure_belief(*, job_id: int, attempt: int) -> None:
    """Take a structural job from wherever it is to its end; one that is not ours or has ended is left alone."""
    with leased_structural_job(job_id=job_id, attempt=attempt, ready=Q(state__in=OPEN_JOB_STATES)) as lease:
        if lease is None:
            return
        if lease.job.state == JobState.QUEUED and not propose_children(lease=lease):
            return
        if lease.job.state == JobState.SYNTHESIZED and not _judge_evidence(lease):
            return
        # A tombstone is found by today's vectors; the job may have been judged before the model changed.
        if not _embed_children(lease):
            return
        apply_structural_job(lease=lease)


def _judge_evidence(lease: JobLease[StructuralJob]) -> bool:
    """Embed the children and get every verdict on them; false if some are left."""
    if not _embed_children(lease):
        return False
    if lease.job.kind == StructuralKind.MERGE:
        merge_verdicts(job=lease.job)
    elif not reclassify_children(lease=lease):
        return False
    return lease.mine.update(state=JobState.CLASSIFIED) == 1


def _embed_children(lease: JobLease[StructuralJob]) -> bool:
    model = embedder_of(lease.job.workspace_id)
    for child in lease.job.children.exclude(vector_model=model.name):
        vector = embed_statement(lease=lease, statement=child.statement)
        if vector is None:
            return False
        child.vector, child.vector_model = vector.tolist(), model.name
        child.save(update_fields=["vector", "vector_model"])
    return True


@transaction.atomic
def apply_structural_job(*, lease: JobLease[StructuralJob]) -> None:
    """Put a job's children in the place of its beliefs, or refuse it with the reason; once, whoever asks how often.

    A split is made with the children that are borne out. What spoke only for the other one waits in the pool.
    """
    running = Cycle.objects.filter(pk=lease.cycle_id, attempt=lease.attempt, state=CycleState.RUNNING)
    for workspace_id in running.values_list("workspace_id", flat=True):
        lock_workspace(workspace_id)
    cycle = running.select_for_update(no_key=True).first()
    job = lease.held.select_for_update(no_key=True).filter(state=JobState.CLASSIFIED).first()
    if cycle is None or job is None:
        return
    decision = revalidate_job(job=job, cycle=cycle, in_cycle=False)
    if decision is None:
        return
    children = list(job.children.all())
    _refuse_children(job, children)
    borne_out = [child for child in children if not child.refusal]
    if not borne_out:
        refuse_structural_job(job=job, refusal=children[0].refusal)
        return
    _replace_parents(job=job, cycle=cycle, children=borne_out, decision=decision)
    if len(borne_out) < len(children):
        pool_orphaned_evidence(belief=job.belief, now=cycle.now)


def _refuse_children(job: StructuralJob, children: Sequence[StructuralChild]) -> None:
    """Note with each weak child, and each that a person put away or erased before, why it is refused (B22, L4)."""
    for child in children:
        suppressed = find_suppressed(
            workspace_id=job.workspace_id,
            candidate=draft_child(parents=_parents_of(job), child=child).as_source(),
            vector=_vector_of(child).numbers,
        )
        child.refusal = CreationOutcome.SUPPRESSED if suppressed else _refuse_child(job, child)
        if suppressed and suppressed.tombstone:
            child.suppressed_by_id = suppressed.tombstone
        child.save(update_fields=["refusal", "suppressed_by"])


def _refuse_child(job: StructuralJob, child: StructuralChild) -> str:
    policy = settings.POLICY.restructure
    weighed = weigh_evidence(
        rows=[_verdict_as_row(verdict) for verdict in _counting_verdicts(child)],
        policy=confidence_policy(job.belief.workspace),
    )
    if weighed.rows.get(Verdict.SUPPORTS, 0) < policy.child_supports:
        return TOO_FEW_SUPPORTS
    return "" if weighed.posterior.mean > policy.child_confidence else NOT_CONFIDENT


def _replace_parents(
    *, job: StructuralJob, cycle: Cycle, children: Sequence[StructuralChild], decision: GateDecision
) -> None:
    parents = _parents_of(job)
    status, kind = PARENT_ENDS[job.kind]
    author = Author.of_cycle(cycle, reason=f"{kind.label}: {decision.reason}")
    for child in children:
        made = create_belief(
            draft=draft_child(parents=parents, child=child),
            vector=_vector_of(child),
            said=inherited_evidence(parents=parents, child=child),
            author=author,
            descent=LineageInput(parents=parents, kind=kind, reason=decision.reason),
        )
        child.belief, child.is_joined = made.belief, made.outcome is CreationOutcome.JOINED
        child.save(update_fields=["belief", "is_joined"])
    for parent in (parent for parent in parents if parent.status in LIVE):
        change_status(belief=parent, new=status, reason=decision.reason, actor=author.actor, now=cycle.now)
    job.state = JobState.APPLIED
    job.save(update_fields=["state"])
    log.info("belief_restructured", kind=job.kind, parents=[p.pk for p in parents], cycle=cycle.pk)


PARENT_ENDS: Mapping[str, tuple[BeliefStatus, LineageKind]] = {
    StructuralKind.REVISE: (BeliefStatus.REVISED, LineageKind.REVISION),
    StructuralKind.SPLIT: (BeliefStatus.SPLIT, LineageKind.SPLIT),
    StructuralKind.MERGE: (BeliefStatus.MERGED, LineageKind.MERGE),
    StructuralKind.CLOSE: (BeliefStatus.INVALIDATED, LineageKind.SUPERSESSION),
}


def _parents_of(job: StructuralJob) -> list[Belief]:
    return [belief for belief in (job.belief, job.twin) if belief]


def _vector_of(child: StructuralChild) -> StatementVector:
    return StatementVector(model=child.vector_model, numbers=np.asarray(child.vector, dtype=np.float32))


def _counting_verdicts(child: StructuralChild) -> list[ChildVerdict]:
    """List the verdicts that become evidence."""
    told = child.verdicts.exclude(verdict=Verdict.IRRELEVANT).exclude(episode__status__in=WITHDRAWN_STATUSES)
    return list(told.select_related("episode").defer("episode__search").order_by("episode_id"))


def _verdict_as_row(said: ChildVerdict) -> EvidenceRow:
    return EvidenceRow(
        episode_id=said.episode_id,
        verdict=Verdict(said.verdict),
        base_weight=said.base_weight,
        origin=said.episode.origin,
        occurred_at=said.episode.occurred_at,
    )


def inherited_evidence(*, parents: Sequence[Belief], child: StructuralChild) -> list[EvidenceInput]:
    """Return what a structural job found that old evidence says of a child, each word with the claim that it was."""
    heard = Evidence.objects.filter(belief__in=parents, claim__isnull=False)
    claims = dict(heard.values_list("episode_id", "claim_id"))
    return [
        EvidenceInput(
            episode_id=said.episode_id,
            verdict=Verdict(said.verdict),
            kind=EvidenceKind(said.kind),
            base_weight=said.base_weight,
            basis=Basis(said.basis),
            reason=said.reason,
            call_id=said.call_id,
            claim_id=claims.get(said.episode_id),
        )
        for said in _counting_verdicts(child)
    ]


def draft_child(*, parents: Sequence[Belief], child: StructuralChild) -> BeliefDraft:
    """Return what a structural job makes of its beliefs; it remembers no surprise."""
    return draft_successor(
        parents=parents,
        statement=child.statement,
        subject=child.subject,
        predicate=child.predicate,
        context=child.context,
        timeframe=child.timeframe,
        language=child.language,
        valid_from=parents[0].valid_until if child.job.kind == StructuralKind.CLOSE else None,
    )


def revalidate_job(*, job: StructuralJob, cycle: Cycle, in_cycle: bool) -> GateDecision | None:
    """Lock a job's beliefs and decide again: None, and the job ended, where its ground is gone.

    Where the evidence changed and the gate would open all the same, a new job takes the place of the old one: what a
    model said of other evidence is not used. It is for this cycle or for a later one.
    """
    locked = {belief.pk: belief for belief in lock_beliefs([key for key in (job.belief_id, job.twin_id) if key])}
    job.belief, job.twin = locked[job.belief_id], locked.get(job.twin_id or "")
    decision = _ask_gate_again(job, cycle)
    if not decision.passed:
        refuse_structural_job(job=job, refusal=decision.reason)
        return None
    versions = compute_versions(list(locked.values()))
    if versions[job.belief_id] == job.belief_version and versions.get(job.twin_id or "", "") == job.twin_version:
        return decision
    refuse_structural_job(job=job, refusal=BELIEF_CHANGED)
    open_structural_job(cycle=cycle, belief=job.belief, twin=job.twin, decision=decision, in_cycle=in_cycle)
    return None


def _ask_gate_again(job: StructuralJob, cycle: Cycle) -> GateDecision:
    """Ask a job's gate once more; what was closed must be closed still, and nothing have come in its place (C2)."""
    if job.kind == StructuralKind.CLOSE:
        stands = is_closed(job.belief) and not has_successor(job.belief)
        reason = Reason.CHANGED if stands else Reason.NOT_LIVE
        return GateDecision(gate=GateName.CLOSE, passed=stands, reason=reason, facts=job.facts)
    similarity = job.facts.get("similarity", 0.0)
    return reevaluate_gate(
        cycle=cycle, gate=GateName(job.kind), belief=job.belief, twin=job.twin, similarity=similarity
    )


def adopt_carried_over_jobs(*, cycle: Cycle) -> None:
    """Take up what earlier cycles left over, as far as what was decided still stands."""
    for job_id in StructuralJob.objects.for_workspace(cycle.workspace_id).carried_over().values_list("pk", flat=True):
        _adopt_job(cycle=cycle, job_id=job_id)


@transaction.atomic
def _adopt_job(*, cycle: Cycle, job_id: int) -> None:
    if not lock_running_cycle(cycle=cycle):
        return
    left = StructuralJob.objects.carried_over().filter(pk=job_id)
    job = left.select_for_update(of=("self",), no_key=True).first()
    if job and revalidate_job(job=job, cycle=cycle, in_cycle=True):
        left.revoke(cycle=cycle, state_reason="")


def list_jobs_to_restructure(*, cycle_id: str) -> list[int]:
    """List the cycle's structural jobs that nobody holds and that need not wait, and show that the step has begun.

    Over budget, only what has no calls to make is brought to its end.
    """
    open_jobs = StructuralJob.objects.open().filter(cycle=cycle_id)
    if Cycle.objects.filter(pk=cycle_id).exclude(budget_spent="").exists():
        open_jobs = open_jobs.filter(state=JobState.CLASSIFIED)
    jobs = list(open_jobs.free().order_by("pk").values_list("pk", "workspace_id"))
    for _, workspace_id in jobs[:1]:
        CycleStep.objects.get_or_create(
            cycle_id=cycle_id, name=RESTRUCTURE_STEP, defaults={"workspace_id": workspace_id}
        )
    return [job_id for job_id, _ in jobs]


def release_structural_jobs(*, cycle: Cycle) -> bool:
    """Carry over the structural jobs for which no time is left; false while the cycle could still end some."""
    left = StructuralJob.objects.open().filter(cycle=cycle)
    if not left.exists():
        return True
    if not cycle.budget_spent and not has_time_for_call(cycle_id=cycle.pk):
        mark_budget_spent(cycle_id=cycle.pk, reason=TIME_SPENT)
        cycle.refresh_from_db(fields=["budget_spent", "cancelled_by"])
    if cycle.budget_spent:
        carry_over_jobs(cycle=cycle, only_free=True)
    return not left.exists()


def carry_over_jobs(*, cycle: Cycle, only_free: bool = False) -> None:
    """Leave a cycle's open structural jobs to the next one; what models said for them stays."""
    left = StructuralJob.objects.open().filter(cycle=cycle)
    if only_free:
        left = left.free()
    left.revoke(cycle=None, state_reason=cycle.budget_spent)
