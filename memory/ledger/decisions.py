"""What gates decide is kept with the facts that they saw; what needs no model is done where evidence comes in (C3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

from memory.domain.gates import BeliefFacts, CloseGate, GateDecision, Reason, returns_from_archive
from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.ledger.author import Author
from memory.ledger.challenges import settle_challenges
from memory.ledger.closing import close_belief
from memory.ledger.facts import read_facts_of
from memory.ledger.status import change_status
from memory.models import Belief, Cycle
from memory.models import GateDecision as DecisionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision on a belief, and the twin that the merge gate saw."""

    belief: Belief
    decision: GateDecision
    twin: Belief | None = None


# Why a status changes where evidence that came in asks for it: no cycle's doing and no curator's.
FOLLOWING_EVIDENCE = frozenset(
    {Reason.FRESH_SUPPORT, Reason.CONFIDENT_AGAIN, Reason.CHANGED, Reason.UPHELD, Reason.UNCONFIRMED}
)


def record_decisions(*, cycle: Cycle | None, decided: Sequence[Decided]) -> None:
    """Keep decisions with their facts; a belief touched twice in a cycle keeps the later one."""
    last = {(entry.belief.pk, entry.decision.gate): entry for entry in decided}
    DecisionRow.objects.bulk_create(
        [_row(entry, cycle) for entry in last.values()],
        update_conflicts=True,
        unique_fields=["cycle", "belief", "gate"],
        update_fields=["passed", "reason", "facts", "twin", "created_at"],
    )


def _row(entry: Decided, cycle: Cycle | None) -> DecisionRow:
    return DecisionRow(
        workspace_id=entry.belief.workspace_id,
        cycle=cycle,
        belief=entry.belief,
        twin=entry.twin,
        gate=entry.decision.gate,
        passed=entry.decision.passed,
        reason=entry.decision.reason,
        facts=dict(entry.decision.facts),
    )


def follow_evidence(*, beliefs: Sequence[Belief], gained: Mapping[str, Sequence[Verdict]], author: Author) -> None:
    """Do at once what new evidence asks for without a model.

    What it supports may come back from the archive (B14). What it contradicts may be closed (C1), but in a cycle, whose
    gates look at all that it brought.
    """
    returning = [b for b in beliefs if b.status == BeliefStatus.ARCHIVED and Verdict.SUPPORTS in gained.get(b.pk, ())]
    disputed = [b for b in beliefs if b.status in LIVE and Verdict.CONTRADICTS in gained.get(b.pk, ())]
    closing = [] if author.cycle else disputed
    asked = [*returning, *closing]
    facts = read_facts_of(beliefs=asked, now=author.now, cycle=author.cycle) if asked else {}
    for belief in returning:
        decision = returns_from_archive(
            facts=facts[belief.pk], archived_for=_why_archived(belief), policy=settings.POLICY.gate
        )
        record_decisions(cycle=author.cycle, decided=[Decided(belief=belief, decision=decision)])
        if decision.passed:
            change_status(
                belief=belief, new=BeliefStatus.ACTIVE, reason=decision.reason, actor=author.actor, now=author.now
            )
    for belief in closing:
        decide_closing(belief=belief, facts=facts[belief.pk], author=author)
    settle_challenges(beliefs=[belief for belief in beliefs if gained.get(belief.pk)], author=author)


def decide_closing(*, belief: Belief, facts: BeliefFacts, author: Author) -> GateDecision:
    """Ask whether what a belief says has changed, close it if so, and keep a decision that closes it (C1)."""
    decision = CloseGate().decide(facts=facts, policy=settings.POLICY.gate)
    if decision.passed and facts.change:
        record_decisions(cycle=author.cycle, decided=[Decided(belief=belief, decision=decision)])
        close_belief(belief=belief, at=facts.change.at, author=author)
    return decision


def _why_archived(belief: Belief) -> Reason:
    """Return the gate's reason; whatever else stands there is a person's, whose word no cycle overrules."""
    if belief.archived_by_person_at or belief.status_reason not in set(Reason):
        return Reason.BY_PERSON
    return Reason(belief.status_reason)
