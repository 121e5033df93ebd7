"""Which conversations want a worker: those that became due, by age too, and those whose worker or message was lost."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from memory.consolidation.clock import database_now
from memory.consolidation.pausing import resting_among
from memory.domain.buffering import DueReason, TurnState, why_due
from memory.domain.policy import TurnsPolicy
from memory.domain.signals import Signal
from memory.models import Conversation, Turn, Workspace
from memory.signals import turns_due

log = structlog.get_logger(__name__)

_MOST = 1_000  # conversations that one sweep wakes


def wake_conversations(*, now: datetime) -> int:
    """Wake what is due, of workspaces that do not rest, and nobody was told of lately; return how many those are."""
    _note_aged(now)
    told = Q(sent_at__gt=database_now(plus=-_policy().resend_seconds))
    with transaction.atomic():
        free = Conversation.objects.wanted().free().exclude(told).exclude(workspace__in=_resting())
        locked = free.select_for_update(no_key=True, skip_locked=True, of=("self",)).order_by("pk")
        ids = list(locked.values_list("pk", flat=True)[:_MOST])
        if ids:
            tell_workers(ids=ids)
            log.info("conversations_woken", conversations=ids)
    return len(ids)


def make_due(*, conversations: QuerySet[Conversation], reason: DueReason) -> int:
    """Have conversations read that nobody has told workers of; return how many."""
    waiting = conversations.filter(due_since=None, buffered__gt=0)
    return waiting.update(due_since=Now(), due_reason=reason)


def look_again(*, conversation_id: int) -> None:
    """Count what waits of a conversation that the caller holds; if it is due, or became so meanwhile, tell workers."""
    counts = count_turns(conversation_id=conversation_id)
    rows = Conversation.objects.filter(pk=conversation_id)
    rows.update(**counts)
    waiting = Turn.objects.filter(conversation=conversation_id, state=TurnState.BUFFERED)
    due = why_due(
        buffered=counts["buffered"],
        has_high=waiting.filter(signal=Signal.HIGH).exists(),
        since_extraction=timedelta(0),
        policy=_policy(),
    )
    if due:
        make_due(conversations=rows, reason=due)
    if rows.filter(due_since__isnull=False, leased=0).exists():
        tell_workers(ids=[conversation_id])


def count_turns(*, conversation_id: int) -> dict[str, int]:
    """Count the turns that wait and that are being read; the caller holds the conversation."""
    states = {"buffered": TurnState.BUFFERED, "leased": TurnState.LEASED}
    waiting = Turn.objects.waiting().filter(conversation=conversation_id).order_by()
    found: dict[str, int] = waiting.aggregate(
        **{name: Count("pk", filter=Q(state=state)) for name, state in states.items()}
    )
    return found


def _note_aged(now: datetime) -> None:
    """L2: what waits longer than the age valve is due, wherever no further turn comes."""
    since = now - timedelta(minutes=_policy().age_minutes)
    waiting = Conversation.objects.filter(buffered__gt=0, due_since=None, leased=0)
    aged = waiting.annotate(began=Coalesce("extracted_at", "created_at")).filter(began__lte=since)
    make_due(conversations=aged, reason=DueReason.AGE)


def _resting() -> set[int]:
    """Find the workspaces whose turns wait until they rest no more; they are few."""
    return resting_among(workspaces=Workspace.objects.filter(pause__isnull=False))


def tell_workers(*, ids: Sequence[int]) -> None:
    """Have some conversations read once the transaction is committed."""
    Conversation.objects.filter(pk__in=ids).update(sent_at=Now())
    turns_due.send(sender=Conversation, conversation_ids=list(ids))


def _policy() -> TurnsPolicy:
    policy: TurnsPolicy = settings.POLICY.turns
    return policy
