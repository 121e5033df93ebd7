"""Turns that could not be read too often: they wait for a person, who sees why and may have them read again (B11)."""

from django.db import transaction
from django.db.models import QuerySet

from memory.domain.buffering import DueReason, TurnState
from memory.ingest.turns.waking import count_turns, make_due, tell_workers
from memory.models import Conversation, Turn


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
        one.update(**count_turns(conversation_id=conversation_id))
        make_due(conversations=one, reason=DueReason.PERSON)
    tell_workers(ids=held)
    return retried
