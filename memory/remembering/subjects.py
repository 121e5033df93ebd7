"""Beliefs that came without a subject get the one that their statement names (R13)."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from memory.domain.actor import Actor
from memory.domain.cards import split_subject
from memory.domain.gates.decisions import LIVE
from memory.history.attribution import attribute_changes
from memory.ledger.beliefs import hash_statement
from memory.ledger.transactions import lock_beliefs, lock_workspace
from memory.models import Belief, Workspace
from memory.models.conversations import REASON_BACKFILLED

_LONGEST = 200
_BATCH = 50  # some 0.1 s under the lock of the workspace


def backfill_subjects(*, workspace: Workspace, actor: Actor, now: datetime) -> dict[str, str]:
    """Give every live belief without a subject one, in lower case; return the subjects by belief.

    Some at a time, so that gates and people need not wait for all of them; what ends halfway is ended by the next run.
    Done again it finds nothing left to do: whose statement names nobody is left as it is.
    """
    named = {belief.pk: subject for belief in _bare(workspace) if (subject := _subject_of(belief))}
    ids = sorted(named)
    filled: dict[str, str] = {}
    for start in range(0, len(ids), _BATCH):
        filled |= _fill_in(workspace, ids[start : start + _BATCH], actor, now)
    return filled


def _bare(workspace: Workspace) -> QuerySet[Belief]:
    return Belief.objects.for_workspace(workspace.pk).filter(status__in=LIVE, subject="").only("statement")


def _subject_of(belief: Belief) -> str:
    """Return the subject that a statement names; "" where it is no more than marks."""
    subject = split_subject(belief.statement)[0].lower().strip()[:_LONGEST]
    return subject if any(character.isalnum() for character in subject) else ""


@transaction.atomic
def _fill_in(workspace: Workspace, ids: Collection[str], actor: Actor, now: datetime) -> dict[str, str]:
    """Fill in those of the named beliefs that are still without a subject."""
    lock_workspace(workspace.pk)
    attribute_changes(actor=actor, reason=REASON_BACKFILLED)
    beliefs = lock_beliefs(_bare(workspace).filter(pk__in=ids).values("pk"))
    for belief in beliefs:
        belief.subject, belief.updated_at = _subject_of(belief), now
        belief.statement_hash = hash_statement(belief.statement, belief.subject, belief.context)
    Belief.objects.bulk_update(beliefs, ["subject", "statement_hash", "updated_at"])
    return {belief.pk: belief.subject for belief in beliefs}
