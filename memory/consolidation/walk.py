"""Every touched belief passes the gates, and every decision leaves a row, passed or not."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction

from memory.consolidation.cycle import keep_running
from memory.consolidation.facts import read_facts, read_facts_of, with_twin
from memory.consolidation.structural import open_structural_job
from memory.consolidation.twins import Twin
from memory.domain.actor import cycle_actor
from memory.domain.gates import (
    GATES,
    STRUCTURAL_GATES,
    BeliefFacts,
    Gate,
    GateDecision,
    GateName,
    Reason,
    returns_from_archive,
)
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.ledger.locks import lock_beliefs
from memory.ledger.status import change_status
from memory.models import Belief, Cycle
from memory.models import GateDecision as DecisionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision on a belief, and the twin that the merge gate saw: as a row, and as words and vectors tell."""

    belief: Belief
    decision: GateDecision
    twin: Belief | None = None
    seen: Twin | None = None


def _archive(decided: Decided, cycle: Cycle) -> None:
    change_status(
        belief=decided.belief,
        new=BeliefStatus.ARCHIVED,
        reason=decided.decision.reason,
        actor=cycle_actor(cycle.pk),
        now=cycle.now,
    )


def _restructure(decided: Decided, cycle: Cycle) -> None:
    open_structural_job(cycle=cycle, belief=decided.belief, twin=decided.twin, decision=decided.decision)


# What each gate does when it opens; those that need a model's word leave a job for the step that asks for it.
ACTIONS: Mapping[GateName, Callable[[Decided, Cycle], None]] = {
    GateName.ARCHIVE: _archive,
    **dict.fromkeys(STRUCTURAL_GATES, _restructure),
}


@transaction.atomic
def walk_gates(
    *,
    cycle: Cycle,
    belief_ids: Collection[str],
    gates: Sequence[Gate] = GATES,
    twins: Mapping[str, Sequence[Twin]] | None = None,
) -> list[GateDecision]:
    """Ask every gate about each belief, in order, and act on what opens; return the decisions.

    A belief's decisions hang on nothing but itself and its twins, so that a batch of them shares one transaction. What
    a gate has let pass in this cycle it is not asked again. A cycle that has ended, or is another attempt's, decides
    nothing: nobody would take up what it opens.
    """
    if not keep_running(cycle=cycle):
        return []
    walk = _Walk(cycle=cycle, belief_ids=belief_ids, gates=gates, twins=twins or {})
    decided = [entry for key in sorted(belief_ids) for entry in walk.decide(key)]
    record(cycle=cycle, decided=decided)
    return [entry.decision for entry in decided]


class _Walk:
    """Some beliefs under lock, with what gates may know of them and of their twins."""

    def __init__(
        self, *, cycle: Cycle, belief_ids: Collection[str], gates: Sequence[Gate], twins: Mapping[str, Sequence[Twin]]
    ) -> None:
        self.cycle, self.gates, self.twins = cycle, gates, twins
        others = {twin.id for key in belief_ids for twin in twins.get(key, ())}
        self.beliefs = {belief.pk: belief for belief in lock_beliefs({*belief_ids, *others})}
        self.facts = read_facts_of(beliefs=list(self.beliefs.values()), cycle=cycle)
        passed = DecisionRow.objects.filter(cycle=cycle, belief__in=belief_ids, passed=True)
        self.passed = set(passed.values_list("belief_id", "gate"))

    def decide(self, key: str) -> Iterator[Decided]:
        """Yield the gates' decisions on one belief, each acted on before the next gate is asked."""
        if key not in self.beliefs:
            return
        for gate in self.gates:
            if (key, gate.name) not in self.passed:
                decided = self._ask_about_twins(gate, key) if gate.name is GateName.MERGE else self._ask(gate, key)
                yield decided
                if decided.decision.passed:
                    yield from self._tell_twin(gate, decided)
                    self._act(decided)

    def _tell_twin(self, gate: Gate, decided: Decided) -> Iterator[Decided]:
        """Decide once for both of a merge, so that either's decisions say why it was merged."""
        if decided.twin is None or decided.seen is None:
            return
        seen = replace(decided.seen, id=decided.belief.pk)
        self.passed.add((decided.twin.pk, gate.name))
        yield self._ask(gate, decided.twin.pk, seen)

    def _ask_about_twins(self, gate: Gate, key: str) -> Decided:
        """Decide on the first twin, best first, for which the gate opens; on the best where it opens for none."""
        best: Decided | None = None
        for twin in self.twins.get(key, ()):
            decided = self._ask(gate, key, twin)
            if decided.decision.passed:
                return decided
            best = best or decided
        return best or self._ask(gate, key)

    def _ask(self, gate: Gate, key: str, twin: Twin | None = None) -> Decided:
        facts = with_twin(facts=self.facts[key], twin=twin, of=self.facts)
        decision = gate.decide(facts=facts, policy=settings.POLICY.gate)
        other = self.beliefs.get(twin.id) if twin else None
        return Decided(belief=self.beliefs[key], decision=decision, twin=other, seen=twin)

    def _act(self, decided: Decided) -> None:
        """Do what an open gate does, and let those asked after it know."""
        ACTIONS[decided.decision.gate](decided, self.cycle)
        is_structural = decided.decision.gate in STRUCTURAL_GATES
        for belief in filter(None, (decided.belief, decided.twin)):
            known = self.facts[belief.pk]
            self.facts[belief.pk] = replace(
                known,
                status=BeliefStatus(belief.status),
                has_open_structural_job=known.has_open_structural_job or is_structural,
            )


