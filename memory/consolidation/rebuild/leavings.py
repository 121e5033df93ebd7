"""When episodes left the evidence, and where that stands among the cycles that are replayed."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.consolidation.rebuild.record import Record
from memory.domain.identity import Actor, read_actor
from memory.domain.lifecycle import BeliefStatus, Reason
from memory.ledger.confidence import WITHDRAWN_STATUSES, recompute_beliefs
from memory.ledger.evidence import withdraw_evidence
from memory.ledger.transactions import lock_beliefs, set_status_unrecorded
from memory.models import Evidence, Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
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


def read_leavings(*, record: Record) -> list[Leaving]:
    """Read the changes of status by which episodes left the evidence or came back, in their order."""
    mine = Transition.objects.for_workspace(record.workspace.pk)
    left = mine.filter(episode__isnull=False, new__in=WITHDRAWN_STATUSES).values("episode")
    changes = mine.filter(episode__in=left).order_by("pk")
    return [
        Leaving(
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


def slot_of(leaving: Leaving, record: Record, begun: int) -> int:
    """Return how many cycles come before an episode left, of which so many had begun by then.

    What left while a cycle was running is evidence of it where the gate was there first.
    """
    if not begun:
        return 0
    last = record.cycles[begun - 1]
    is_over = last.finished_at is not None and leaving.moment > last.finished_at
    gave = Evidence.objects.filter(cycle=last, episode=leaving.episode_id)
    return begun if is_over or gave.exists() else begun - 1


def bring_back(*, leavings: Iterable[Leaving]) -> None:
    """Let episodes be evidence again as they were before they first left."""
    by_status: dict[str, list[str]] = defaultdict(list)
    seen: set[str] = set()
    for leaving in leavings:
        if leaving.episode_id not in seen:
            by_status[leaving.old].append(leaving.episode_id)
        seen.add(leaving.episode_id)
    for status, episodes in by_status.items():
        set_status_unrecorded(ids=episodes, status=status)


def repeat_leaving(*, leaving: Leaving, made: Collection[str]) -> None:
    """Let an episode leave once more, or come back, with what that meant for the beliefs that are replayed."""
    set_status_unrecorded(ids=[leaving.episode_id], status=leaving.new)
    told = Evidence.objects.filter(episode=leaving.episode_id, belief__in=made)
    if leaving.new in WITHDRAWN_STATUSES:
        withdraw_evidence(rows=told, actor=leaving.actor, now=leaving.at)
    else:
        recompute_beliefs(beliefs=lock_beliefs(told.values("belief")), now=leaving.at)


def is_bereavement(*, change: Transition, leavings: Collection[tuple[Actor, datetime]]) -> bool:
    """Tell whether a belief was archived because its support had left: no curator's word then."""
    is_archived = change.new == BeliefStatus.ARCHIVED and change.reason == Reason.UNSUPPORTED
    return is_archived and (read_actor(change.actor), change.at) in leavings
