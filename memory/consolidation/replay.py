"""Replay the recorded cycles in their order through the code that applied them; no model is asked.

`replay` takes away what the cycles and curators made and makes it again. Between cycles it repeats what curators did
and which episodes left; what a cycle closed, changed or archived is decided once more on the evidence that there is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from django.conf import settings
from django.db import connection
from django.db.models import Q

from memory.consolidation.belief_creation import (
    CREATION_REASON,
    draft_candidate,
    read_descent,
    read_job_evidence,
    record_job_evidence,
)
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.finish import close_expired_beliefs, select_beliefs_due
from memory.consolidation.gates import compute_version
from memory.consolidation.judge import candidate_as_belief
from memory.consolidation.replay_record import (
    CuratorEvent,
    EventSlots,
    ReplayRecord,
    Withdrawal,
    select_manual_evidence,
)
from memory.consolidation.restructure import PARENT_ENDS, draft_child, inherited_evidence
from memory.domain.gates import ArchiveGate, BeliefFacts, GateName
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import LIVE, REPLACED, BeliefStatus, CycleState, IllegalTransitionError, JobState, Reason
from memory.ledger.beliefs import CreationOutcome, hash_statement, replay_belief, replay_creation
from memory.ledger.confidence import WITHDRAWN_STATUSES, recompute_beliefs
from memory.ledger.evidence import record_evidence, replay_evidence, withdraw_evidence
from memory.ledger.gates import decide_closing, read_facts_of, set_valid_until
from memory.ledger.transactions import (
    Author,
    LineageInput,
    change_status,
    lock_beliefs,
    record_lineage,
    repair_status,
    set_status_unrecorded,
)
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

# A verdict that an undone cycle had made evidence of before a later one repeated it: nothing was left of it to count.
_DROP_VERDICTS_OF_UNDONE = """
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


def replay(*, record: ReplayRecord, acts: EventSlots, on_cycle: Callable[[], object]) -> list[StructuralJob]:
    """Take away what the recorded cycles made and make it again; return the structural changes that were not repeated.

    The caller rolls back what this leaves: rows that name a belief name one that may not come again.
    """
    _delete_made(record)
    restore_withdrawn(leavings=[act for place in sorted(acts) for act in acts[place] if isinstance(act, Withdrawal)])
    unrepeated: list[StructuralJob] = []
    for place, cycle in enumerate(record.cycles):
        _repeat_events(acts, place, record)
        unrepeated += _replay_cycle(cycle, record)
        on_cycle()
    _repeat_events(acts, len(record.cycles), record)
    for other in lock_beliefs(record.others):
        recompute_beliefs(beliefs=[other], now=other.updated_at)
    return unrepeated


def _delete_made(record: ReplayRecord) -> None:
    """Delete rows as they are, without what hangs on them: it refers to beliefs that come again under their ids."""
    made, cycles = list(record.made), [cycle.pk for cycle in record.cycles]
    by_hand = list(select_manual_evidence(beliefs=made).values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_DROP_VERDICTS_OF_UNDONE, {"made": made, "cycles": cycles, "workspace": record.workspace.pk})
        cursor.execute("DELETE FROM memory_evidence WHERE belief_id = ANY(%s) AND cycle_id = ANY(%s)", [made, cycles])
        cursor.execute("DELETE FROM memory_evidence WHERE id = ANY(%s)", [by_hand])
        cursor.execute("DELETE FROM memory_lineage WHERE child_id = ANY(%s) AND cycle_id = ANY(%s)", [made, cycles])
        cursor.execute("DELETE FROM memory_belief WHERE id = ANY(%s)", [made])


def _repeat_events(acts: EventSlots, place: int, record: ReplayRecord) -> None:
    for act in acts.get(place, ()):
        if isinstance(act, Withdrawal):
            repeat_withdrawal(leaving=act, made=list(record.made))
        else:
            repeat_event(act=act)


def repeat_event(*, act: CuratorEvent) -> None:
    """Do it again where the belief is there and allows it."""
    if act.making is not None:
        stood, event = act.making
        replay_creation(stood=stood, event=event)
        return
    belief = next(iter(lock_beliefs([act.belief_id])), None)
    if belief is None:
        return
    try:
        if act.subject:
            _repeat_subject(act, belief)
        elif act.is_end:
            set_valid_until(belief=belief, at=act.until, author=act.author)
        elif act.word is not None:
            replay_evidence(row=act.word, belief=belief, author=act.author)
        elif act.is_undoing or belief.status == act.new:
            _keep_times(act, belief)
        else:
            _repeat_status_change(act, belief)
    except IllegalTransitionError:
        return  # the belief went another way this time


