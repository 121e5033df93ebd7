"""What was said, turn by turn, goes with what was read out of it."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.forgetting.scrubbing import scrub_calls
from memory.models import Conversation, Episode, ModelCall, Turn, TurnEpisode, Workspace


def erase_conversations(*, conversations: QuerySet[Conversation]) -> None:
    """Delete conversations with all their turns; of the calls that saw these nothing but the cost is left.

    They are locked first: who reads one of them right now finds it gone, and stores nothing.
    """
    ids = list(conversations.select_for_update().order_by("pk").values_list("pk", flat=True))
    scrub_calls(calls=ModelCall.objects.filter(conversation__in=ids).values_list("pk", flat=True))
    _delete(ids)


def with_summaries(*, episodes: QuerySet[Episode]) -> QuerySet[Episode]:
    """Return episodes with the summaries of what they were read out of, which may quote it."""
    turns = TurnEpisode.objects.filter(episode__in=episodes.order_by().values("pk")).values("turn")
    derived = Episode.objects.filter(is_derived=True, turns__in=turns).values("pk")
    return Episode.objects.filter(Q(pk__in=episodes.order_by().values("pk")) | Q(pk__in=derived))


def erase_turns(*, workspace: Workspace, episodes: Collection[str]) -> None:
    """Delete the turns that some episodes were read out of, and the conversations of which no turn is left."""
    told = TurnEpisode.objects.for_workspace(workspace.pk).filter(episode__in=episodes)
    ids = set(told.values_list("turn__conversation_id", flat=True))
    held = list(Conversation.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk", flat=True))
    turns = list(told.values_list("turn_id", flat=True))
    Episode.objects.filter(turns__in=turns).exclude(verbatim="").update(verbatim="")  # the words of the whole turn
    TurnEpisode.objects.filter(turn__in=turns).delete()
    Turn.objects.filter(pk__in=turns).delete()
    left = Exists(Turn.objects.filter(conversation=OuterRef("pk")))
    _delete(list(Conversation.objects.filter(~left, pk__in=held).values_list("pk", flat=True)))


def _delete(ids: Collection[int]) -> None:
    TurnEpisode.objects.filter(turn__conversation__in=ids).delete()
    Turn.objects.filter(conversation__in=ids).delete()
    Conversation.objects.filter(pk__in=ids).delete()
