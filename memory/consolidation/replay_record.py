"""Read what there is to replay: the recorded cycles with what they made, what curators did, and which episodes left.

`read_replay_record` reads the cycles, `read_curator_events` what happened between them, by how many cycles came
before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import Lag

from memory.consolidation.curator_actions import CuratorAction
from memory.consolidation.sources import hash_members
from memory.consolidation.undone import is_undone_change, read_undone_cycles
from memory.domain.identity import REBUILD_ACTOR, REBUILD_NAMES, Actor, ActorKind, cycle_actor, read_actor
from memory.domain.lifecycle import CHALLENGES, BeliefStatus, JobState, Reason
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.gates import IMMEDIATE_REASONS
from memory.ledger.transactions import Author
from memory.models import (
    Basis,
    Belief,
    BeliefEvent,
    ClusterJob,
    ClusterMember,
    Cycle,
    Evidence,
    StructuralChild,
    Transition,
    Workspace,
)
from memory.models.conversations import REASON_BACKFILLED, REASON_REMEMBERED


def read_replay_record(*, workspace: Workspace) -> ReplayRecord:
    """Read what is recorded; the caller holds the workspace and its beliefs."""
    cycles = list_recorded_cycles(workspace=workspace)
    beliefs = Belief.objects.for_workspace(workspace.pk)
    makers = [cycle.pk for cycle in cycles]
    founded = _founding_jobs(makers)
    born_of_change = StructuralChild.objects.filter(
        job__cycle__in=makers, job__state=JobState.APPLIED, belief__isnull=False, is_joined=False
    )
    by_hand = _read_manual_creations(beliefs)
    made = {*founded, *born_of_change.values_list("belief_id", flat=True), *by_hand}
    return ReplayRecord(
        workspace=workspace,
        cycles=cycles,
        made={belief.pk: belief for belief in beliefs.filter(pk__in=made)},
        unfounded=_find_incomplete(founded),
        by_hand=by_hand,
        others=set(beliefs.exclude(pk__in=made).values_list("pk", flat=True)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRecord:
    """The recorded cycles in their order, and what they made, as it stands before anything is replayed."""

    workspace: Workspace
    cycles: Sequence[Cycle]
    made: Mapping[str, Belief]  # by id
    unfounded: Collection[str]  # made of a cluster that has lost a member since
    by_hand: Mapping[str, Any]  # those of them that no cycle made, with the event of their making
    others: Collection[str]  # beliefs that are not made again

    @property
    def foundable(self) -> set[str]:
        """Return what a cluster may found again."""
        return {key for key in self.made if key not in self.unfounded}

    @property
    def places(self) -> dict[str, int]:
        """Return where each cycle stands in the order."""
        return {cycle.pk: place for place, cycle in enumerate(self.cycles)}


def list_recorded_cycles(*, workspace: Workspace) -> list[Cycle]:
    """List the cycles that have ended and were not undone, in their order."""
    ended = Cycle.objects.for_workspace(workspace.pk).filter(finished_at__isnull=False, undone_at=None)
    return list(ended.select_related("workspace").order_by("opened_at", "finished_at"))


def _read_manual_creations(beliefs: QuerySet[Belief]) -> dict[str, Any]:
    """Read how beliefs stood when somebody who is no cycle made them; of older ones than the history nobody can."""
    events = BeliefEvent.objects.filter(pgh_obj__in=beliefs.filter(created_in=None).values("pk"), pgh_label="created")
    return {event.pgh_obj_id: event for event in events.order_by("pgh_id")}


def _founding_jobs(cycles: Collection[str]) -> dict[str, ClusterJob]:
    """Read the jobs that founded a belief, by the belief's id."""
    founding = ClusterJob.objects.filter(cycle__in=cycles, state=JobState.APPLIED, created_belief__isnull=False)
    return {job.created_belief_id: job for job in founding.only("pk", "created_belief", "members_hash")}


def _find_incomplete(founded: Mapping[str, ClusterJob]) -> set[str]:
    """Find the beliefs whose cluster lost a member for good: their statement may tell what that one said."""
    jobs = [job.pk for job in founded.values()]
    left: dict[int, list[str]] = defaultdict(list)
    for job, episode in ClusterMember.objects.filter(job__in=jobs).values_list("job_id", "episode_id"):
        left[job].append(episode)
    return {key for key, job in founded.items() if hash_members(left[job.pk]) != job.members_hash}


