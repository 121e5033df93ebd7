"""Run the gates on beliefs, in order; every decision leaves a row, passed or not, and an open gate acts at once.

`run_gates` locks the beliefs and asks; `find_near_duplicates` finds the pairs that the merge gate is asked about
(B13); `open_structural_job` leaves what needs a model's words to step 6.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, Q

from memory.consolidation.cycle import lock_running_cycle
from memory.domain.evidence import ChangePoint, Verdict
from memory.domain.gates import GATES, STRUCTURAL_GATES, BeliefFacts, Gate, GateDecision, GateName, TwinFacts
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, CycleState, JobState, Reason
from memory.domain.similarity import Profile
from memory.ledger.beliefs import BeliefSource, cosine_matrix, read_beliefs_with_vectors, says_the_same
from memory.ledger.confidence import read_evidence_rows
from memory.ledger.gates import (
    BeliefDecision,
    close_belief,
    has_successor,
    is_closed,
    is_ended_by_words,
    read_facts_of,
    record_decisions,
)
from memory.ledger.transactions import Author, change_status, lock_beliefs
from memory.llm.embeddings import embedder_of
from memory.models import Belief, Cycle, Link, LinkKind, StructuralJob, StructuralKind
from memory.models import GateDecision as DecisionRow
from memory.search.vectors import Vectors

FOUND_DIFFERENT = "found_different"  # why a merge was refused by whoever was asked
_BLOCK_BELIEFS = 1024


@transaction.atomic
def run_gates(
    *,
    cycle: Cycle,
    belief_ids: Collection[str],
    gates: Sequence[Gate] = GATES,
    twins: Mapping[str, Sequence[NearDuplicate]] | None = None,
) -> list[GateDecision]:
    """Ask every gate about each belief, in order, and act on what opens; return the decisions.

    A belief's decisions hang on nothing but itself and its twins, so that a batch of them shares one transaction. What
    a gate has let pass in this cycle it is not asked again. A cycle that has ended, or is another attempt's, decides
    nothing: nobody would take up what it opens.
    """
    if not lock_running_cycle(cycle=cycle):
        return []
    walk = _GateRun(cycle=cycle, belief_ids=belief_ids, gates=gates, twins=twins or {})
    decided = [entry for key in sorted(belief_ids) for entry in walk.decide(key)]
    record_decisions(cycle=cycle, decided=decided)
    if gates is GATES:
        Belief.objects.filter(pk__in=belief_ids).update(is_due=False)
    return [entry.decision for entry in decided]


class _GateRun:
    """Some beliefs under lock, with what gates may know of them and of their twins."""

    def __init__(
        self,
        *,
        cycle: Cycle,
        belief_ids: Collection[str],
        gates: Sequence[Gate],
        twins: Mapping[str, Sequence[NearDuplicate]],
    ) -> None:
        self.cycle, self.gates, self.twins = cycle, gates, twins
        others = {twin.id for key in belief_ids for twin in twins.get(key, ())}
        self.beliefs = {belief.pk: belief for belief in lock_beliefs({*belief_ids, *others})}
        self.facts = read_facts_of(beliefs=list(self.beliefs.values()), now=cycle.now, cycle=cycle)
        passed = DecisionRow.objects.filter(cycle=cycle, belief__in=belief_ids, passed=True)
        self.passed = set(passed.values_list("belief_id", "gate"))

    def decide(self, key: str) -> Iterator[_GateOutcome]:
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
        """Have a model say what is so since a belief was closed outside of a cycle, where nothing does yet (C2).

        Words that ended it were read, and name what replaces it (F3); what merely ran out was contradicted by nothing.
        """
        if not is_closed(belief) or has_successor(belief) or is_ended_by_words(belief):
            return
        asked = StructuralJob.objects.filter(belief=belief, kind=StructuralKind.CLOSE)
        if belief.evidence.filter(verdict=Verdict.CONTRADICTS).exists() and not asked.exists():
            decision = GateDecision(gate=GateName.CLOSE, passed=True, reason=Reason.CHANGED, facts={})
            open_structural_job(cycle=self.cycle, belief=belief, twin=None, decision=decision)

    def _tell_twin(self, gate: Gate, decided: _GateOutcome) -> Iterator[_GateOutcome]:
        """Decide once for both of a merge, so that either's decisions say why it was merged."""
        if decided.twin is None or decided.seen is None:
            return
        seen = replace(decided.seen, id=decided.belief.pk)
        self.passed.add((decided.twin.pk, gate.name))
        yield self._ask(gate, decided.twin.pk, seen)

    def _ask_about_twins(self, gate: Gate, key: str) -> _GateOutcome:
        """Decide on the first twin, best first, for which the gate opens; on the best where it opens for none."""
        best: _GateOutcome | None = None
        for twin in self.twins.get(key, ()):
            decided = self._ask(gate, key, twin)
            if decided.decision.passed:
                return decided
            best = best or decided
        return best or self._ask(gate, key)

    def _ask(self, gate: Gate, key: str, twin: NearDuplicate | None = None) -> _GateOutcome:
        facts = _add_duplicate_facts(facts=self.facts[key], twin=twin, of=self.facts)
        decision = gate.decide(facts=facts, policy=settings.POLICY.gate)
        other = self.beliefs.get(twin.id) if twin else None
        return _GateOutcome(
            belief=self.beliefs[key], decision=decision, twin=other, seen=twin, change=self.facts[key].change
        )

    def _act(self, decided: _GateOutcome) -> None:
        """Do what an open gate does, and let those asked after it know."""
        GATE_ACTIONS[decided.decision.gate](decided, self.cycle)
        is_structural = decided.decision.gate in STRUCTURAL_GATES or decided.decision.gate is GateName.CLOSE
        for belief in filter(None, (decided.belief, decided.twin)):
            known = self.facts[belief.pk]
            self.facts[belief.pk] = replace(
                known,
                status=BeliefStatus(belief.status),
                has_open_structural_job=known.has_open_structural_job or is_structural,
            )


