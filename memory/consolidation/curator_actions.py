"""What a person or the holder of a key does to a belief: pin, unpin, archive, challenge, restore, forget.

`curate_belief` does each of them, with its reason and its actor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial

from django.db import transaction

from memory.domain.identity import Actor
from memory.domain.lifecycle import LIVE, REPLACED, BeliefStatus, IllegalTransitionError
from memory.history import attribute_changes
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import change_status, lock_existing_beliefs
from memory.models import Belief, Cycle, Lineage
from memory.redaction.service import redact_for


@transaction.atomic
def curate_belief(*, belief_id: str, act: CuratorAction, reason: str, actor: Actor, now: datetime) -> Belief:
    """Do something to a belief; raise NotFound, or IllegalTransitionError where its status does not allow it."""
    [belief] = lock_existing_beliefs([belief_id])
    if act in _REVIVING_ACTIONS:
        _check_cycle_not_undone(belief)
    _CURATOR_ACTIONS[act](belief, redact_for(workspace_id=belief.workspace_id, text=reason), actor, now)
    return belief


class CuratorAction(StrEnum):
    """What may be done to a belief by hand."""

    PIN = "pin"
    UNPIN = "unpin"
    ARCHIVE = "archive"
    CHALLENGE = "challenge"
    RESTORE = "restore"
    FORGET = "forget"


def _archive(belief: Belief, reason: str, actor: Actor, now: datetime) -> None:
    """B14: what a person archived never comes back by itself, nor does what says the same (B22)."""
    if belief.status in REPLACED:
        raise IllegalTransitionError(f"A belief that is {belief.status} cannot become archived by hand.")
    change_status(belief=belief, new=BeliefStatus.ARCHIVED, reason=reason, actor=actor, now=now)
    belief.archived_by_person_at = now
    belief.save(update_fields=["archived_by_person_at"])


def _restore(belief: Belief, reason: str, actor: Actor, now: datetime) -> None:
    """B14: for 90 days no gate archives what a person restored."""
    if belief.status in REPLACED:
        _check_nothing_in_its_place(belief)
    elif belief.status not in _RESTORABLE:
        raise IllegalTransitionError(f"A belief that is {belief.status} cannot be restored to active by hand.")
    change_status(belief=belief, new=BeliefStatus.ACTIVE, reason=reason, actor=actor, now=now)
    was_closed = belief.valid_until is not None
    belief.restored_by_person_at, belief.archived_by_person_at, belief.valid_until = now, None, None
    belief.save(update_fields=["restored_by_person_at", "archived_by_person_at", "valid_until"])
    if was_closed:  # what was said of it since counts again
        recompute_beliefs(beliefs=[belief], now=now)


def _set_status(new: BeliefStatus, belief: Belief, reason: str, actor: Actor, now: datetime) -> None:
    change_status(belief=belief, new=new, reason=reason, actor=actor, now=now)


def _set_pin(is_pinned: bool, belief: Belief, reason: str, actor: Actor, now: datetime) -> None:
    """D9: pinned beliefs are not archived, merged or forgotten by any pass."""
    if belief.is_pinned == is_pinned:
        return
    attribute_changes(actor=actor, reason=reason)
    belief.is_pinned, belief.updated_at = is_pinned, now
    belief.save(update_fields=["is_pinned", "updated_at"])


_CURATOR_ACTIONS: Mapping[CuratorAction, Callable[[Belief, str, Actor, datetime], None]] = {
    CuratorAction.PIN: partial(_set_pin, True),
    CuratorAction.UNPIN: partial(_set_pin, False),
    CuratorAction.ARCHIVE: _archive,
    CuratorAction.CHALLENGE: partial(_set_status, BeliefStatus.CHALLENGED),
    CuratorAction.RESTORE: _restore,
    CuratorAction.FORGET: partial(_set_status, BeliefStatus.FORGOTTEN),  # B22: the row stays against what says the same
}

# What became other beliefs comes back when they are gone alone, else both would stand side by side; nor is it put away,
# to be brought back from there.
_RESTORABLE = {BeliefStatus.ARCHIVED, BeliefStatus.CHALLENGED, BeliefStatus.INVALIDATED, BeliefStatus.PRUNED}
_REVIVING_ACTIONS = {CuratorAction.RESTORE, CuratorAction.CHALLENGE}


class CreatedInUndoneCycle(IllegalTransitionError):
    """What was born in a cycle that was undone has no evidence to live by."""


def _check_cycle_not_undone(belief: Belief) -> None:
    undone = Cycle.objects.filter(pk=belief.created_in_id, undone_at__isnull=False)
    if undone.exists():
        raise CreatedInUndoneCycle(
            f"It was born in cycle {belief.created_in_id}, which was undone: release that cycle's episodes instead."
        )


def _check_nothing_in_its_place(belief: Belief) -> None:
    """Let what a person replaced come back once nothing lives that came of it; a cycle's change is undone with it."""
    became = Lineage.objects.filter(parent=belief)
    if became.filter(cycle__isnull=False).exists() or not became.exists():
        raise IllegalTransitionError(f"A belief that is {belief.status} cannot be restored to active by hand.")
    if living := sorted(became.filter(child__status__in=LIVE).values_list("child_id", flat=True)):
        raise IllegalTransitionError(
            f"A belief that is {belief.status} is restored once nothing lives that came of it: archive or forget "
            f"{', '.join(living)} first."
        )
