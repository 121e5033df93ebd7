"""Beliefs that came without a subject get the one that their statement names (R13)."""

from collections.abc import Iterator
from datetime import datetime

from django.db import transaction

from memory.domain.actor import Actor
from memory.domain.cards import split_subject
from memory.domain.gates.decisions import LIVE
from memory.history.attribution import attribute_changes
from memory.ledger.locks import lock_beliefs, lock_workspace
from memory.ledger.statements import hash_statement
from memory.models import Belief, Workspace
from memory.models.remembrances import BACKFILLED

_LONGEST = 200


@transaction.atomic
def backfill_subjects(*, workspace: Workspace, actor: Actor, now: datetime) -> dict[str, str]:
    """Give every live belief without a subject one, in lower case; return the subjects by belief.

    Done again it finds nothing left to do: whose statement names nobody is left as it is.
    """
    lock_workspace(workspace.pk)
    bare = Belief.objects.for_workspace(workspace.pk).filter(status__in=LIVE, subject="")
    attribute_changes(actor=actor, reason=BACKFILLED)
    return dict(_backfill(lock_beliefs(bare.values("pk")), now))


def _backfill(beliefs: list[Belief], now: datetime) -> Iterator[tuple[str, str]]:
    for belief in beliefs:
        subject = split_subject(belief.statement)[0].lower().strip()[:_LONGEST]
        if subject:
            belief.subject, belief.updated_at = subject, now
            belief.statement_hash = hash_statement(belief.statement, subject, belief.context)
            belief.save(update_fields=["subject", "statement_hash", "updated_at"])
            yield belief.pk, subject
