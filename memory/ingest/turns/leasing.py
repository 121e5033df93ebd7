"""Conversations are read by one worker at a time, under leases as cycles' jobs are.

The turns that a worker took stay the next one's if it dies: the same turns make the same request, whose reply may stand
in the ledger already. Turns that cost too many workers are taken as poison: fewer and fewer of them are read together,
and one that fails alone is a dead letter.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import FRESH_SECONDS, budget_policy
from memory.consolidation.leases import kept_alive
from memory.domain.buffering import TurnState
from memory.ingest.turns.waking import count_turns
from memory.models import Conversation, Turn

log = structlog.get_logger(__name__)

TOO_OFTEN = "cost too many workers"

_WHOLE_CLAIMS = 2  # of so many claims turns are read as they were taken together; then ever fewer
_RELEASED: dict[str, Any] = {"lease_owner": "", "leased_until": None}


@dataclass(slots=True, kw_only=True)
class ConversationLease:
    """The right to read some turns of one conversation; every write of the holder asks `renew` or `held`."""

    conversation: Conversation
    turns: list[Turn]
    owner: str
    began: float = field(default_factory=time.monotonic)  # readings of the clock that only ever goes forward
    renewed: float = field(default_factory=time.monotonic)
    is_over: bool = False

    @property
    def held(self) -> QuerySet[Conversation]:
        """Select the conversation while it is this lease's."""
        return Conversation.objects.filter(pk=self.conversation.pk, lease_owner=self.owner)

    @property
    def seconds(self) -> float:
        """Return for how long the conversation has been held."""
        return time.monotonic() - self.began

    def renew(self) -> bool:
        """Show a sign of life; false once somebody else has taken over, or the conversation is gone."""
        now = time.monotonic()
        if now - self.renewed > FRESH_SECONDS:
            if not self.held.update(leased_until=database_now(plus=budget_policy().lease_seconds)):
                return False
            self.renewed = now
        return True

    def give_back(self, *, reason: str, seconds: float = 0.0) -> None:
        """Let the turns wait, for so long at least, without blaming them."""
        until = database_now(plus=seconds) if seconds else None
        self.release(claims=F("claims") - 1, state_reason=reason[:200], not_before=until)

    def release(self, **columns: Any) -> bool:
        """Write what came of the reading and let go; false if the lease was lost before."""
        self.is_over = True
        return self.held.update(**_RELEASED, **columns) == 1


@contextmanager
def leased_conversation(*, conversation_id: int, now: datetime) -> Iterator[ConversationLease | None]:
    """Hold a conversation that is due and free, with the turns to read; None if it is not, or none is left to read.

    A claim stays counted only where the turns were their holder's end: a death, or an error.
    """
    lease = _claim(conversation_id, now)
    if lease is None:
        yield None
        return
    try:
        with kept_alive(lease.renew):
            yield lease
    except Exception:
        lease.held.update(**_RELEASED)
        raise
    if not lease.is_over:
        lease.held.update(**_RELEASED, claims=F("claims") - 1)


@transaction.atomic
def _claim(conversation_id: int, now: datetime) -> ConversationLease | None:
    rows = Conversation.objects.due().free().select_for_update(no_key=True, of=("self",)).select_related("workspace")
    conversation = rows.select_related("project").filter(pk=conversation_id).first()
    if conversation is None:
        return None
    turns, claims = _take_readable(conversation, now)
    lease = ConversationLease(conversation=conversation, turns=turns, owner=uuid.uuid4().hex if turns else "")
    Conversation.objects.filter(pk=conversation.pk).update(
        **count_turns(conversation_id=conversation.pk),
        lease_owner=lease.owner,
        leased_until=database_now(plus=budget_policy().lease_seconds) if turns else None,
        claims=claims,
        not_before=None,
        due_since=None,
        due_reason="",
        sent_at=None,
    )
    return lease if turns else None


def _take_readable(conversation: Conversation, now: datetime) -> tuple[list[Turn], int]:
    """Take turns that may be read, and count how often they were taken; what failed alone too often is buried."""
    claims = conversation.claims + 1
    while turns := _take(conversation):
        if kept := _drop_poison(turns, claims, now):
            return kept, claims
        claims = 1
    return [], 0


def _take(conversation: Conversation) -> list[Turn]:
    """Return the turns that an earlier holder took, else take the first of those that wait."""
    mine = Turn.objects.filter(conversation=conversation).order_by("number")
    if left := list(mine.filter(state=TurnState.LEASED)):
        return left
    policy = settings.POLICY.turns
    turns = _fitting(list(mine.filter(state=TurnState.BUFFERED)[: policy.batch]), most=policy.batch_bytes)
    Turn.objects.filter(pk__in=[turn.pk for turn in turns]).update(state=TurnState.LEASED)
    return turns


def _fitting(turns: Sequence[Turn], *, most: int) -> list[Turn]:
    """Keep the first turns that are not too long together, one at least."""
    kept: list[Turn] = []
    size = 0
    for turn in turns:
        size += len(turn.content.encode())
        if kept and size > most:
            break
        kept.append(turn)
    return kept


def _drop_poison(turns: list[Turn], claims: int, now: datetime) -> list[Turn]:
    """Keep as many turns as may be read together after so many claims; one that failed alone is dead."""
    if claims <= _WHOLE_CLAIMS:
        return turns
    if len(turns) == 1:
        if claims > budget_policy().job_claims:
            bury(turns=turns, reason=turns[0].state_reason or TOO_OFTEN, now=now)
            return []
        return turns
    kept = turns[: len(turns) // 2]
    Turn.objects.filter(pk__in=[turn.pk for turn in turns[len(kept) :]]).update(state=TurnState.BUFFERED)
    return kept


def bury(*, turns: Sequence[Turn], reason: str, now: datetime) -> None:
    """Make dead letters of turns: they wait for a person, who sees why."""
    ids = [turn.pk for turn in turns]
    Turn.objects.filter(pk__in=ids).update(state=TurnState.FAILED, state_reason=reason[:200], settled_at=now)
    log.warning("turns_buried", turns=ids, reason=reason)


def place_of_conversation(key: int) -> dict[str, str | int]:
    """Name what the lines of a log are about: a conversation and its workspace."""
    found = Conversation.objects.filter(pk=key).values("workspace").first()
    return {"conversation": key, **(found or {})}
