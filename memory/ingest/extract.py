"""Store the waiting turns of one conversation as episodes under a lease, and have them read (F5, L2).

Episodes are stored and turns finished in one transaction, which checks the lease; that asks no model. Then what people
said is read (`read_turns`), and a conversation that rests is summed up (`summaries`). Turns that cost too many workers
are stored in ever smaller groups, and one that fails alone is a dead letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from memory.consolidation.cycle import budget_policy, find_pause
from memory.consolidation.leases import Lease, hold, take_lease
from memory.domain.identity import EXTRACTION_ACTOR
from memory.domain.lifecycle import TurnState
from memory.ingest.read_turns import read_conversation
from memory.ingest.scheduling import count_waiting_turns, recheck_conversation
from memory.ingest.schemas import ERASED, IngestContext, Rejected, Stored
from memory.ingest.summaries import summarize_due_stretches, when_quiet
from memory.ingest.turn_episodes import StoredTurn, link_turns, store_turns, talk_of, to_said_turn
from memory.maintenance.maintain import count_extraction
from memory.models import Conversation, Episode, Turn

log = structlog.get_logger(__name__)
COST_TOO_MANY_WORKERS = "cost too many workers"
_WHOLE_CLAIMS = 2  # for so many claims turns are stored as they were taken together; then ever fewer


def extract_conversation(*, conversation_id: int, now: datetime) -> bool:
    """Store the turns of a conversation that is due, and read what is unread; false where there was nothing to store.

    What was said is stored while the workspace rests, too: no model is asked for that.
    """
    conversation = Conversation.objects.select_related("workspace").filter(pk=conversation_id).first()
    if conversation is None:
        return False
    is_stored = _store_turns(conversation_id, now)
    if find_pause(workspace=conversation.workspace) is None:
        read_conversation(conversation=conversation, now=now)  # also what a worker who died has left unread
        summarize_due_stretches(conversation_id=conversation_id, now=now)
    return is_stored


class _LeaseTaken(Exception):
    """Somebody else stores the conversation, or it is gone: nothing of it is stored."""


def _store_turns(conversation_id: int, now: datetime) -> bool:
    """Store turns and be done with them.

    Locked are episodes, the conversation, its turns, in this order, as by whoever erases; and whoever sends turns
    meanwhile does not wait for the storing of episodes.
    """
    with leased_conversation(conversation_id=conversation_id, now=now) as lease:
        if lease is None:
            return False
        arrival = IngestContext(workspace=lease.conversation.workspace, now=now, actor=EXTRACTION_ACTOR)
        said = [to_said_turn(turn) for turn in lease.turns]
        try:
            with transaction.atomic():
                stored, broken = store_turns(turns=said, talk=talk_of(lease.conversation), arrival=arrival)
                _lock_episodes(stored)
                _release(lease, now)
                _finish_turns(lease.turns, stored, broken, now)
                _note_refused(lease, stored)
                recheck_conversation(conversation_id=conversation_id)
        except _LeaseTaken:
            lease.is_over = True
            log.warning("conversation_overtaken", conversation=conversation_id)
            return False
    count_extraction(workspace_id=arrival.workspace.pk)
    log.info("turns_stored", conversation=conversation_id, turns=len(lease.turns), episodes=len(stored))
    return True


def _lock_episodes(stored: Sequence[StoredTurn]) -> None:
    """Lock the episodes that turns became, or were before, until the transaction ends; raise _LeaseTaken if one went.

    Links lock what they lead to, and the conversation comes after that.
    """
    told = {one.outcome.id for one in stored if isinstance(one.outcome, Stored)}
    held = Episode.objects.select_for_update(no_key=True).filter(pk__in=told).order_by("pk")
    if set(held.values_list("pk", flat=True)) != told:
        raise _LeaseTaken


def _finish_turns(
    turns: Sequence[Turn], stored: Sequence[StoredTurn], broken: Mapping[int, str], now: datetime
) -> None:
    """Remember which episodes turns became; those over which our own code broke are dead letters alone (E6)."""
    by_number = {turn.number: turn for turn in turns}
    pairs = [(by_number[one.turn.number], one.outcome.id) for one in stored if isinstance(one.outcome, Stored)]
    link_turns(pairs=pairs, is_verbatim=True)
    Turn.objects.filter(pk__in=[turn.pk for turn in turns]).update(
        state=TurnState.EXTRACTED, state_reason="", settled_at=now
    )
    for number, reason in broken.items():
        make_dead_letters(turns=[by_number[number]], reason=reason, now=now)


def _note_refused(lease: ConversationLease, stored: Sequence[StoredTurn]) -> None:
    """Let it be seen which turns were not stored; that erased words are refused is nothing to look into (L4)."""
    refused = {one.turn.number: one.outcome for one in stored if isinstance(one.outcome, Rejected)}
    if not refused:
        return
    reasons = Counter(_reason_of(one) for one in refused.values())
    log.warning("turns_refused", conversation=lease.conversation.pk, reasons=dict(reasons))
    for number, one in refused.items():
        if one != ERASED:
            turns = Turn.objects.filter(conversation=lease.conversation, number=number)
            turns.update(state_reason=f"it was not stored: {_reason_of(one)}"[:200])


def _reason_of(refusal: Rejected) -> str:
    return "; ".join([refusal.detail, *(f"{name}: {' '.join(why)}" for name, why in sorted(refusal.errors.items()))])


def _release(lease: ConversationLease, now: datetime) -> None:
    """Give the lease back, which locks the conversation; raise _LeaseTaken unless it holds, with all its turns."""
    columns: dict[str, Any] = {
        "claims": 0,
        "state_reason": "",
        "not_before": None,
        "extracted_at": now,
        "extraction_count": F("extraction_count") + 1,
        "extraction_seconds": F("extraction_seconds") + lease.seconds,
    }
    if lease.conversation.turn_count >= settings.POLICY.extraction.summary_least:
        columns["sum_due_at"] = Coalesce("sum_due_at", when_quiet())
    standing = Turn.objects.filter(pk__in=[turn.pk for turn in lease.turns])
    if not lease.let_go(**columns) or standing.count() < len(lease.turns):
        raise _LeaseTaken


@dataclass(slots=True, kw_only=True)
class ConversationLease(Lease[Conversation]):
    """The right to store some turns of one conversation."""

    turns: list[Turn]

    @property
    def conversation(self) -> Conversation:
        """Return the conversation as it was before it was claimed."""
        return self.row


def leased_conversation(*, conversation_id: int, now: datetime) -> AbstractContextManager[ConversationLease | None]:
    """Hold a conversation that is due and free, with the turns to store; None if it is not, or none is left."""
    return hold(_claim(conversation_id, now))


@transaction.atomic
def _claim(conversation_id: int, now: datetime) -> ConversationLease | None:
    rows = Conversation.objects.due().free().select_for_update(no_key=True, of=("self",)).select_related("workspace")
    conversation = rows.select_related("project").filter(pk=conversation_id).first()
    if conversation is None:
        return None
    turns, claims = _take_readable(conversation, now)
    held, counts = Conversation.objects.filter(pk=conversation.pk), count_waiting_turns(conversation_id=conversation.pk)
    columns: dict[str, Any] = counts | {"claims": claims, "due_since": None, "due_reason": "", "sent_at": None}
    if not turns:
        held.revoke(**columns)
        return None
    owner = take_lease(held, **columns)
    assert owner  # its row is locked, and was free
    return ConversationLease(row=conversation, turns=turns, owner=owner)


def _take_readable(conversation: Conversation, now: datetime) -> tuple[list[Turn], int]:
    """Take turns that may be stored, and count how often they were taken; what failed alone too often is buried."""
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
    """Keep as many turns as may be stored together after so many claims; one that failed alone is dead."""
    if claims <= _WHOLE_CLAIMS:
        return turns
    if len(turns) == 1:
        if claims > budget_policy().job_claims:
            make_dead_letters(turns=turns, reason=turns[0].state_reason or COST_TOO_MANY_WORKERS, now=now)
            return []
        return turns
    kept = turns[: len(turns) // 2]
    Turn.objects.filter(pk__in=[turn.pk for turn in turns[len(kept) :]]).update(state=TurnState.BUFFERED)
    return kept


def make_dead_letters(*, turns: Sequence[Turn], reason: str, now: datetime) -> None:
    """Make dead letters of turns: they wait for a person, who sees why."""
    ids = [turn.pk for turn in turns]
    Turn.objects.filter(pk__in=ids).update(state=TurnState.FAILED, state_reason=reason[:200], settled_at=now)
    log.warning("turns_buried", turns=ids, reason=reason)


def log_context_of(key: int) -> dict[str, str | int]:
    """Name what the lines of a log are about: a conversation and its workspace."""
    found = Conversation.objects.filter(pk=key).values("workspace").first()
    return {"conversation": key, **(found or {})}