def return_from_archive(*, cycle: Cycle, belief: Belief, gained: Sequence[Verdict]) -> None:
    """Bring an archived belief back where new support allows it (B14); the caller holds its lock."""
    if belief.status != BeliefStatus.ARCHIVED or Verdict.SUPPORTS not in gained:
        return
    decision = decide_return(belief=belief, cycle=cycle)
    record(cycle=cycle, decided=[Decided(belief=belief, decision=decision)])
    if decision.passed:
        change_status(
            belief=belief, new=BeliefStatus.ACTIVE, reason=decision.reason, actor=cycle_actor(cycle.pk), now=cycle.now
        )


def decide_return(*, belief: Belief, cycle: Cycle) -> GateDecision:
    """Ask whether an archived belief comes back, with its evidence as it is and the cycle's `now`."""
    return returns_from_archive(
        facts=read_facts(belief=belief, cycle=cycle),
        archived_for=_why_archived(belief),
        policy=settings.POLICY.gate,
    )


def _why_archived(belief: Belief) -> Reason:
    """Return the gate's reason; whatever else stands there is a person's, whose word no cycle overrules."""
    if belief.archived_by_person_at or belief.status_reason not in set(Reason):
        return Reason.BY_PERSON
    return Reason(belief.status_reason)


def decide_again(
    *, cycle: Cycle, gate: GateName, belief: Belief, twin: Belief | None, similarity: float
) -> GateDecision:
    """Ask a structural gate once more about a job of its own, whose beliefs the caller has locked."""
    locked = [belief, twin] if twin else [belief]
    facts: dict[str, BeliefFacts] = {
        key: replace(known, has_open_structural_job=False)
        for key, known in read_facts_of(beliefs=locked, cycle=cycle).items()
    }
    # What the words and vectors of two beliefs tell has not changed since: they never do.
    seen = Twin(id=twin.pk, similarity=similarity, passes_guard=True, was_found_different=False) if twin else None
    asked = with_twin(facts=facts[belief.pk], twin=seen, of=facts)
    return STRUCTURAL_GATES[gate].decide(facts=asked, policy=settings.POLICY.gate)


def record(*, cycle: Cycle, decided: Sequence[Decided]) -> None:
    """Keep decisions with their facts; a belief touched twice in a cycle keeps the later one."""
    last = {(entry.belief.pk, entry.decision.gate): entry for entry in decided}
    DecisionRow.objects.bulk_create(
        [_row(entry, cycle) for entry in last.values()],
        update_conflicts=True,
        unique_fields=["cycle", "belief", "gate"],
        update_fields=["passed", "reason", "facts", "twin", "created_at"],
    )


def _row(entry: Decided, cycle: Cycle) -> DecisionRow:
    return DecisionRow(
        workspace_id=cycle.workspace_id,
        cycle=cycle,
        belief=entry.belief,
        twin=entry.twin,
        gate=entry.decision.gate,
        passed=entry.decision.passed,
        reason=entry.decision.reason,
        facts=dict(entry.decision.facts),
    )
