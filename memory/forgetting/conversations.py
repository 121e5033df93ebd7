"""What was said, turn by turn, goes with what came of it."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memory.domain.buffering import TurnState
from memory.domain.grounding import turns_that_repeat
from memory.forgetting.refusing import refuse_turns_from_now_on
from memory.forgetting.scrubbing import scrub_calls
from memory.ingest.turns.summing_up import as_said
from memory.ingest.turns.waking import count_turns
from memory.ledger.transactions import NotFound
from memory.models import Conversation, Episode, ModelCall, Turn, TurnEpisode, Workspace


class TurnIsRead(RuntimeError):
    """A turn that was read, or is being read, cannot be forgotten by itself: what came of it can."""


_FORGETTABLE = (TurnState.BUFFERED, TurnState.FAILED, TurnState.ECHO)


@transaction.atomic
def forget_unread_turn(*, turn: Turn) -> None:
    """Delete a turn that became nothing, and refuse it when it comes again; raise TurnIsRead for any other.

    It may have been taken up and put back: of the calls that saw its conversation nothing but the cost is left. Raise
    Gone for one that was erased since it was looked up.
    """
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=turn.conversation_id).first()
    found = Turn.objects.filter(pk=turn.pk).first()
    if held is None or found is None:
        raise NotFound("There is no such turn any more.")
    unread = Turn.objects.filter(pk=turn.pk, state__in=_FORGETTABLE, episodes=None)
    if not unread.exists():
        raise TurnIsRead("This turn does not wait any more: see what it became, and forget that.")
    scrub_calls(calls=ModelCall.objects.filter(conversation=held).values_list("pk", flat=True))
    _delete_turns(turn.workspace, Turn.objects.filter(pk=turn.pk))
    if Turn.objects.filter(conversation=held).exists():
        _recount([held.pk])
    else:
        held.delete()


def erase_conversations(*, workspace: Workspace, conversations: Collection[int]) -> int:
    """Delete conversations that the caller holds, with all their turns; return how many these were.

    Of the calls that saw them nothing but the cost is left.
    """
    scrub_calls(calls=ModelCall.objects.filter(conversation__in=conversations).values_list("pk", flat=True))
    gone = _delete_turns(workspace, Turn.objects.filter(conversation__in=conversations))
    Conversation.objects.filter(pk__in=conversations).delete()
    return gone


def erase_turns(*, workspace: Workspace, episodes: Collection[str], conversations: Collection[int]) -> int:
    """Delete the turns that some episodes came of, and the conversations of which no turn is left.

    The caller holds these conversations. Other turns of theirs that hold all of an episode's words go as well, unless
    they are episodes of their own. Return how many turns went.
    """
    told = TurnEpisode.objects.filter(episode__in=episodes, turn__conversation__in=conversations)
    turns = set(told.values_list("turn_id", flat=True)) | _repeating(conversations, episodes)
    Episode.objects.filter(turns__in=turns).exclude(verbatim="").update(verbatim="")  # the words of the whole turn
    gone = _delete_turns(workspace, Turn.objects.filter(pk__in=turns))
    left = Exists(Turn.objects.filter(conversation=OuterRef("pk")))
    Conversation.objects.filter(~left, pk__in=conversations).delete()
    _recount(conversations)
    return gone


def _repeating(conversations: Collection[int], episodes: Collection[str]) -> set[int]:
    """Find the turns of some conversations that hold all the words of an episode that came of one of them."""
    own = TurnEpisode.objects.filter(turn__conversation__in=conversations, is_verbatim=True)
    standing = set(own.exclude(episode__in=episodes).values_list("turn_id", flat=True))
    found: set[int] = set()
    for key in conversations:
        told = Episode.objects.filter(pk__in=episodes, turns__conversation=key).distinct()
        turns = {turn.number: turn for turn in Turn.objects.filter(conversation=key)}
        texts = list(told.values_list("text", flat=True))
        repeating = turns_that_repeat(texts=texts, turns=[as_said(turn) for turn in turns.values()])
        found |= {turns[one.number].pk for one in repeating}
    return found - standing


def _recount(conversations: Collection[int]) -> None:
    """Count anew what waits: turns that nobody has read yet may be gone."""
    for key in conversations:
        counts = count_turns(conversation_id=key)
        rows = Conversation.objects.filter(pk=key)
        rows.update(**counts, **({} if counts["buffered"] else {"due_since": None, "due_reason": ""}))


def _delete_turns(workspace: Workspace, turns: QuerySet[Turn]) -> int:
    """Delete turns, and see that they are refused from now on (L4); return how many they were."""
    refuse_turns_from_now_on(workspace=workspace, turns=turns)
    TurnEpisode.objects.filter(turn__in=turns.values("pk")).delete()
    gone, _ = turns.delete()
    return gone
