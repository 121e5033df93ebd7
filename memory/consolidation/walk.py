"""Every touched belief passes the gates, and every decision leaves a row, passed or not."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from memory.consolidation.locks import lock_beliefs
from memory.consolidation.status import change_status
from memory.domain.actor import cycle_actor
from memory.domain.gates import GATES, BeliefFacts, GateDecision, GateName, Reason, returns_from_archive
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.models import Belief, Cycle
from memory.models import GateDecision as DecisionRow


def _archive(belief: Belief, decision: GateDecision, cycle: Cycle) -> None:
    change_status(
        belief=belief, new=BeliefStatus.ARCHIVED, reason=decision.reason, actor=cycle_actor(cycle.pk), now=cycle.now
    )


# What each gate does when it opens. A gate that needs a model's word opens a structural job here instead.
ACTIONS: Mapping[GateName, Callable[[Belief, GateDecision, Cycle], None]] = {GateName.ARCHIVE: _archive}


@transaction.atomic
def walk_gates(*, cycle: Cycle, belief_ids: Collection[str]) -> list[GateDecision]:
    """Ask every gate about each belief, in order, and act on what opens; return the decisions.

    A belief's decisions hang on nothing but itself, so that a batch of them shares one transaction.
    """
    decided = []
    for belief in lock_beliefs(belief_ids):
        for gate in GATES:
            decision = gate.decide(facts=read_facts(belief=belief, cycle=cycle), policy=settings.POLICY.gate)
            if decision.passed:
                ACTIONS[decision.gate](belief, decision, cycle)
            decided.append((belief, decision))
    record(cycle=cycle, decided=decided)
    return [decision for _, decision in decided]


def return_from_archive(*, cycle: Cycle, belief: Belief, gained: Sequence[Verdict]) -> None:
    """Bring an archived belief back where new support allows it (B14); the caller holds its lock."""
    if belief.status != BeliefStatus.ARCHIVED or Verdict.SUPPORTS not in gained:
        return
    decision = returns_from_archive(
        facts=read_facts(belief=belief, cycle=cycle),
        archived_for=_why_archived(belief),
        policy=settings.POLICY.gate,
    )
    record(cycle=cycle, decided=[(belief, decision)])
    if decision.passed:
        change_status(
            belief=belief, new=BeliefStatus.ACTIVE, reason=decision.reason, actor=cycle_actor(cycle.pk), now=cycle.now
        )


def _why_archived(belief: Belief) -> Reason:
    """Return the gate's reason; whatever else stands there is a person's, whose word no cycle overrules."""
    if belief.archived_by_person_at or belief.status_reason not in set(Reason):
        return Reason.BY_PERSON
    return Reason(belief.status_reason)


def read_facts(*, belief: Belief, cycle: Cycle) -> BeliefFacts:
    """Return what gates may know of a belief, in the cycle's domain time."""
    restored = belief.restored_by_person_at
    return BeliefFacts(
        status=BeliefStatus(belief.status),
        confidence=belief.alpha / (belief.alpha + belief.beta),
        evidence_count=belief.evidence_count,
        since_reinforced=max(cycle.now - (belief.last_reinforced_at or belief.created_at), timedelta()),
        is_pinned=belief.is_pinned,
        since_restored_by_person=cycle.now - restored if restored else None,
    )


def record(*, cycle: Cycle, decided: Sequence[tuple[Belief, GateDecision]]) -> None:
    """Keep decisions with their facts; a belief touched twice in a cycle keeps the later one."""
    rows = [
        DecisionRow(
            workspace_id=cycle.workspace_id,
            cycle=cycle,
            belief=belief,
            gate=decision.gate,
            passed=decision.passed,
            reason=decision.reason,
            facts=dict(decision.facts),
        )
        for belief, decision in decided
    ]
    DecisionRow.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cycle", "belief", "gate"],
        update_fields=["passed", "reason", "facts"],
    )