def read_curator_events(*, record: ReplayRecord) -> EventSlots:
    """Read what was done by hand to the beliefs that are replayed, and which episodes left, in order, by its place."""
    slots: dict[int, list[CuratorEvent | Withdrawal]] = defaultdict(list)
    latest: dict[str, int] = defaultdict(int)
    begins = [cycle.started_at or cycle.opened_at for cycle in record.cycles]
    leavings = read_withdrawals(record=record)
    acts: list[CuratorEvent | Withdrawal] = [
        *_read_creations(record),
        *_read_announced_ends(record),
        *_read_status_changes(record, leavings),
        *_read_pin_changes(record),
        *_read_backfilled_subjects(record),
        *_read_manual_evidence(record),
        *leavings,
    ]
    for act in _challenges_behind_their_words(sorted(acts, key=lambda act: act.moment)):
        begun = bisect_right(begins, act.moment)
        slot = (
            find_withdrawal_slot(act, record, begun) if isinstance(act, Withdrawal) else _find_slot(act, record, begun)
        )
        latest[act.of] = slot = max(latest[act.of], slot)
        slots[slot].append(act)
    return slots


def _challenges_behind_their_words(
    acts: Sequence[CuratorEvent | Withdrawal],
) -> Iterator[CuratorEvent | Withdrawal]:
    """Yield each challenge by a remembered text directly behind what the text says of that belief (R3).

    The rows of a transaction bear the time at which it began, a change of status its own. In between, what the text
    says of another belief may uphold that one, and archive the belief that was challenged.
    """
    events = [act for act in acts if isinstance(act, CuratorEvent)]
    words = {(act.belief_id, act.at) for act in events if act.word}
    challenges = {
        (act.belief_id, act.at): act
        for act in events
        if act.new == BeliefStatus.CHALLENGED and act.reason in CHALLENGES and (act.belief_id, act.at) in words
    }
    answered = dict(challenges)
    for act in acts:
        key = (act.of, act.at)
        if act is challenges.get(key):
            continue
        yield act
        if isinstance(act, CuratorEvent) and act.word and key in answered:
            yield answered.pop(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorEvent:
    """One thing that somebody did to a belief: a change of status, pin or subject, or a word as evidence."""

    belief_id: str
    act: CuratorAction | None  # None: a change of status that is none of a curator's
    old: str = ""
    new: str = ""
    reason: str
    actor: Actor
    at: datetime  # domain time
    moment: datetime  # wall time
    is_undoing: bool = False  # the status went back with a cycle that was undone
    word: Evidence | None = None  # that no cycle gave
    subject: str = ""  # that was read off the statement (R13)
    making: tuple[Belief, Any] | None = None  # the belief as it stands, and the event of its making
    is_end: bool = False  # it says when what is believed ends, as was announced, …
    until: datetime | None = None  # … or that this is open again

    @property
    def of(self) -> str:
        """Name whose it is."""
        return self.belief_id

    @property
    def author(self) -> Author:
        """Return whose it was, as whoever does it again."""
        return Author(actor=self.actor, reason=self.reason or REASON_REMEMBERED, now=self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """An episode that left the evidence, or came back to it."""

    episode_id: str
    old: str
    new: str
    actor: Actor
    at: datetime  # domain time
    moment: datetime  # wall time

    @property
    def of(self) -> str:
        """Name whose it is."""
        return self.episode_id


EventSlots = Mapping[int, Sequence[CuratorEvent | Withdrawal]]  # by how many of the recorded cycles came before

_ACTION_OF_STATUS: Mapping[str, CuratorAction] = {
    BeliefStatus.ARCHIVED: CuratorAction.ARCHIVE,
    BeliefStatus.CHALLENGED: CuratorAction.CHALLENGE,
    BeliefStatus.ACTIVE: CuratorAction.RESTORE,
    BeliefStatus.FORGOTTEN: CuratorAction.FORGET,
}


def _read_creations(record: ReplayRecord) -> Iterator[CuratorEvent]:
    """Yield the makings of beliefs that no cycle made."""
    for key, event in record.by_hand.items():
        yield CuratorEvent(
            belief_id=key,
            act=None,
            reason="",
            actor=REBUILD_ACTOR,
            at=event.created_at,
            moment=event.pgh_created_at,
            making=(record.made[key], event),
        )


def _read_announced_ends(record: ReplayRecord) -> Iterator[CuratorEvent]:
    """Yield the days that remembered texts announced, on which what is believed ends, and took back (C1)."""
    before = Window(Lag("valid_until"), partition_by=F("pgh_obj"), order_by=F("pgh_id").asc())
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made)).annotate(was_until=before).order_by("pgh_id")
    for event in events.filter(pgh_context__reason=Reason.ANNOUNCED):
        actor = read_actor(event.pgh_context["actor"])
        if event.valid_until != event.was_until and actor.kind != ActorKind.CYCLE and str(actor) not in REBUILD_NAMES:
            yield CuratorEvent(
                belief_id=event.pgh_obj_id,
                act=None,
                reason=Reason.ANNOUNCED,
                actor=actor,
                at=event.updated_at,
                moment=event.pgh_created_at,
                is_end=True,
                until=event.valid_until,
            )


