"""When a conversation is stored and read: once its buffer is due by size, signal, age, surprise or a person's wish.

`wake_conversations` tells workers of those that are due; `flush_surprising` has buffers read early whose turns are
far from all that is remembered (L2); `retry_dead_turns` has dead letters read again (B11).
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from memory.consolidation.cycle import database_now, find_paused_workspaces
from memory.domain.lifecycle import OWN_ERRORS, DueReason, TurnState, is_surprising, why_due
from memory.domain.policy_memories import TurnsPolicy
from memory.domain.taxonomy import Role
from memory.language.explicit_requests import Signal
from memory.language.sentences import strip_echo
from memory.llm.embeddings import embedder_of
from memory.llm.types import Embedder
from memory.models import Conversation, Turn, Workspace
from memory.search.vectors import nearest_episode_cosines
from memory.signals import turns_due

log = structlog.get_logger(__name__)
_MOST = 1_000  # conversations that one sweep wakes
_TOO_SHORT = 0.0  # what so few words say surprises nobody


def wake_conversations(*, now: datetime) -> int:
    """Wake what is due and nobody was told of lately; return how many those are.

    Turns are stored while their workspace rests, too; summaries, for which a model is asked, wait.
    """
    _mark_aged(now)
    told = Q(sent_at__gt=database_now(plus=-_policy().resend_seconds))
    with transaction.atomic():
        paused = find_paused_workspaces(workspaces=Workspace.objects.filter(pause__isnull=False))
        only_summed_up = Q(workspace__in=paused, due_since=None, leased=0)
        free = Conversation.objects.wanted().free().exclude(told).exclude(only_summed_up)
        locked = free.select_for_update(no_key=True, skip_locked=True, of=("self",)).order_by("pk")
        ids = list(locked.values_list("pk", flat=True)[:_MOST])
        if ids:
            notify_workers(ids=ids)
            log.info("conversations_woken", conversations=ids)
    return len(ids)


def mark_due(*, conversations: QuerySet[Conversation], reason: DueReason) -> int:
    """Have conversations read that nobody has told workers of; return how many."""
    waiting = conversations.filter(due_since=None, buffered__gt=0)
    return waiting.update(due_since=Now(), due_reason=reason)


def recheck_conversation(*, conversation_id: int) -> None:
    """Count what waits of a conversation that the caller holds; if it is due, or became so meanwhile, tell workers."""
    counts = count_waiting_turns(conversation_id=conversation_id)
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
        mark_due(conversations=rows, reason=due)
    if rows.filter(due_since__isnull=False, leased=0).exists():
        notify_workers(ids=[conversation_id])


def count_waiting_turns(*, conversation_id: int) -> dict[str, int]:
    """Count the turns that wait and that are being read; the caller holds the conversation."""
    states = {"buffered": TurnState.BUFFERED, "leased": TurnState.LEASED}
    waiting = Turn.objects.waiting().filter(conversation=conversation_id).order_by()
    found: dict[str, int] = waiting.aggregate(
        **{name: Count("pk", filter=Q(state=state)) for name, state in states.items()}
    )
    return found


def _mark_aged(now: datetime) -> None:
    """L2: what waits longer than the age valve is due, wherever no further turn comes."""
    since = now - timedelta(minutes=_policy().age_minutes)
    waiting = Conversation.objects.filter(buffered__gt=0, due_since=None, leased=0)
    aged = waiting.annotate(began=Coalesce("extracted_at", "created_at")).filter(began__lte=since)
    mark_due(conversations=aged, reason=DueReason.AGE)


def notify_workers(*, ids: Sequence[int]) -> None:
    """Have some conversations read once the transaction is committed."""
    Conversation.objects.filter(pk__in=ids).update(sent_at=Now())
    turns_due.send(sender=Conversation, conversation_ids=list(ids))


def _policy() -> TurnsPolicy:
    policy: TurnsPolicy = settings.POLICY.turns
    return policy


def flush_surprising() -> int:
    """Compare what users said and nobody has read yet with what is remembered; return how many turns surprise."""
    policy = _policy()
    models = _local_models()
    waiting = Turn.objects.filter(
        workspace__in=models, state=TurnState.BUFFERED, surprise=None, role=Role.USER, conversation__due_since=None
    ).select_related("conversation")
    turns = list(waiting.order_by("workspace", "pk")[: policy.surprise_turns])
    ends_at = time.monotonic() + policy.surprise_seconds
    surprising: list[Turn] = []
    for workspace_id, theirs in groupby(turns, key=lambda turn: turn.workspace_id):
        surprising += _measure_surprise(list(theirs), models[workspace_id], ends_at=ends_at)
    mark_due(
        conversations=Conversation.objects.filter(pk__in={turn.conversation_id for turn in surprising}),
        reason=DueReason.SURPRISE,
    )
    return len(surprising)


def _local_models() -> dict[int, Embedder]:
    """Return the models of this machine by the workspaces in which turns wait.

    Turns that a server would have to be asked about are never marked: looked at with the others, they would take the
    places of those for good.
    """
    waiting = Conversation.objects.filter(buffered__gt=0, due_since=None).values("workspace")
    models = {workspace.pk: embedder_of(workspace) for workspace in Workspace.objects.filter(pk__in=waiting)}
    return {workspace_id: model for workspace_id, model in models.items() if model.is_local}


def _measure_surprise(turns: Sequence[Turn], model: Embedder, *, ends_at: float) -> list[Turn]:
    """Note how surprising turns are, for as long as there is time; return those that are."""
    policy, found = _policy(), []
    for turn in turns:
        if time.monotonic() > ends_at:
            break
        surprise = _surprise_or_zero(turn, model, policy)
        Turn.objects.filter(pk=turn.pk).update(surprise=surprise)
        if is_surprising(surprise=surprise, policy=policy):
            found.append(turn)
    return found


def _surprise_or_zero(turn: Turn, model: Embedder, policy: TurnsPolicy) -> float:
    """Weigh a turn; one that breaks our own code surprises nobody, and holds nobody up (E6)."""
    try:
        return _surprise_of(turn, model, policy)
    except OWN_ERRORS:
        log.exception("surprise_not_weighed", turn=turn.pk, workspace=turn.workspace_id)
        return _TOO_SHORT


def _surprise_of(turn: Turn, model: Embedder, policy: TurnsPolicy) -> float:
    """Return 1 − the mean similarity of what is nearest; where nothing is remembered, nothing surprises."""
    matter = strip_echo(turn.content, turn.speaker)
    if len(matter.split()) < policy.surprise_words:
        return _TOO_SHORT
    cosines = nearest_episode_cosines(
        workspace_id=turn.workspace_id,
        model=model.name,
        user=turn.conversation.user,
        project_id=turn.conversation.project_id,
        vector=model.embed([matter])[0],
        count=policy.surprise_neighbours,
    )
    return 1.0 - float(np.mean(model.profile.reference(np.array(cosines)))) if cosines else _TOO_SHORT


def list_dead_turns(*, workspace_id: int) -> QuerySet[Turn]:
    """Return a workspace's turns that are dead letters, the newest first."""
    return Turn.objects.for_workspace(workspace_id).dead().select_related("conversation").order_by("-settled_at", "pk")


@transaction.atomic
def retry_dead_turns(*, turns: QuerySet[Turn]) -> int:
    """Have the dead letters among some turns read again as if they had never failed; return how many."""
    dead = Turn.objects.dead().filter(pk__in=turns.order_by().values("pk"))
    conversations = Conversation.objects.filter(pk__in=dead.values("conversation")).order_by("pk")
    held = list(conversations.select_for_update(no_key=True).values_list("pk", flat=True))
    retried = dead.update(state=TurnState.BUFFERED, state_reason="", settled_at=None)
    for conversation_id in held:
        one = Conversation.objects.filter(pk=conversation_id)
        one.update(**count_waiting_turns(conversation_id=conversation_id))
        mark_due(conversations=one, reason=DueReason.PERSON)
    notify_workers(ids=held)
    return retried
