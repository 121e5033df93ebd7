"""The recorded cycles once more, in their order, through the code that applied them; no model is asked."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from django.conf import settings
from django.db import connection
from django.db.models import Q

from memory.consolidation.birth import FOUNDED, descent_of, draft_of
from memory.consolidation.claims import end_beliefs
from memory.consolidation.classify import as_belief
from memory.consolidation.finish import beliefs_due, close_expired
from memory.consolidation.offspring import ENDS, draft_child, inherited_evidence
from memory.consolidation.rebuild.acts import Slots, repeat_act, words_by_hand
from memory.consolidation.rebuild.leavings import Leaving, bring_back, repeat_leaving
from memory.consolidation.rebuild.record import Record
from memory.consolidation.structural import version_of
from memory.consolidation.testimony import give_evidence, read_job_evidence
from memory.domain.gates import ArchiveGate, BeliefFacts, GateName
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, CycleState, JobState, Reason
from memory.ledger.beliefs import CreationOutcome, replay_belief
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.evidence import record_evidence
from memory.ledger.gates import decide_closing, read_facts_of
from memory.ledger.transactions import Author, LineageInput, change_status, lock_beliefs, record_lineage
from memory.models import (
    Belief,
    ClusterJob,
    Cycle,
    Evidence,
    FactType,
    GateDecision,
    StructuralChild,
    StructuralJob,
    StructuralKind,
)
from memory.models.cycles import OPEN_JOB_STATES

# What a structural gate says when it opens.
_REASONS: Mapping[str, Reason] = {
    StructuralKind.REVISE: Reason.DISPROVED,
    StructuralKind.SPLIT: Reason.TRUE_IN_PART,
    StructuralKind.MERGE: Reason.SAYS_THE_SAME,
    StructuralKind.CLOSE: Reason.CHANGED,
}
_WALKED = (CycleState.FINISHED, CycleState.OVER_BUDGET, CycleState.CANCELLED)  # ends at which what is due was looked at


def replay(*, record: Record, acts: Slots, on_cycle: Callable[[], object]) -> list[StructuralJob]:
    """Take away what the recorded cycles made and make it again; return the structural changes that were not repeated.

    The caller rolls back what this leaves: rows that name a belief name one that may not come again.
    """
    _take_away(record)
    bring_back(leavings=[act for place in sorted(acts) for act in acts[place] if isinstance(act, Leaving)])
    unrepeated: list[StructuralJob] = []
    for place, cycle in enumerate(record.cycles):
        _repeat_acts(acts, place, record)
        unrepeated += _replay_cycle(cycle, record)
        on_cycle()
    _repeat_acts(acts, len(record.cycles), record)
    for other in lock_beliefs(record.others):
        recompute_beliefs(beliefs=[other], now=other.updated_at)
    return unrepeated


# A verdict that an undone cycle had made evidence of before a later one repeated it: nothing was left of it to count.
_DROP_ECHOES_OF_UNDONE = """
DELETE FROM memory_jobverdict v USING memory_clusterjob j, memory_cycle c
WHERE j.id = v.job_id AND c.id = j.cycle_id AND c.id = ANY(%(cycles)s) AND v.belief_id = ANY(%(made)s)
  AND EXISTS (
      SELECT FROM memory_cycle undone JOIN memory_clusterjob k ON k.cycle_id = undone.id AND k.state = 'applied'
      JOIN memory_jobverdict u ON u.job_id = k.id
      WHERE undone.workspace_id = %(workspace)s AND undone.undone_at IS NOT NULL AND undone.opened_at < c.opened_at
        AND u.episode_id = v.episode_id AND coalesce(u.belief_id, k.joined_belief_id) = v.belief_id)
  AND NOT EXISTS (SELECT FROM memory_evidence e
                  WHERE e.belief_id = v.belief_id AND e.episode_id = v.episode_id AND e.cycle_id = c.id)