def _close_belief(decided: _GateOutcome, cycle: Cycle) -> None:
    """Close a belief, and have a model say what is so since then, where no belief does yet."""
    assert decided.change is not None  # else the gate stays shut
    author = Author.of_cycle(cycle, reason=Reason.CHANGED)
    if close_belief(belief=decided.belief, at=decided.change.at, author=author) is None:
        _leave_structural_job(decided, cycle)


def _archive_belief(decided: _GateOutcome, cycle: Cycle) -> None:
    change_status(
        belief=decided.belief,
        new=BeliefStatus.ARCHIVED,
        reason=decided.decision.reason,
        actor=cycle_actor(cycle.pk),
        now=cycle.now,
    )


def _leave_structural_job(decided: _GateOutcome, cycle: Cycle) -> None:
    open_structural_job(cycle=cycle, belief=decided.belief, twin=decided.twin, decision=decided.decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicate:
    """A belief that may be one with another, as far as words and vectors tell; neither ever changes."""

    id: str
    similarity: float  # reference scale
    passes_guard: bool
    was_found_different: bool
    since_undone: timedelta | None = None  # if within the time for which a person's word stands (B22)

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Order twins by their prospects of being one with the other."""
        is_free = not self.was_found_different and self.since_undone is None
        return self.passes_guard and is_free, self.similarity, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class _GateOutcome(BeliefDecision):
    """A decision, and the twin as words and vectors tell."""

    seen: NearDuplicate | None = None
    change: ChangePoint | None = None


def open_structural_job(
    *, cycle: Cycle, belief: Belief, twin: Belief | None, decision: GateDecision, in_cycle: bool = True
) -> StructuralJob:
    """Open the job that a gate has decided on; the caller holds the beliefs' locks."""
    versions = compute_versions([belief, twin] if twin else [belief])
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


def compute_versions(beliefs: Sequence[Belief]) -> dict[str, str]:
    """Hash what a decision about each belief rests on: its status, its words and its evidence."""
    return {belief.pk: compute_version(belief=belief, status=BeliefStatus(belief.status)) for belief in beliefs}


def compute_version(*, belief: Belief, status: BeliefStatus) -> str:
    """Hash the same of one belief as if it had a status."""
    evidence = sorted((row.episode_id, row.verdict, row.base_weight) for row in read_evidence_rows(belief_id=belief.pk))
    seen = json.dumps([status, belief.statement_hash, evidence])
    return hashlib.sha256(seen.encode()).hexdigest()


# What each gate does when it opens; those that need a model's word leave a job for the step that asks for it.
GATE_ACTIONS: Mapping[GateName, Callable[[_GateOutcome, Cycle], None]] = {
    GateName.CLOSE: _close_belief,
    GateName.ARCHIVE: _archive_belief,
    **dict.fromkeys(STRUCTURAL_GATES, _leave_structural_job),
}


def reevaluate_gate(
    *, cycle: Cycle, gate: GateName, belief: Belief, twin: Belief | None, similarity: float
) -> GateDecision:
    """Ask a structural gate once more about a job of its own, whose beliefs the caller has locked."""
    locked = [belief, twin] if twin else [belief]
    facts: dict[str, BeliefFacts] = {
        key: replace(known, has_open_structural_job=False)
        for key, known in read_facts_of(beliefs=locked, now=cycle.now, cycle=cycle).items()
    }
    # What the words and vectors of two beliefs tell has not changed since: they never do.
    seen = (
        NearDuplicate(id=twin.pk, similarity=similarity, passes_guard=True, was_found_different=False) if twin else None
    )
    asked = _add_duplicate_facts(facts=facts[belief.pk], twin=seen, of=facts)
    return STRUCTURAL_GATES[gate].decide(facts=asked, policy=settings.POLICY.gate)


def _add_duplicate_facts(
    *, facts: BeliefFacts, twin: NearDuplicate | None, of: Mapping[str, BeliefFacts]
) -> BeliefFacts:
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


def find_near_duplicates(*, cycle: Cycle, changed: Collection[str]) -> dict[str, list[NearDuplicate]]:
    """Return by belief its twins above the threshold, best first, for all that changed; others were looked at before.

    All of them: what keeps the best from merging, a pin or a change of late, must not keep the next.
    """
    if not changed:
        return {}
    model = embedder_of(cycle.workspace_id)
    live = Belief.objects.for_workspace(cycle.workspace_id).filter(status__in=LIVE)
    beliefs, vectors = read_beliefs_with_vectors(beliefs=live, model=model.name)
    different, undone = _read_pairs_found_different(cycle.workspace_id), _read_undone_merges(cycle)
    found: dict[str, list[NearDuplicate]] = defaultdict(list)
    for one, other, similarity in find_near_pairs(
        changed=set(changed), beliefs=beliefs, vectors=vectors, profile=model.profile
    ):
        twin = NearDuplicate(
            id=other.id,
            similarity=similarity,
            passes_guard=says_the_same(left=one.claim, right=other.claim),
            was_found_different=frozenset((one.id, other.id)) in different,
            since_undone=undone.get(frozenset((one.id, other.id))),
        )
        found[one.id].append(twin)
    return {key: sorted(near, key=lambda twin: twin.rank, reverse=True) for key, near in found.items()}


def find_recently_settled(*, cycle: Cycle) -> list[str]:
    """List the live beliefs whose rest after a change of structure ended since the last cycle: they may merge now."""
    rest = timedelta(days=settings.POLICY.gate.merge_settled_days)
    ended = (CycleState.FINISHED, CycleState.OVER_BUDGET)
    before = Cycle.objects.for_workspace(cycle.workspace_id).filter(state__in=ended, now__lt=cycle.now)
    last = before.aggregate(now=Max("now"))["now"]
    rested = Belief.objects.for_workspace(cycle.workspace_id).filter(
        Q(lineage_depth__gt=0) | Q(statement_changed_at__gt=F("created_at")),
        status__in=LIVE,
        statement_changed_at__lt=cycle.now - rest,
    )
    if last is not None:
        rested = rested.filter(statement_changed_at__gte=last - rest)
    return list(rested.values_list("pk", flat=True))


def find_recently_proposed(*, cycle: Cycle) -> list[str]:
    """List the live beliefs that somebody proposed to merge since the last cycle (R7)."""
    links = Link.objects.for_workspace(cycle.workspace_id).filter(kind=LinkKind.DUPLICATE)
    before = Cycle.objects.for_workspace(cycle.workspace_id).filter(finished_at__isnull=False, now__lt=cycle.now)
    last = before.aggregate(now=Max("now"))["now"]
    if last is not None:
        links = links.filter(created_at__gte=last)
    live = links.filter(belief__status__in=LIVE, other__status__in=LIVE)
    return sorted({key for pair in live.values_list("belief_id", "other_id") for key in pair})


def find_near_pairs(
    *, changed: Collection[str], beliefs: Sequence[BeliefSource], vectors: Vectors, profile: Profile
) -> Iterator[BeliefPair]:
    """Yield every pair above the threshold of which the first changed, with the similarity on the reference scale."""
    threshold = profile.raw(settings.POLICY.gate.merge_similarity)
    here = [place for place, belief in enumerate(beliefs) if belief.id in changed]
    compare = _compare_once if 2 * len(here) > len(beliefs) else _compare_with_all
    for one, other, cosine in compare(vectors, here, threshold):
        if _have_same_scope(beliefs[one], beliefs[other]):
            yield beliefs[one], beliefs[other], profile.reference(cosine)


BeliefPair = tuple[BeliefSource, BeliefSource, float]


def _compare_with_all(vectors: Vectors, here: list[int], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield the places of whatever is near what stands `here`, block by block."""
    for start in range(0, len(here), _BLOCK_BELIEFS):
        block = here[start : start + _BLOCK_BELIEFS]
        cosines = cosine_matrix(vectors[block], vectors)
        for row, other in np.argwhere(cosines > threshold).tolist():
            if block[row] != other:
                yield block[row], other, float(cosines[row, other])


def _compare_once(vectors: Vectors, here: list[int], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield the same, no two compared twice: what stands `here` is put in front, each block met from itself on.

    That is worth a copy of all vectors where most are meant.
    """
    order = [*here, *sorted(set(range(len(vectors))).difference(here))]
    ordered = vectors if len(here) == len(vectors) else vectors[order]
    for start in range(0, len(here), _BLOCK_BELIEFS):
        cosines = cosine_matrix(ordered[start : min(start + _BLOCK_BELIEFS, len(here))], ordered[start:])
        for row, column in np.argwhere(cosines > threshold).tolist():
            if row < column:
                one, other, cosine = order[start + row], order[start + column], float(cosines[row, column])
                yield one, other, cosine
                if start + column < len(here):
                    yield other, one, cosine


def _have_same_scope(one: BeliefSource, other: BeliefSource) -> bool:
    return (one.project_id, one.user, one.language) == (other.project_id, other.user, other.language)


def _read_pairs_found_different(workspace_id: int) -> set[frozenset[str]]:
    """Read the pairs that somebody was asked about, and that are not one."""
    refused = StructuralJob.objects.for_workspace(workspace_id).filter(
        kind=StructuralKind.MERGE, state=JobState.REFUSED, refusal=FOUND_DIFFERENT
    )
    return {frozenset(pair) for pair in refused.values_list("belief_id", "twin_id")}


def _read_undone_merges(cycle: Cycle) -> dict[frozenset[str], timedelta]:
    """Read the pairs whose merge a person had undone, with the time since, while their word stands (B22)."""
    since = cycle.now - timedelta(days=settings.POLICY.gate.undone_days)
    merges = StructuralJob.objects.for_workspace(cycle.workspace_id).filter(kind=StructuralKind.MERGE)
    undone = merges.undone().filter(undone_at__gte=since).order_by("undone_at")
    pairs = undone.values_list("belief_id", "twin_id", "undone_at")
    return {frozenset((one, other)): cycle.now - at for one, other, at in pairs}
