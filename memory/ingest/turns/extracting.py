"""Read what waits of a conversation: ask for facts, and store what turns say as these are settled (L2, L3, E1).

No transaction is open during a call. The reply is in the ledger before anything comes of it, so that whoever carries on
after a death finds it there; episodes are stored and turns settled in one transaction, which asks whether the lease
still holds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Least, Now

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import budget_policy
from memory.consolidation.pausing import find_pause, rest_workspace
from memory.domain.actor import READING
from memory.domain.buffering import TurnState
from memory.domain.conversation import FactsFound, SaidTurn
from memory.domain.summaries import is_summary_due
from memory.ending import is_ending
from memory.ingest.arrival import ERASED, Arrival, Rejected, Stored
from memory.ingest.facts import ask_for_facts, extraction_budget
from memory.ingest.turns.episodes import StoredTurn, TellingTurn, find_telling_turns, store_turns
from memory.ingest.turns.leasing import ConversationLease, bury, leased_conversation
from memory.ingest.turns.summing_up import as_said, link_turns, sum_up, talk_of, when_quiet
from memory.ingest.turns.waking import look_again
from memory.llm.budget import DailyCapReached, LeaseLost, MustWait, OutOfBudget
from memory.llm.model import FailureKind
from memory.maintenance.due import note_extraction
from memory.models import Conversation, Episode, PauseReason, Turn

log = structlog.get_logger(__name__)

_MOST_DOUBLINGS = 6

# By how the text of a failure begins.
_RESTS: dict[str, PauseReason] = {FailureKind.AUTH: PauseReason.AUTH, FailureKind.BILLING: PauseReason.BILLING}


class _Overtaken(Exception):
    """Somebody else reads the conversation, or it is gone: nothing of this reading is stored."""


def extract_conversation(*, conversation_id: int, now: datetime) -> bool:
    """Read the turns of a conversation that is due; false where there is nothing to do, or they wait on."""
    conversation = Conversation.objects.select_related("workspace").filter(pk=conversation_id).first()
    if conversation is None or find_pause(workspace=conversation.workspace):
        return False
    is_read = _read(conversation_id, now)
    sum_up(conversation_id=conversation_id, now=now)
    return is_read


def _read(conversation_id: int, now: datetime) -> bool:
    with leased_conversation(conversation_id=conversation_id, now=now) as lease:
        if lease is None:
            return False
        said = [as_said(turn) for turn in lease.turns]
        found = _ask(lease, said)
        if found is None:
            return False
        telling, broken = find_telling_turns(found=found, turns=said, user=lease.conversation.user)
        return _settle(lease, replace(found, broken=(*found.broken, *broken.items())), telling, now)


def _ask(lease: ConversationLease, said: Sequence[SaidTurn]) -> FactsFound | None:
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
    except MustWait as wait:
        lease.give_back(reason="a model server asked to wait", seconds=wait.seconds)
    except DailyCapReached as spent:
        lease.give_back(reason=str(spent), seconds=settings.POLICY.turns.cap_minutes * 60)
    except OutOfBudget as spent:
        _stop(lease, str(spent))
    except LeaseLost:
        lease.is_over = True
    else:
        return None if _is_hopeless(lease, found) else found
    return None


def _is_hopeless(lease: ConversationLease, found: FactsFound) -> bool:
    """Let the workspace rest where a server refuses the key or the account: the turns are not to blame."""
    reason = _RESTS.get(found.failure.partition(":")[0])
    if reason is None:
        return False
    with transaction.atomic():
        rest_workspace(
            workspace_id=lease.conversation.workspace_id,
            reason=reason,
            detail=found.failure,
            conversation=lease.conversation.pk,
        )
    lease.give_back(reason=found.failure)
    return True


def _stop(lease: ConversationLease, reason: str) -> None:
    """Have turns wait that took all the time: a server that stalls is not asked again at once, nor for ever."""
    if is_ending():
        lease.give_back(reason=reason)
    else:
        lease.release(**_failed(lease, reason))


def _settle(lease: ConversationLease, found: FactsFound, telling: Sequence[TellingTurn], now: datetime) -> bool:
    """Store the turns that say something and be done with all; those left unread wait on, and the failure counts.

    Locked are episodes, the conversation, its turns, in this order, as by whoever erases; and whoever sends turns
    meanwhile does not wait for the storing of episodes.
    """
    read = [turn for turn in lease.turns if turn.number not in found.unread]
    talk, arrival = talk_of(lease.conversation), Arrival(workspace=lease.conversation.workspace, now=now, actor=READING)
    try:
        with transaction.atomic():
            stored = store_turns(telling=telling, talk=talk, arrival=arrival) if read else []
            _hold_told(stored)
            _release(lease, found, read, now)
            _link(stored, lease.turns)
            _settle_turns(read, now)
            _bury_broken(lease.turns, found, now)
            _note_refused(lease, stored)
            Turn.objects.filter(conversation=lease.conversation, number__in=found.unread).update(
                state_reason=found.failure[:200]
            )
            look_again(conversation_id=lease.conversation.pk)
    except _Overtaken:
        lease.is_over = True
        log.warning("conversation_overtaken", conversation=lease.conversation.pk)
        return False
    if read:
        note_extraction(workspace_id=lease.conversation.workspace_id)
    log.info(
        "turns_read", conversation=lease.conversation.pk, turns=len(read), facts=len(found.facts), episodes=len(stored)
    )
    return not found.unread


def _hold_told(stored: Sequence[StoredTurn]) -> None:
    """Lock the episodes that turns became, or were before, until the transaction ends; raise _Overtaken if one is gone.

    Links lock what they lead to, and the conversation comes after that.
    """
    told = {one.outcome.id for one in stored if isinstance(one.outcome, Stored)}
    held = Episode.objects.select_for_update(no_key=True).filter(pk__in=told).order_by("pk")
    if set(held.values_list("pk", flat=True)) != told:
        raise _Overtaken


def _bury_broken(turns: Sequence[Turn], found: FactsFound, now: datetime) -> None:
    """Make dead letters of the turns over which our own code broke; those beside them were read (E6)."""
    for number, reason in found.broken:
        bury(turns=[turn for turn in turns if turn.number == number], reason=reason, now=now)


def _settle_turns(read: Sequence[Turn], now: datetime) -> None:
    """Be done with turns that were read."""
    Turn.objects.filter(pk__in=[turn.pk for turn in read]).update(
        state=TurnState.EXTRACTED, state_reason="", settled_at=now
    )


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


def _release(lease: ConversationLease, found: FactsFound, read: Sequence[Turn], now: datetime) -> None:
    """Give the lease back, which locks the conversation; raise _Overtaken unless it still holds, with all its turns."""
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
    if not lease.release(**columns) or standing.count() < len(lease.turns):
        raise _Overtaken


_DONE: dict[str, Any] = {"claims": 0, "state_reason": "", "not_before": None}


def _failed(lease: ConversationLease, reason: str) -> dict[str, Any]:
    """Have the turns wait ever longer with each failure."""
    seconds = budget_policy().cooldown_minutes * 60 * 2 ** min(lease.conversation.claims, _MOST_DOUBLINGS)
    return {"state_reason": reason[:200], "not_before": database_now(plus=seconds)}