"""


def _take_away(record: Record) -> None:
    """Delete rows as they are, without what hangs on them: it refers to beliefs that come again under their ids."""
    made, cycles = list(record.made), [cycle.pk for cycle in record.cycles]
    by_hand = list(words_by_hand(beliefs=made).values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_DROP_ECHOES_OF_UNDONE, {"made": made, "cycles": cycles, "workspace": record.workspace.pk})
        cursor.execute("DELETE FROM memory_evidence WHERE belief_id = ANY(%s) AND cycle_id = ANY(%s)", [made, cycles])
        cursor.execute("DELETE FROM memory_evidence WHERE id = ANY(%s)", [by_hand])
        cursor.execute("DELETE FROM memory_lineage WHERE child_id = ANY(%s) AND cycle_id = ANY(%s)", [made, cycles])
        cursor.execute("DELETE FROM memory_belief WHERE id = ANY(%s)", [made])


def _repeat_acts(acts: Slots, place: int, record: Record) -> None:
    for act in acts.get(place, ()):
        if isinstance(act, Leaving):
            repeat_leaving(leaving=act, made=list(record.made))
        else:
            repeat_act(act=act)


def _replay_cycle(cycle: Cycle, record: Record) -> list[StructuralJob]:
    jobs = ClusterJob.objects.filter(cycle=cycle, state=JobState.APPLIED).select_related("workspace")
    for job in jobs.defer("candidate_vector").order_by("number"):
        _replay_job(job, cycle, record)
    _close(cycle, record)
    changes = StructuralJob.objects.filter(cycle=cycle, state=JobState.APPLIED).order_by("pk")
    unrepeated = [job for job in changes if not _replay_change(job, cycle, record)]
    if cycle.state in _WALKED:
        close_expired(cycle=cycle, among=list(record.made))
    _archive(cycle, record)
    return unrepeated


def _replay_job(job: ClusterJob, cycle: Cycle, record: Record) -> None:
    outcome = job.outcome
    give_evidence(cycle=cycle, job=job)
    end_beliefs(cycle=cycle, job=job)
    said = read_job_evidence(job=job).get(None, [])
    author, descent = Author.of_cycle(cycle, reason=FOUNDED), descent_of(job=job)
    found: list[Belief] = []
    if outcome == CreationOutcome.JOINED and job.joined_belief_id:
        found = lock_beliefs([job.joined_belief_id])
    elif outcome == CreationOutcome.CREATED and job.created_belief_id in record.foundable:
        found = [_found_again(job, author, record.made[job.created_belief_id])]
    for belief in found:
        is_new = outcome == CreationOutcome.CREATED
        record_evidence(said={belief.pk: said}, beliefs=[belief], author=author, is_founding=is_new)
        if descent:
            record_lineage(child=belief, descent=descent, author=author)


def _found_again(job: ClusterJob, author: Author, stood: Belief) -> Belief:
    """Store a job's belief as at its birth; whose it is was told by the members, some of which may be archived now."""
    candidate = replace(as_belief(job=job, members=()), project_id=stood.project_id, user=stood.user)
    draft = draft_of(job=job, candidate=candidate, fact_type=FactType(stood.fact_type))
    return replay_belief(draft=draft, author=author, belief_id=stood.pk)


def _replay_change(job: StructuralJob, cycle: Cycle, record: Record) -> bool:
    """Put a structural job's children in the place of its beliefs; false if those are not what was decided on."""
    children = list(job.children.filter(refusal="").order_by("number"))
    if not all(child.belief_id for child in children):
        return True  # what came of it is gone for good
    ids = [key for key in (job.belief_id, job.twin_id) if key]
    found = {belief.pk: belief for belief in lock_beliefs(ids)}
    parents = [found[key] for key in ids if key in found]
    if len(parents) < len(ids) or not _are_as_decided(job, parents, record):
        return False
    _replace(job, cycle, parents, children)
    return True


def _are_as_decided(job: StructuralJob, parents: Sequence[Belief], record: Record) -> bool:
    """Tell whether status, words and evidence of a job's beliefs are what its decision rests on."""
    versions = {job.belief_id: job.belief_version, job.twin_id: job.twin_version}
    return all(versions[parent.pk] in _versions(parent, job, record) for parent in parents)


def _versions(parent: Belief, job: StructuralJob, record: Record) -> set[str]:
    """Return the belief's version; of one that is not replayed, and is therefore changed already, as it was before."""
    is_changed = parent.pk in record.others and parent.status == ENDS[job.kind][0]
    statuses = LIVE if is_changed else {BeliefStatus(parent.status)}
    return {version_of(belief=parent, status=status) for status in statuses}