def _read_status_changes(record: ReplayRecord, leavings: Sequence[Withdrawal]) -> Iterator[CuratorEvent]:
    left = {(leaving.actor, leaving.at) for leaving in leavings}
    undoings = read_undone_cycles(workspace_id=record.workspace.pk)
    changes = Transition.objects.for_workspace(record.workspace.pk).filter(belief__in=list(record.made))
    by_hand = changes.exclude(actor__startswith=f"{ActorKind.CYCLE} ").exclude(actor__in=REBUILD_NAMES)
    for change in by_hand.order_by("pk"):
        if is_archived_by_withdrawal(change=change, leavings=left) or _follows_evidence(change):
            continue
        yield CuratorEvent(
            belief_id=str(change.belief_id),
            act=_ACTION_OF_STATUS.get(change.new),
            old=change.old,
            new=change.new,
            reason=change.reason,
            actor=read_actor(change.actor),
            at=change.at,
            moment=change.recorded_at,
            is_undoing=is_undone_change(change=change, undoings=undoings),
        )


def _read_pin_changes(record: ReplayRecord) -> Iterator[CuratorEvent]:
    """Yield what the triggers kept of pins; a change that nobody answers for is none of a curator's."""
    before = Window(Lag("is_pinned"), partition_by=F("pgh_obj"), order_by=F("pgh_id").asc())
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made)).annotate(was_pinned=before)
    turned = events.filter(was_pinned__isnull=False).exclude(is_pinned=F("was_pinned")).order_by("pgh_id")
    for event in turned.filter(pgh_context__isnull=False):
        actor = read_actor(event.pgh_context["actor"])
        if actor.kind != ActorKind.CYCLE and str(actor) not in REBUILD_NAMES:
            yield CuratorEvent(
                belief_id=event.pgh_obj_id,
                act=CuratorAction.PIN if event.is_pinned else CuratorAction.UNPIN,
                reason=event.pgh_context["reason"],
                actor=actor,
                at=event.updated_at,
                moment=event.pgh_created_at,
            )


def _read_backfilled_subjects(record: ReplayRecord) -> Iterator[CuratorEvent]:
    """Yield the subjects that were read off statements (R13), by what the triggers kept."""
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made), pgh_context__reason=REASON_BACKFILLED)
    for event in events.exclude(subject="").order_by("pgh_id"):
        yield CuratorEvent(
            belief_id=event.pgh_obj_id,
            act=None,
            subject=event.subject,
            reason=REASON_BACKFILLED,
            actor=read_actor(event.pgh_context["actor"]),
            at=event.updated_at,
            moment=event.pgh_created_at,
        )


def _read_manual_evidence(record: ReplayRecord) -> Iterator[CuratorEvent]:
    """Yield curators' words on beliefs (B4), and remembered texts' (R2); the change that each made tells when."""
    for row in select_manual_evidence(beliefs=record.made).order_by("pk"):
        changes = BeliefEvent.objects.filter(pgh_obj=row.belief_id, updated_at=row.created_at)
        why = row.reason if row.basis == Basis.PERSON else REASON_REMEMBERED
        signed = changes.filter(pgh_context__isnull=False).order_by("pgh_id")
        made = signed.filter(pgh_context__reason=why).first() or signed.first()
        first = made or changes.order_by("pgh_id").first() or record.by_hand.get(row.belief_id)
        yield CuratorEvent(
            belief_id=row.belief_id,
            act=None,
            reason=row.reason,
            actor=read_actor(made.pgh_context["actor"]) if made else REBUILD_ACTOR,
            at=row.created_at,
            moment=first.pgh_created_at if first else _before_next_cycle(row, record),
            word=row,
        )


