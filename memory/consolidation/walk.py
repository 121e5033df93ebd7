"""Every touched belief passes the gates, and every decision leaves a row, passed or not."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction

from memory.consolidation.cycle import keep_running
from memory.consolidation.structural import open_structural_job
from memory.consolidation.twins import Twin
from memory.domain.evidence import ChangePoint
from memory.domain.gates import GATES, STRUCTURAL_GATES, BeliefFacts, Gate, GateDecision, GateName, TwinFacts
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.ledger.gates import BeliefDecision, close_belief, has_successor, is_closed, read_facts_of, record_decisions
from memory.ledger.transactions import Author, change_status, lock_beliefs
from memory.models import Belief, Cycle, StructuralJob, StructuralKind
from memory.models import GateDecision as DecisionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided(BeliefDecision):
    """A decision, and the twin as words and vectors tell."""

    seen: Twin | None = None
    change: ChangePoint | None = None


def _close(decided: _Decided, cycle: Cycle) -> None:
    """Close a belief, and have a model say what is so since then, where no belief does yet."""
    assert decided.change is not None  # else the gate stays shut
    author = Author.of_cycle(cycle, reason=Reason.CHANGED)
    if close_belief(belief=decided.belief, at=decided.change.at, author=author) is None:
        _restructure(decided, cycle)


def _archive(decided: _Decided, cycle: Cycle) -> None:
    change_status(
        belief=decided.belief,
        new=BeliefStatus.ARCHIVED,
        reason=decided.decision.reason,
        actor=cycle_actor(cycle.pk),
        now=cycle.now,
    )


def _restructure(decided: _Decided, cycle: Cycle) -> None:
    open_structural_job(cycle=cycle, belief=decided.belief, twin=decided.twin, decision=decided.decision)


# What each gate does when it opens; those that need a model's word leave a job for the step that asks for it.
ACTIONS: Mapping[GateName, Callable[[_Decided, Cycle], None]] = {
    GateName.CLOSE: _close,
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
    record_decisions(cycle=cycle, decided=decided)
    if gates is GATES:
        Belief.objects.filter(pk__in=belief_ids).update(is_due=False)
    return [entry.decision for entry in decided]


class _Walk:
    """Some beliefs under lock, with what gates may know of them and of their twins."""

    def __init__(
        self, *, cycle: Cycle, belief_ids: Collection[str], gates: Sequence[Gate], twins: Mapping[str, Sequence[Twin]]
    ) -> None:
        self.cycle, self.gates, self.twins = cycle, gates, twins
        others = {twin.id for key in belief_ids for twin in twins.get(key, ())}
        self.beliefs = {belief.pk: belief for belief in lock_beliefs({*belief_ids, *others})}
        self.facts = read_facts_of(beliefs=list(self.beliefs.values()), now=cycle.now, cycle=cycle)
        passed = DecisionRow.objects.filter(cycle=cycle, belief__in=belief_ids, passed=True)
        self.passed = set(passed.values_list("belief_id", "gate"))

    def decide(self, key: str) -> Iterator[_Decided]:
        """Yield the gates' decisions on one belief, each acted on before the next gate is asked."""
        if key not in self.beliefs:
            return
        self._succeed(self.beliefs[key])
        for gate in self.gates:
            if (key, gate.name) not in self.passed:
                decided = self._ask_about_twins(gate, key) if gate.name is GateName.MERGE else self._ask(gate, key)
                yield decided
                if decided.decision.passed:
                    yield from self._tell_twin(gate, decided)
                    self._act(decided)

    def _succeed(self, belief: Belief) -> None:
        """Have a model say what is so since a belief was closed outside of a cycle, where nothing does yet (C2)."""
        asked = StructuralJob.objects.filter(belief=belief, kind=StructuralKind.CLOSE)
        if is_closed(belief) and not has_successor(belief) and not asked.exists():
            decision = GateDecision(gate=GateName.CLOSE, passed=True, reason=Reason.CHANGED, facts={})
            open_structural_job(cycle=self.cycle, belief=belief, twin=None, decision=decision)

    def _tell_twin(self, gate: Gate, decided: _Decided) -> Iterator[_Decided]:
        """Decide once for both of a merge, so that either's decisions say why it was merged."""
        if decided.twin is None or decided.seen is None:
            return
        seen = replace(decided.seen, id=decided.belief.pk)
        self.passed.add((decided.twin.pk, gate.name))
        yield self._ask(gate, decided.twin.pk, seen)

    def _ask_about_twins(self, gate: Gate, key: str) -> _Decided:
        """Decide on the first twin, best first, for which the gate opens; on the best where it opens for none."""
        best: _Decided | None = None
        for twin in self.twins.get(key, ()):
            decided = self._ask(gate, key, twin)
            if decided.decision.passed:
                return decided
            best = best or decided
        return best or self._ask(gate, key)

    def _ask(self, gate: Gate, key: str, twin: Twin | None = None) -> _Decided:
        facts = _with_twin(facts=self.facts[key], twin=twin, of=self.facts)
        decision = gate.decide(facts=facts, policy=settings.POLICY.gate)
        other = self.beliefs.get(twin.id) if twin else None
        return _Decided(
            belief=self.beliefs[key], decision=decision, twin=other, seen=twin, change=self.facts[key].change
        )

    def _act(self, decided: _Decided) -> None:
        """Do what an open gate does, and let those asked after it know."""
        ACTIONS[decided.decision.gate](decided, self.cycle)
        is_structural = decided.decision.gate in STRUCTURAL_GATES or decided.decision.gate is GateName.CLOSE
        for belief in filter(None, (decided.belief, decided.twin)):
            known = self.facts[belief.pk]
            self.facts[belief.pk] = replace(
                known,
                status=BeliefStatus(belief.status),
                has_open_structural_job=known.has_open_structural_job or is_structural,
            )


def decide_again(
    *, cycle: Cycle, gate: GateName, belief: Belief, twin: Belief | None, similarity: float
) -> GateDecision:
    """Ask a structural gate once more about a job of its own, whose beliefs the caller has locked."""
    locked = [belief, twin] if twin else [belief]
    facts: dict[str, BeliefFacts] = {
        key: replace(known, has_open_structural_job=False)
        for key, known in read_facts_of(beliefs=locked, now=cycle.now, cycle=cycle).items()
    }
    # What the words and vectors of two beliefs tell has not changed since: they never do.
    seen = Twin(id=twin.pk, similarity=similarity, passes_guard=True, was_found_different=False) if twin else None
    asked = _with_twin(facts=facts[belief.pk], twin=seen, of=facts)
    return STRUCTURAL_GATES[gate].decide(facts=asked, policy=settings.POLICY.gate)


def _with_twin(*, facts: BeliefFacts, twin: Twin | None, of: Mapping[str, BeliefFacts]) -> BeliefFacts:
    """Add what is to be known of a belief's nearest neighbour."""
    if twin is None or twin.id not in of:
        return facts
    other = of[twin.id]
    return replace(
        facts,
        twin=TwinFacts(
            similarity=twin.similarity,
            passes_guard=twin.passes_guard,
            is_live=other.is_live,
            confidence=other.confidence,
            is_pinned=other.is_pinned,
            has_open_structural_job=other.has_open_structural_job,
            since_changed=other.since_changed,
            was_found_different=twin.was_found_different,
            since_undone=twin.since_undone,
        ),
    )
