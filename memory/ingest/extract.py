"""Read the waiting turns of one conversation under a lease: ask for facts, store episodes, finish the turns (L2, L3,
E1).

No transaction is open during a call. The reply is in the call log before anything comes of it, so that the next
worker finds it there after a death; episodes are stored and turns finished in one transaction, which checks the
lease. Turns that cost too many workers are read in ever smaller groups, and one that fails alone is a dead letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Least, Now

from memory.consolidation.cycle import budget_policy, database_now, find_pause, pause_workspace
from memory.consolidation.leases import Lease, hold, take_lease
from memory.domain.identity import EXTRACTION_ACTOR
from memory.domain.lifecycle import TurnState, is_summary_due
from memory.domain.taxonomy import ConversationTurn, ExtractionResult
from memory.domain.time_limits import cooldown
from memory.ingest.scheduling import count_waiting_turns, recheck_conversation
from memory.ingest.schemas import ERASED, IngestContext, Rejected, Stored
from memory.ingest.summaries import summarize_due_stretches, when_quiet
from memory.ingest.turn_facts import (
    InformativeTurn,
    StoredTurn,
    ask_for_facts,
    extraction_budget,
    find_informative_turns,
    link_turns,
    store_turns,
    talk_of,
    to_said_turn,
)
from memory.llm.call_log import DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.types import FailureKind
from memory.maintenance.maintain import count_extraction
from memory.models import Conversation, Episode, PauseReason, Turn
from memory.models.leases import REASON_LENGTH
from memory.signals import is_shutting_down

log = structlog.get_logger(__name__)
COST_TOO_MANY_WORKERS = "cost too many workers"
_WHOLE_CLAIMS = 2  # of so many claims turns are read as they were taken together; then ever fewer


def extract_conversation(*, conversation_id: int, now: datetime) -> bool:
    """Read the turns of a conversation that is due; false where there is nothing to do, or they wait on."""
    conversation = Conversation.objects.select_related("workspace").filter(pk=conversation_id).first()
    if conversation is None or find_pause(workspace=conversation.workspace):
        return False
    is_read = _read_turns(conversation_id, now)
    summarize_due_stretches(conversation_id=conversation_id, now=now)
    return is_read


def _read_turns(conversation_id: int, now: datetime) -> bool:
    with leased_conversation(conversation_id=conversation_id, now=now) as lease:
        if lease is None:
            return False
        said = [to_said_turn(turn) for turn in lease.turns]
        found = _ask(lease, said)
        if found is None:
            return False
        telling, broken = find_informative_turns(found=found, turns=said, user=lease.conversation.user)
        return _store_and_finish(lease, replace(found, broken=(*found.broken, *broken.items())), telling, now)


# By how the text of a failure begins.
_PAUSE_REASONS: dict[str, PauseReason] = {FailureKind.AUTH: PauseReason.AUTH, FailureKind.BILLING: PauseReason.BILLING}


class _LeaseTaken(Exception):
    """Somebody else reads the conversation, or it is gone: nothing of this reading is stored."""


def _ask(lease: ConversationLease, said: Sequence[ConversationTurn]) -> ExtractionResult | None:
    """Ask what turns tell; None where they wait on, the reason being in the row by then."""
    conversation = lease.conversation
    try:
        found = ask_for_facts(
            workspace_id=conversation.workspace_id,
            turns=said,
            budget=extraction_budget(),
            fence=lease.renew,
            conversation_id=conversation.pk,
            user=conversation.user,
        )
    except RetryLater as wait:
        lease.put_back(reason="a model server asked to wait", seconds=wait.seconds)
    except DailyCapReached as spent:
        lease.put_back(reason=str(spent), seconds=settings.POLICY.turns.cap_minutes * 60)
    except OutOfBudget as spent:
        _put_back(lease, str(spent))
    except LeaseLost:
        lease.is_over = True
    else:
        return None if _pause_if_refused(lease, found) else found
    return None


def _pause_if_refused(lease: ConversationLease, found: ExtractionResult) -> bool:
    """Let the workspace rest where a server refuses the key or the account: the turns are not to blame."""
    reason = _PAUSE_REASONS.get(found.failure.partition(":")[0])
    if reason is None:
        return False
    with transaction.atomic():
        pause_workspace(
            workspace_id=lease.conversation.workspace_id,
            reason=reason,
            detail=found.failure,
            conversation=lease.conversation.pk,
        )
    lease.put_back(reason=found.failure)
    return True


def _put_back(lease: ConversationLease, reason: str) -> None:
    """Have turns wait that took all the time: a server that stalls is not asked again at once, nor for ever."""
    if is_shutting_down():
        lease.put_back(reason=reason)
    else:
        lease.let_go(**_failed(lease, reason))


def _store_and_finish(
    lease: ConversationLease, found: ExtractionResult, telling: Sequence[InformativeTurn], now: datetime
) -> bool:
    """Store the turns that say something and be done with all; those left unread wait on, and the failure counts.

    Locked are episodes, the conversation, its turns, in this order, as by whoever erases; and whoever sends turns
    meanwhile does not wait for the storing of episodes.
    """
    read = [turn for turn in lease.turns if turn.number not in found.unread]
    talk, arrival = (
        talk_of(lease.conversation),
        IngestContext(workspace=lease.conversation.workspace, now=now, actor=EXTRACTION_ACTOR),
    )
    try:
        with transaction.atomic():
            stored = store_turns(telling=telling, talk=talk, arrival=arrival) if read else []
            _lock_episodes(stored)
            _release(lease, found, read, now)
            _link(stored, lease.turns)
            Turn.objects.filter(pk__in=[turn.pk for turn in read]).update(
                state=TurnState.EXTRACTED, state_reason="", settled_at=now
            )
            _set_broken_aside(lease.turns, found, now)
            _note_refused(lease, stored)
            Turn.objects.filter(conversation=lease.conversation, number__in=found.unread).update(
                state_reason=found.failure[:200]
            )
            recheck_conversation(conversation_id=lease.conversation.pk)
    except _LeaseTaken:
        lease.is_over = True
        log.warning("conversation_overtaken", conversation=lease.conversation.pk)
        return False
    if read:
        count_extraction(workspace_id=lease.conversation.workspace_id)
    log.info(
        "turns_read", conversation=lease.conversation.pk, turns=len(read), facts=len(found.facts), episodes=len(stored)
    )
    return not found.unread


def _lock_episodes(stored: Sequence[StoredTurn]) -> None:
    """Lock the episodes that turns became, or were before, until the transaction ends; raise _LeaseTaken if one went.

    Links lock what they lead to, and the conversation comes after that.
    """
    told = {one.outcome.id for one in stored if isinstance(one.outcome, Stored)}
    held = Episode.objects.select_for_update(no_key=True).filter(pk__in=told).order_by("pk")
    if set(held.values_list("pk", flat=True)) != told:
        raise _LeaseTaken


def _set_broken_aside(turns: Sequence[Turn], found: ExtractionResult, now: datetime) -> None:
    """Make dead letters of the turns over which our own code broke; those beside them were read (E6)."""
    for number, reason in found.broken:
        make_dead_letters(turns=[turn for turn in turns if turn.number == number], reason=reason, now=now)


def _link(stored: Sequence[StoredTurn], leased: Sequence[Turn]) -> None:
    """Remember which episodes turns became, those too of which a piece is left unread."""
    by_number = {turn.number: turn for turn in leased}
    pairs = [(by_number[one.telling.turn.number], one.outcome.id) for one in stored if isinstance(one.outcome, Stored)]
    link_turns(pairs=pairs, is_verbatim=True)


def _note_refused(lease: ConversationLease, stored: Sequence[StoredTurn]) -> None:
    """Let it be seen which turns were not stored; that erased words are refused is nothing to look into (L4)."""
    refused = {one.telling.turn.number: one.outcome for one in stored if isinstance(one.outcome, Rejected)}
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


def _release(lease: ConversationLease, found: ExtractionResult, read: Sequence[Turn], now: datetime) -> None:
    """Give the lease back, which locks the conversation; raise _LeaseTaken unless it holds, with all its turns."""
    columns = _failed(lease, found.failure) if found.unread else dict(_DONE)
    if read:
        columns |= {
            "extracted_at": now,
            "extraction_count": F("extraction_count") + 1,
            "extraction_seconds": F("extraction_seconds") + lease.seconds,
        }
    policy = settings.POLICY.extraction
    if any(is_summary_due(turns=turn.number, policy=policy) for turn in read):
        columns["sum_due_at"] = Least(Coalesce("sum_due_at", Now()), Now())
    elif read and lease.conversation.turn_count >= policy.summary_least:
        columns["sum_due_at"] = Coalesce("sum_due_at", when_quiet())
    standing = Turn.objects.filter(pk__in=[turn.pk for turn in lease.turns])
    if not lease.let_go(**columns) or standing.count() < len(lease.turns):
        raise _LeaseTaken


_DONE: dict[str, Any] = {"claims": 0, "state_reason": "", "not_before": None}


def _failed(lease: ConversationLease, reason: str) -> dict[str, Any]:
    """Have the turns wait ever longer with each failure."""
    pause = cooldown(failures=lease.conversation.claims, budget=budget_policy())
    return {"state_reason": reason[:REASON_LENGTH], "not_before": database_now(plus=pause.total_seconds())}


@dataclass(slots=True, kw_only=True)
class ConversationLease(Lease[Conversation]):
    """The right to read some turns of one conversation."""

    turns: list[Turn]

    @property
    def conversation(self) -> Conversation:
        """Return the conversation as it was before it was claimed."""
        return self.row

    def put_back(self, *, reason: str, seconds: float = 0.0) -> None:
        """Let the turns wait, for so long at least, without blaming them."""
        until = database_now(plus=seconds) if seconds else None
        self.give_back(state_reason=reason[:REASON_LENGTH], not_before=until)


def leased_conversation(*, conversation_id: int, now: datetime) -> AbstractContextManager[ConversationLease | None]:
    """Hold a conversation that is due and free, with the turns to read; None if it is not, or none is left to read."""
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