def _replace(job: StructuralJob, cycle: Cycle, parents: Sequence[Belief], children: Sequence[StructuralChild]) -> None:
    reason, (status, kind) = _REASONS[job.kind], ENDS[job.kind]
    author = Author.of_cycle(cycle, reason=f"{kind.label}: {reason}")
    for child in children:
        said = inherited_evidence(parents=parents, child=child)
        if child.is_joined:
            belief = next(iter(lock_beliefs([str(child.belief_id)])), None)
        else:
            draft = draft_child(parents=parents, child=child)
            belief = replay_belief(draft=draft, author=author, belief_id=str(child.belief_id))
        if belief:
            record_evidence(said={belief.pk: said}, beliefs=[belief], author=author, is_founding=not child.is_joined)
            record_lineage(child=belief, descent=LineageInput(parents=parents, kind=kind, reason=reason), author=author)
    for parent in parents:
        if parent.status in LIVE:
            change_status(belief=parent, new=status, reason=reason, actor=author.actor, now=cycle.now)


def _close(cycle: Cycle, record: Record) -> None:
    """Ask once more whether what beliefs say has changed (C1)."""
    for belief, facts in _asked_again(GateName.CLOSE, cycle, record):
        author = Author.of_cycle(cycle, reason=Reason.CHANGED)
        decide_closing(belief=belief, facts=facts, author=author)


def _archive(cycle: Cycle, record: Record) -> None:
    """Ask the archive gate once more about all that the cycle asked it about, and what it would have now."""
    for belief, facts in _asked_again(GateName.ARCHIVE, cycle, record):
        decision = ArchiveGate().decide(facts=facts, policy=settings.POLICY.gate)
        if decision.passed:
            change_status(
                belief=belief,
                new=BeliefStatus.ARCHIVED,
                reason=decision.reason,
                actor=cycle_actor(cycle.pk),
                now=cycle.now,
            )


def _asked_again(gate: GateName, cycle: Cycle, record: Record) -> Iterator[tuple[Belief, BeliefFacts]]:
    """Yield the beliefs that a gate was asked about, or would be now, with what it may know of them."""
    recorded = GateDecision.objects.filter(cycle=cycle, gate=gate).values_list("belief_id", "facts")
    was_busy = {key: bool(facts["has_open_structural_job"]) for key, facts in recorded}
    asked = {*was_busy, *_would_be_asked(cycle)} & set(record.made)
    beliefs = lock_beliefs(asked)
    facts = read_facts_of(beliefs=beliefs, now=cycle.now, cycle=cycle)
    waiting = _busy_after(cycle, record, asked - set(was_busy))
    for belief in beliefs:
        # Structural jobs have ended that were open then.
        is_busy = was_busy.get(belief.pk, belief.pk in waiting)
        yield belief, replace(facts[belief.pk], has_open_structural_job=is_busy)


def _would_be_asked(cycle: Cycle) -> set[str]:
    """Find what gained evidence and what is due by time, unless the cycle ended before it looked."""
    if cycle.state not in _WALKED or cycle.started_at is None:
        return set()
    touched = Evidence.objects.filter(cycle=cycle).values_list("belief_id", flat=True)
    due = beliefs_due(workspace_id=cycle.workspace_id, now=cycle.now)
    return {*touched, *due.values_list("pk", flat=True)}


def _busy_after(cycle: Cycle, record: Record, beliefs: Collection[str]) -> set[str]:
    """Find the beliefs that a structural job was about which this cycle left to a later one."""
    places = record.places
    here = places[cycle.pk]
    jobs = StructuralJob.objects.filter(Q(belief__in=beliefs) | Q(twin__in=beliefs), decided_in__in=list(places))
    found: set[str] = set()
    for job in jobs.values("belief_id", "twin_id", "decided_in_id", "cycle_id", "state"):
        ends_later = places.get(job["cycle_id"], -1) > here or job["state"] in OPEN_JOB_STATES
        if ends_later and places[job["decided_in_id"]] <= here:
            found |= {job["belief_id"], job["twin_id"]}
    return found
