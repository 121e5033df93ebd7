"""What curators did and said by hand, and where it stands among the cycles."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet, Window
from django.db.models.functions import Lag

from memory.consolidation.curating import Act, curate_belief
from memory.consolidation.rebuild.leavings import Leaving, is_bereavement, read_leavings, slot_of
from memory.consolidation.rebuild.record import Record
from memory.consolidation.touched import is_undoing, read_undoings
from memory.domain.identity import REBUILD_ACTOR, Actor, ActorKind, cycle_actor, read_actor
from memory.domain.lifecycle import BeliefStatus, IllegalTransitionError, Reason
from memory.ledger.beliefs import hash_statement, replay_creation
from memory.ledger.evidence import replay_evidence
from memory.ledger.gates import IMMEDIATE_REASONS, set_valid_until
from memory.ledger.transactions import Author, change_status, lock_beliefs, repair_status
from memory.models import Basis, Belief, BeliefEvent, Cycle, Evidence, Transition
from memory.models.conversations import REASON_BACKFILLED, REASON_REMEMBERED

_ACTS: Mapping[str, Act] = {
    BeliefStatus.ARCHIVED: Act.ARCHIVE,
    BeliefStatus.CHALLENGED: Act.CHALLENGE,
    BeliefStatus.ACTIVE: Act.RESTORE,
    BeliefStatus.FORGOTTEN: Act.FORGET,
}
_REPLACED = frozenset({BeliefStatus.SPLIT, BeliefStatus.MERGED, BeliefStatus.REVISED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAct:
    """One thing that somebody did to a belief: a change of status, pin or subject, or a word as evidence."""

    belief_id: str
    act: Act | None  # None: a change of status that is none of a curator's
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


Slots = Mapping[int, Sequence[RecordedAct | Leaving]]  # by how many of the recorded cycles came before


def read_acts(*, record: Record) -> Slots:
    """Read what was done by hand to the beliefs that are replayed, and which episodes left, in order, by its place."""
    slots: dict[int, list[RecordedAct | Leaving]] = defaultdict(list)
    latest: dict[str, int] = defaultdict(int)
    begins = [cycle.started_at or cycle.opened_at for cycle in record.cycles]
    leavings = read_leavings(record=record)
    acts: list[RecordedAct | Leaving] = [
        *_makings(record),
        *_announced_ends(record),
        *_changes_of_status(record, leavings),
        *_changes_of_pins(record),
        *_backfilled_subjects(record),
        *_words_by_hand(record),
        *leavings,
    ]
    for act in sorted(acts, key=lambda act: act.moment):
        begun = bisect_right(begins, act.moment)
        slot = slot_of(act, record, begun) if isinstance(act, Leaving) else _slot(act, record, begun)
        latest[act.of] = slot = max(latest[act.of], slot)
        slots[slot].append(act)
    return slots


def _makings(record: Record) -> Iterator[RecordedAct]:
    """Yield the makings of beliefs that no cycle made."""
    for key, event in record.by_hand.items():
        yield RecordedAct(
            belief_id=key,
            act=None,
            reason="",
            actor=REBUILD_ACTOR,
            at=event.created_at,
            moment=event.pgh_created_at,
            making=(record.made[key], event),
        )


def _announced_ends(record: Record) -> Iterator[RecordedAct]:
    """Yield the days that remembered texts announced, on which what is believed ends, and took back (C1)."""
    before = Window(Lag("valid_until"), partition_by=F("pgh_obj"), order_by=F("pgh_id").asc())
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made)).annotate(was_until=before).order_by("pgh_id")
    for event in events.filter(pgh_context__reason=Reason.ANNOUNCED):
        actor = read_actor(event.pgh_context["actor"])
        if event.valid_until != event.was_until and actor.kind != ActorKind.CYCLE and actor != REBUILD_ACTOR:
            yield RecordedAct(
                belief_id=event.pgh_obj_id,
                act=None,
                reason=Reason.ANNOUNCED,
                actor=actor,
                at=event.updated_at,
                moment=event.pgh_created_at,
                is_end=True,
                until=event.valid_until,
            )


def _changes_of_status(record: Record, leavings: Sequence[Leaving]) -> Iterator[RecordedAct]:
    left = {(leaving.actor, leaving.at) for leaving in leavings}
    undoings = read_undoings(workspace_id=record.workspace.pk)
    changes = Transition.objects.for_workspace(record.workspace.pk).filter(belief__in=list(record.made))
    by_hand = changes.exclude(actor__startswith=f"{ActorKind.CYCLE} ").exclude(actor=str(REBUILD_ACTOR))
    for change in by_hand.order_by("pk"):
        if is_bereavement(change=change, leavings=left) or _follows_evidence(change):
            continue
        yield RecordedAct(
            belief_id=str(change.belief_id),
            act=_ACTS.get(change.new),
            old=change.old,
            new=change.new,
            reason=change.reason,
            actor=read_actor(change.actor),
            at=change.at,
            moment=change.recorded_at,
            is_undoing=is_undoing(change=change, undoings=undoings),
        )


def _changes_of_pins(record: Record) -> Iterator[RecordedAct]:
    """Yield what the triggers kept of pins; a change that nobody answers for is none of a curator's."""
    before = Window(Lag("is_pinned"), partition_by=F("pgh_obj"), order_by=F("pgh_id").asc())
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made)).annotate(was_pinned=before)
    turned = events.filter(was_pinned__isnull=False).exclude(is_pinned=F("was_pinned")).order_by("pgh_id")
    for event in turned.filter(pgh_context__isnull=False):
        actor = read_actor(event.pgh_context["actor"])
        if actor.kind != ActorKind.CYCLE and actor != REBUILD_ACTOR:
            yield RecordedAct(
                belief_id=event.pgh_obj_id,
                act=Act.PIN if event.is_pinned else Act.UNPIN,
                reason=event.pgh_context["reason"],
                actor=actor,
                at=event.updated_at,
                moment=event.pgh_created_at,
            )