def _repeat_subject(act: CuratorEvent, belief: Belief) -> None:
    """Give a belief that has none this time either the subject that was read off its statement."""
    if not belief.subject:
        belief.subject = act.subject
        belief.statement_hash = hash_statement(belief.statement, act.subject, belief.context)
        belief.save(update_fields=["subject", "statement_hash"])


def _keep_times(act: CuratorEvent, belief: Belief) -> None:
    """Keep when a person's word counted, where it changes no status this time.

    A cycle that was undone is not replayed, so that there is nothing to be taken back, nor what somebody did about it.
    """
    is_back = act.act is CuratorAction.RESTORE or (act.is_undoing and act.new != BeliefStatus.INVALIDATED)
    if is_back and act.old == BeliefStatus.ARCHIVED:
        belief.restored_by_person_at, belief.archived_by_person_at = act.at, None
    elif act.act is CuratorAction.ARCHIVE and not act.is_undoing:
        belief.archived_by_person_at = act.at
    belief.save(update_fields=["restored_by_person_at", "archived_by_person_at"])


def _repeat_status_change(act: CuratorEvent, belief: Belief) -> None:
    if act.act is None:
        new = BeliefStatus(act.new)
        if new in REPLACED:  # what was made of it is made again, though the cycle that brought it back is undone
            repair_status(
                belief=belief, new=new, status_reason=act.reason, reason=act.reason, actor=act.actor, now=act.at
            )
        else:
            change_status(belief=belief, new=new, reason=act.reason, actor=act.actor, now=act.at)
    else:
        curate_belief(belief_id=belief.pk, act=act.act, reason=act.reason, actor=act.actor, now=act.at)


def restore_withdrawn(*, leavings: Iterable[Withdrawal]) -> None:
    """Let episodes be evidence again as they were before they first left."""
    by_status: dict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for leaving in leavings:
        if leaving.episode_id not in seen:
            by_status[leaving.old].append(leaving.episode_id)
        seen.add(leaving.episode_id)
    for status, episodes in by_status.items():
        set_status_unrecorded(ids=episodes, status=status)


def repeat_withdrawal(*, leaving: Withdrawal, made: Collection[str]) -> None:
    """Let an episode leave once more, or come back, with what that meant for the beliefs that are replayed."""
    set_status_unrecorded(ids=[leaving.episode_id], status=leaving.new)
    told = Evidence.objects.filter(episode=leaving.episode_id, belief__in=made)
    if leaving.new in WITHDRAWN_STATUSES:
        withdraw_evidence(rows=told, actor=leaving.actor, now=leaving.at)
    else:
        recompute_beliefs(beliefs=lock_beliefs(told.values("belief")), now=leaving.at)


# What a structural gate says when it opens.
_REASON_OF_GATE: Mapping[str, Reason] = {
    StructuralKind.REVISE: Reason.DISPROVED,
    StructuralKind.SPLIT: Reason.TRUE_IN_PART,
    StructuralKind.MERGE: Reason.SAYS_THE_SAME,
    StructuralKind.CLOSE: Reason.CHANGED,
}
_REVIEWED_STATES = (
    CycleState.FINISHED,
    CycleState.OVER_BUDGET,
    CycleState.CANCELLED,
)  # ends at which what is due was looked at


def _replay_cycle(cycle: Cycle, record: ReplayRecord) -> list[StructuralJob]:
    jobs = ClusterJob.objects.filter(cycle=cycle, state=JobState.APPLIED).select_related("workspace")
    for job in jobs.defer("candidate_vector").order_by("number"):
        _replay_job(job, cycle, record)
    _repeat_closing(cycle, record)
    changes = StructuralJob.objects.filter(cycle=cycle, state=JobState.APPLIED).order_by("pk")
    unrepeated = [job for job in changes if not _replay_change(job, cycle, record)]
    if cycle.state in _REVIEWED_STATES:
        close_expired_beliefs(cycle=cycle, among=list(record.made))
    _repeat_archiving(cycle, record)
    return unrepeated


