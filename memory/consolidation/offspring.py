"""What a structural job has found out becomes beliefs, under lock, if what was decided still stands."""

from collections.abc import Mapping, Sequence

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.birth import NOT_CONFIDENT, SUPPRESSED, TOO_FEW_SUPPORTS, store_new_belief
from memory.consolidation.leases import JobLease
from memory.consolidation.settling import pool_left_over
from memory.consolidation.standing import check_again
from memory.consolidation.structural import refuse
from memory.domain.actor import cycle_actor
from memory.domain.evidence import EvidenceRow, weigh_evidence
from memory.domain.gates import GateDecision
from memory.domain.ids import IdKind
from memory.domain.lifecycle import BeliefStatus, CycleState, JobState
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.ledger.equivalents import find_tombstone, was_erased
from memory.ledger.evidence import LEFT, confidence_policy, recompute_beliefs
from memory.ledger.locks import lock_workspace
from memory.ledger.statements import BeliefSource
from memory.ledger.status import change_status
from memory.models import (
    Belief,
    ChildVerdict,
    Cycle,
    Evidence,
    Lineage,
    LineageKind,
    StructuralChild,
    StructuralJob,
    StructuralKind,
)
from memory.models.identifiers import draw_unused_id
from memory.models.vectors import Vectors

log = structlog.get_logger(__name__)

ENDS: Mapping[str, tuple[BeliefStatus, LineageKind]] = {
    StructuralKind.REVISE: (BeliefStatus.REVISED, LineageKind.REVISION),
    StructuralKind.SPLIT: (BeliefStatus.SPLIT, LineageKind.SPLIT),
    StructuralKind.MERGE: (BeliefStatus.MERGED, LineageKind.MERGE),
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
    workspace_id = job.workspace_id
    for child in children:
        candidate = _as_candidate(job.belief, child)
        tombstone = find_tombstone(workspace_id=workspace_id, candidate=candidate, vector=_vector_of(child))
        is_unwanted = tombstone or was_erased(workspace_id=workspace_id, candidate=candidate)
        child.refusal = SUPPRESSED if is_unwanted else _refuse_child(job, child)
        if tombstone:
            child.suppressed_by_id = tombstone
        child.save(update_fields=["refusal", "suppressed_by"])


def _as_candidate(parent: Belief, child: StructuralChild) -> BeliefSource:
    """Return a child as if it were a belief already."""
    return BeliefSource(
        id="",
        statement=child.statement,
        statement_hash=child.statement_hash,
        subject=child.subject,
        context=child.context,
        language=child.language,
        project_id=parent.project_id,
        user=parent.user,
        status=BeliefStatus.ACTIVE,
    )


def _vector_of(child: StructuralChild) -> Vectors:
    return np.asarray(child.vector, dtype=np.float32)


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
    told = child.verdicts.exclude(verdict=Verdict.IRRELEVANT).exclude(episode__status__in=LEFT)
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
    parents = [belief for belief in (job.belief, job.twin) if belief]
    status, kind = ENDS[job.kind]
    attribute_changes(actor=cycle_actor(cycle.pk), reason=f"{kind.label}: {decision.reason}")
    for child in children:
        child.belief = _make(cycle=cycle, parents=parents, child=child)
        child.save(update_fields=["belief"])
        trace(child=child.belief, parents=parents, kind=kind, reason=decision.reason, cycle=cycle)
    for parent in parents:
        change_status(belief=parent, new=status, reason=decision.reason, actor=cycle_actor(cycle.pk), now=cycle.now)
    job.state = JobState.APPLIED
    job.save(update_fields=["state"])
    log.info("belief_restructured", kind=job.kind, parents=[p.pk for p in parents], cycle=cycle.pk)


def _make(*, cycle: Cycle, parents: Sequence[Belief], child: StructuralChild) -> Belief:
    """Store a child with its evidence; it has a new id and remembers no surprise."""
    belief = conceive_child(belief_id=draw_unused_id(IdKind.BELIEF, Belief), parents=parents, child=child, cycle=cycle)
    store_new_belief(belief=belief, vector=_vector_of(child), model=child.vector_model)
    endow(belief=belief, child=child, cycle=cycle)
    return belief


def trace(*, child: Belief, parents: Sequence[Belief], kind: LineageKind, reason: str, cycle: Cycle) -> None:
    """State of which beliefs a new one came."""
    Lineage.objects.bulk_create(
        Lineage(
            workspace_id=child.workspace_id,
            parent=parent,
            child=child,
            kind=kind,
            reason=reason,
            cycle=cycle,
            created_at=cycle.now,
        )
        for parent in parents
    )


def endow(*, belief: Belief, child: StructuralChild, cycle: Cycle) -> None:
    """Give a new belief the evidence that a structural job found for it."""
    said = _verdicts(child)
    Evidence.objects.bulk_create(_as_evidence(verdict, belief, cycle) for verdict in said)
    recompute_beliefs(
        beliefs=[belief], now=cycle.now, gained={belief.pk: [Verdict(verdict.verdict) for verdict in said]}
    )


def conceive_child(*, belief_id: str, parents: Sequence[Belief], child: StructuralChild, cycle: Cycle) -> Belief:
    """Return the belief that a structural job makes of its beliefs, not stored yet."""
    first = parents[0]
    return Belief(
        id=belief_id,
        workspace=first.workspace,
        scope=first.scope,
        project_id=first.project_id,
        user=first.user,
        statement=child.statement,
        statement_hash=child.statement_hash,
        subject=child.subject,
        predicate=child.predicate,
        context=child.context,
        timeframe=child.timeframe,
        fact_type=first.fact_type,
        language=child.language,
        importance=max(parent.importance for parent in parents),
        is_pinned=any(parent.is_pinned for parent in parents),
        lineage_depth=max(parent.lineage_depth for parent in parents) + 1,
        created_at=cycle.now,
        updated_at=cycle.now,
        statement_changed_at=cycle.now,
        born_in=cycle,
    )


def _as_evidence(said: ChildVerdict, belief: Belief, cycle: Cycle) -> Evidence:
    return Evidence(
        workspace_id=said.workspace_id,
        belief=belief,
        episode_id=said.episode_id,
        verdict=said.verdict,
        kind=said.kind,
        base_weight=said.base_weight,
        is_founding=True,
        basis=said.basis,
        reason=said.reason,
        cycle=cycle,
        call_id=said.call_id,
        created_at=cycle.now,
    )