def _backfilled_subjects(record: Record) -> Iterator[RecordedAct]:
    """Yield the subjects that were read off statements (R13), by what the triggers kept."""
    events = BeliefEvent.objects.filter(pgh_obj__in=list(record.made), pgh_context__reason=REASON_BACKFILLED)
    for event in events.exclude(subject="").order_by("pgh_id"):
        yield RecordedAct(
            belief_id=event.pgh_obj_id,
            act=None,
            subject=event.subject,
            reason=REASON_BACKFILLED,
            actor=read_actor(event.pgh_context["actor"]),
            at=event.updated_at,
            moment=event.pgh_created_at,
        )


def _words_by_hand(record: Record) -> Iterator[RecordedAct]:
    """Yield curators' words on beliefs (B4), and remembered texts' (R2); the change that each made tells when."""
    for row in words_by_hand(beliefs=record.made).order_by("pk"):
        changes = BeliefEvent.objects.filter(pgh_obj=row.belief_id, updated_at=row.created_at)
        why = row.reason if row.basis == Basis.PERSON else REASON_REMEMBERED
        signed = changes.filter(pgh_context__isnull=False).order_by("pgh_id")
        made = signed.filter(pgh_context__reason=why).first() or signed.first()
        first = made or changes.order_by("pgh_id").first() or record.by_hand.get(row.belief_id)
        yield RecordedAct(
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


def _before_next_cycle(row: Evidence, record: Record) -> datetime:
    """Return the last moment before the cycle that followed a word which changed nothing, as an echo does."""
    following = (cycle.started_at or cycle.opened_at for cycle in record.cycles if cycle.now > row.created_at)
    return next(following, _LAST) - timedelta(microseconds=1)


_LAST = datetime.max.replace(tzinfo=UTC)


def words_by_hand(*, beliefs: Collection[str]) -> QuerySet[Evidence]:
    """Select the evidence of some beliefs that came of no cycle: of a person's word, or of a remembered text."""
    rows: QuerySet[Evidence] = Evidence.objects.filter(belief__in=list(beliefs), cycle=None)
    return rows


def _slot(act: RecordedAct, record: Record, begun: int) -> int:
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
    is_newborn = record.made[act.belief_id].born_in_id == last.pk
    comes_after = changed_at < act.moment if changed_at else is_newborn or act.act is Act.UNPIN
    return begun if comes_after else begun - 1


def _changed_at(act: RecordedAct, cycle: Cycle) -> datetime | None:
    """Return when a cycle first changed the belief in what the act is about: its status, or its evidence."""
    actor = str(cycle_actor(cycle.pk))
    if act.word is None:
        mine = Transition.objects.filter(belief=act.belief_id, actor=actor)
        return mine.order_by("pk").values_list("recorded_at", flat=True).first()
    events = BeliefEvent.objects.filter(pgh_obj=act.belief_id, pgh_context__actor=actor)
    return events.order_by("pgh_id").values_list("pgh_created_at", flat=True).first()


def repeat_act(*, act: RecordedAct) -> None:
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
            _name_again(act, belief)
        elif act.is_end:
            set_valid_until(belief=belief, at=act.until, author=act.author)
        elif act.word is not None:
            replay_evidence(row=act.word, belief=belief, author=act.author)
        elif act.is_undoing or belief.status == act.new:
            _keep_times(act, belief)
        else:
            _repeat(act, belief)
    except IllegalTransitionError:
        return  # the belief went another way this time


def _name_again(act: RecordedAct, belief: Belief) -> None:
    """Give a belief that has none this time either the subject that was read off its statement."""
    if not belief.subject:
        belief.subject = act.subject
        belief.statement_hash = hash_statement(belief.statement, act.subject, belief.context)
        belief.save(update_fields=["subject", "statement_hash"])


def _keep_times(act: RecordedAct, belief: Belief) -> None:
    """Keep when a person's word counted, where it changes no status this time.

    A cycle that was undone is not replayed, so that there is nothing to be taken back, nor what somebody did about it.
    """
    if act.act is Act.RESTORE and act.old == BeliefStatus.ARCHIVED:
        belief.restored_by_person_at, belief.archived_by_person_at = act.at, None
    elif act.act is Act.ARCHIVE and not act.is_undoing:
        belief.archived_by_person_at = act.at
    belief.save(update_fields=["restored_by_person_at", "archived_by_person_at"])


def _repeat(act: RecordedAct, belief: Belief) -> None:
    if act.act is None:
        new = BeliefStatus(act.new)
        if new in _REPLACED:  # what was made of it is made again, though the cycle be undone that had brought it back
            repair_status(
                belief=belief, new=new, status_reason=act.reason, reason=act.reason, actor=act.actor, now=act.at
            )
        else:
            change_status(belief=belief, new=new, reason=act.reason, actor=act.actor, now=act.at)
    else:
        curate_belief(belief_id=belief.pk, act=act.act, reason=act.reason, actor=act.actor, now=act.at)