def _replay_job(job: ClusterJob, cycle: Cycle, record: ReplayRecord) -> None:
    outcome = job.outcome
    record_job_evidence(cycle=cycle, job=job)
    said = read_job_evidence(job=job).get(None, [])
    author, descent = Author.of_cycle(cycle, reason=CREATION_REASON), read_descent(job=job)
    found: list[Belief] = []
    if outcome == CreationOutcome.JOINED and job.joined_belief_id:
        found = lock_beliefs([job.joined_belief_id])
    elif outcome == CreationOutcome.CREATED and job.created_belief_id in record.foundable:
        found = [_recreate_belief(job, author, record.made[job.created_belief_id])]
    for belief in found:
        is_new = outcome == CreationOutcome.CREATED
        record_evidence(said={belief.pk: said}, beliefs=[belief], author=author, is_founding=is_new)
        if descent:
            record_lineage(child=belief, descent=descent, author=author)


def _recreate_belief(job: ClusterJob, author: Author, stood: Belief) -> Belief:
    """Store a job's belief as at its birth; whose it is was told by the members, some of which may be archived now."""
    candidate = replace(candidate_as_belief(job=job, members=()), project_id=stood.project_id, user=stood.user)
    draft = draft_candidate(job=job, candidate=candidate, fact_type=FactType(stood.fact_type))
    return replay_belief(draft=draft, author=author, belief_id=stood.pk)


def _replay_change(job: StructuralJob, cycle: Cycle, record: ReplayRecord) -> bool:
    """Put a structural job's children in the place of its beliefs; false if those are not what was decided on."""
    children = list(job.children.filter(refusal="").order_by("number"))
    if not all(child.belief_id for child in children):
        return True  # what came of it is gone for good
    ids = [key for key in (job.belief_id, job.twin_id) if key]
    found = {belief.pk: belief for belief in lock_beliefs(ids)}
    parents = [found[key] for key in ids if key in found]
    if len(parents) < len(ids) or not _are_unchanged_since_decision(job, parents, record):
        return False
    _replace_parents(job, cycle, parents, children)
    return True


def _are_unchanged_since_decision(job: StructuralJob, parents: Sequence[Belief], record: ReplayRecord) -> bool:
    """Tell whether status, words and evidence of a job's beliefs are what its decision rests on."""
    versions = {job.belief_id: job.belief_version, job.twin_id: job.twin_version}
    return all(versions[parent.pk] in _possible_versions(parent, job, record) for parent in parents)


def _possible_versions(parent: Belief, job: StructuralJob, record: ReplayRecord) -> set[str]:
    """Return the belief's version; of one that is not replayed, and is therefore changed already, as it was before."""
    is_changed = parent.pk in record.others and parent.status == PARENT_ENDS[job.kind][0]
    statuses = LIVE if is_changed else {BeliefStatus(parent.status)}
    return {compute_version(belief=parent, status=status) for status in statuses}


def _replace_parents(
    job: StructuralJob, cycle: Cycle, parents: Sequence[Belief], children: Sequence[StructuralChild]
) -> None:
    reason, (status, kind) = _REASON_OF_GATE[job.kind], PARENT_ENDS[job.kind]
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


def _repeat_closing(cycle: Cycle, record: ReplayRecord) -> None:
    """Ask once more whether what beliefs say has changed (C1)."""
    for belief, facts in _asked_again(GateName.CLOSE, cycle, record):
        author = Author.of_cycle(cycle, reason=Reason.CHANGED)
        decide_closing(belief=belief, facts=facts, author=author)


def _repeat_archiving(cycle: Cycle, record: ReplayRecord) -> None:
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


def _asked_again(gate: GateName, cycle: Cycle, record: ReplayRecord) -> Iterator[tuple[Belief, BeliefFacts]]:
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
    if cycle.state not in _REVIEWED_STATES or cycle.started_at is None:
        return set()
    touched = Evidence.objects.filter(cycle=cycle).values_list("belief_id", flat=True)
    due = select_beliefs_due(workspace_id=cycle.workspace_id, now=cycle.now)
    return {*touched, *due.values_list("pk", flat=True)}


def _busy_after(cycle: Cycle, record: ReplayRecord, beliefs: Collection[str]) -> set[str]:
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