def _follows_evidence(change: Transition) -> bool:
    """Tell whether a status changed because evidence came in at that moment, and not because a person said so."""
    if change.reason not in IMMEDIATE_REASONS:
        return False
    came = Evidence.objects.for_workspace(change.workspace_id).filter(cycle=None, created_at=change.at)
    return came.exists()


def _before_next_cycle(row: Evidence, record: ReplayRecord) -> datetime:
    """Return the last moment before the cycle that followed a word which changed nothing, as an echo does."""
    following = (cycle.started_at or cycle.opened_at for cycle in record.cycles if cycle.now > row.created_at)
    return next(following, _LAST) - timedelta(microseconds=1)


_LAST = datetime.max.replace(tzinfo=UTC)


def select_manual_evidence(*, beliefs: Collection[str]) -> QuerySet[Evidence]:
    """Select the evidence of some beliefs that came of no cycle: of a person's word, or of a remembered text."""
    rows: QuerySet[Evidence] = Evidence.objects.filter(belief__in=list(beliefs), cycle=None)
    return rows


def _find_slot(act: CuratorEvent, record: ReplayRecord, begun: int) -> int:
    """Return how many cycles come before an act, of which so many had begun when it was done.

    While a cycle was running, its own change of that belief's status tells which came first. Without one it must come
    to none this time either: what keeps a belief as it is comes before the cycle, what lets go of it after.
    """
    if not begun:
        return 0
    last: Cycle = record.cycles[begun - 1]
    if last.finished_at is not None and act.moment > last.finished_at:
        return begun
    changed_at = _changed_at(act, last)
    is_newborn = record.made[act.belief_id].created_in_id == last.pk
    comes_after = changed_at < act.moment if changed_at else is_newborn or act.act is CuratorAction.UNPIN
    return begun if comes_after else begun - 1


def _changed_at(act: CuratorEvent, cycle: Cycle) -> datetime | None:
    """Return when a cycle first changed the belief in what the act is about: its status, or its evidence."""
    actor = str(cycle_actor(cycle.pk))
    if act.word is None:
        mine = Transition.objects.filter(belief=act.belief_id, actor=actor)
        return mine.order_by("pk").values_list("recorded_at", flat=True).first()
    events = BeliefEvent.objects.filter(pgh_obj=act.belief_id, pgh_context__actor=actor)
    return events.order_by("pgh_id").values_list("pgh_created_at", flat=True).first()


def read_withdrawals(*, record: ReplayRecord) -> list[Withdrawal]:
    """Read the changes of status by which episodes left the evidence or came back, in their order."""
    mine = Transition.objects.for_workspace(record.workspace.pk)
    left = mine.filter(episode__isnull=False, new__in=WITHDRAWN_STATUSES).values("episode")
    changes = mine.filter(episode__in=left).order_by("pk")
    return [
        Withdrawal(
            episode_id=change.episode_id or "",
            old=change.old,
            new=change.new,
            actor=read_actor(change.actor),
            at=change.at,
            moment=change.recorded_at,
        )
        for change in changes
        if (change.old in WITHDRAWN_STATUSES) != (change.new in WITHDRAWN_STATUSES)
    ]


def find_withdrawal_slot(leaving: Withdrawal, record: ReplayRecord, begun: int) -> int:
    """Return how many cycles come before an episode left, of which so many had begun by then.

    What left while a cycle was running is evidence of it where the gate was there first.
    """
    if not begun:
        return 0
    last = record.cycles[begun - 1]
    is_over = last.finished_at is not None and leaving.moment > last.finished_at
    gave = Evidence.objects.filter(cycle=last, episode=leaving.episode_id)
    return begun if is_over or gave.exists() else begun - 1


def is_archived_by_withdrawal(*, change: Transition, leavings: Collection[tuple[Actor, datetime]]) -> bool:
    """Tell whether a belief was archived because its support had left: no curator's word then."""
    is_archived = change.new == BeliefStatus.ARCHIVED and change.reason == Reason.UNSUPPORTED
    return is_archived and (read_actor(change.actor), change.at) in leavings
