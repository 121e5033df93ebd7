"""What a structural job has found out becomes beliefs, under lock, if what was decided still stands."""

from collections.abc import Mapping, Sequence

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.birth import NOT_CONFIDENT, TOO_FEW_SUPPORTS
from memory.consolidation.leases import JobLease
from memory.consolidation.settling import pool_left_over
from memory.consolidation.standing import check_again
from memory.consolidation.structural import refuse
from memory.domain.evidence import EvidenceRow, Verdict, weigh_evidence
from memory.domain.gates import GateDecision
from memory.domain.lifecycle import LIVE, BeliefStatus, CycleState, JobState
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
from memory.ledger.transactions import Author, LineageInput, change_status, lock_workspace
from memory.models import (
    Basis,
    Belief,
    ChildVerdict,
    Cycle,
    Evidence,
    EvidenceKind,
    LineageKind,
    StructuralChild,
    StructuralJob,
    StructuralKind,
)

log = structlog.get_logger(__name__)

ENDS: Mapping[str, tuple[BeliefStatus, LineageKind]] = {
    StructuralKind.REVISE: (BeliefStatus.REVISED, LineageKind.REVISION),
    StructuralKind.SPLIT: (BeliefStatus.SPLIT, LineageKind.SPLIT),
    StructuralKind.MERGE: (BeliefStatus.MERGED, LineageKind.MERGE),
    StructuralKind.CLOSE: (BeliefStatus.INVALIDATED, LineageKind.SUPERSESSION),
}


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
    decision = check_again(job=job, cycle=cycle, in_cycle=False)
    if decision is None:
        return
    children = list(job.children.all())
    _refuse_children(job, children)
    borne_out = [child for child in children if not child.refusal]
    if not borne_out:
        refuse(job=job, refusal=children[0].refusal)
        return
    _replace(job=job, cycle=cycle, children=borne_out, decision=decision)
    if len(borne_out) < len(children):
        pool_left_over(belief=job.belief, now=cycle.now)


def _refuse_children(job: StructuralJob, children: Sequence[StructuralChild]) -> None:
    """Note with each weak child, and each that a person put away or erased before, why it is refused (B22, L4)."""
    for child in children:
        suppressed = find_suppressed(
            workspace_id=job.workspace_id,
            candidate=draft_child(parents=_parents(job), child=child).as_source(),
            vector=_vector_of(child).numbers,
        )
        child.refusal = CreationOutcome.SUPPRESSED if suppressed else _refuse_child(job, child)
        if suppressed and suppressed.tombstone:
            child.suppressed_by_id = suppressed.tombstone
        child.save(update_fields=["refusal", "suppressed_by"])


def _parents(job: StructuralJob) -> list[Belief]:
    return [belief for belief in (job.belief, job.twin) if belief]


def _vector_of(child: StructuralChild) -> StatementVector:
    return StatementVector(model=child.vector_model, numbers=np.asarray(child.vector, dtype=np.float32))


def _refuse_child(job: StructuralJob, child: StructuralChild) -> str:
    policy = settings.POLICY.restructure
    weighed = weigh_evidence(
        rows=[_as_row(verdict) for verdict in _verdicts(child)], policy=confidence_policy(job.belief.workspace)
    )
    if weighed.rows.get(Verdict.SUPPORTS, 0) < policy.child_supports:
        return TOO_FEW_SUPPORTS
    return "" if weighed.posterior.mean > policy.child_confidence else NOT_CONFIDENT


def _verdicts(child: StructuralChild) -> list[ChildVerdict]:
    """List the verdicts that become evidence."""
    told = child.verdicts.exclude(verdict=Verdict.IRRELEVANT).exclude(episode__status__in=WITHDRAWN_STATUSES)
    return list(told.select_related("episode").defer("episode__search").order_by("episode_id"))


def _as_row(said: ChildVerdict) -> EvidenceRow:
    return EvidenceRow(
        episode_id=said.episode_id,
        verdict=Verdict(said.verdict),
        base_weight=said.base_weight,
        origin=said.episode.origin,
        occurred_at=said.episode.occurred_at,
    )


def _replace(*, job: StructuralJob, cycle: Cycle, children: Sequence[StructuralChild], decision: GateDecision) -> None:
    parents = _parents(job)
    status, kind = ENDS[job.kind]
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
        for said in _verdicts(child)
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
