"""What is to be erased or forgotten is locked, in the order that everybody keeps: episodes, then conversations."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from memory.domain.content_hash import holds_words
from memory.models import Conversation, Episode, TurnEpisode


@dataclass(frozen=True, slots=True, kw_only=True)
class DoomedEpisode:
    """An episode that goes: what has to be known of it afterwards."""

    id: str
    user: str
    content_hash: str
    session: str
    is_derived: bool
    is_named: bool  # by who wants it gone; otherwise it only tells what does

    @property
    def takes_turns(self) -> bool:
        """Tell whether the turns go that it came of: a summary that is pulled along leaves its other turns."""
        return self.is_named or not self.is_derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """What goes, locked until the transaction ends."""

    episodes: Sequence[DoomedEpisode]
    conversations: Collection[int]  # those that were named, and those that the episodes came of


class _Grown(Exception):
    """Somebody stored more of it while the conversations were waited for."""


def hold_doomed(
    *, episodes: QuerySet[Episode], conversations: QuerySet[Conversation] | None = None, with_repeats: bool = False
) -> Doomed:  # fmt: skip
    """Lock episodes with all that tells the same, and then conversations: named ones, and those they came of.

    With repeats: and other turns of these conversations that hold the words of one.

    Nobody refers to an episode any more: a recall that would note its use waits, and finds none. Whoever reads a
    conversation finds it gone, and stores nothing. What was stored before that, while a conversation was waited for,
    has its locks taken anew, in their order: those taken before are given back.
    """
    named = Conversation.objects.none() if conversations is None else conversations
    while True:
        with suppress(_Grown), transaction.atomic():
            going = _going(episodes, with_repeats=with_repeats)
            around = going | _beside(_conversations(going, named))
            doomed = [one for one in _hold_episodes(around, named=_ids_of(episodes)) if one.id in going]
            held = _hold_conversations(_conversations(going, named))
            if _going(episodes, with_repeats=with_repeats) - going or _beside(held) - around:
                raise _Grown
            return Doomed(episodes=doomed, conversations=held)


def _going(episodes: QuerySet[Episode], *, with_repeats: bool) -> set[str]:
    told = _ids_of(with_retellings(episodes=episodes))
    if not with_repeats:
        return told
    return told | _ids_of(with_retellings(episodes=Episode.objects.filter(pk__in=_repeats_of(told))))


def _repeats_of(ids: Collection[str]) -> set[str]:
    """Find the turns, as episodes, that hold all the words of one that was said in their conversation; not of a few."""
    fewest, found = settings.POLICY.turns.erased_words, set[str]()
    own = TurnEpisode.objects.filter(is_verbatim=True)
    said = own.filter(episode__in=ids).values_list("turn__conversation", "episode__text").distinct()
    for conversation, text in said:
        if len(text.split()) >= fewest:
            others = own.filter(turn__conversation=conversation).exclude(episode__in=ids)
            rows = others.values_list("episode", "episode__text").distinct()
            found |= {key for key, other in rows if holds_words(text=other, said=text)}
    return found


def with_retellings(*, episodes: QuerySet[Episode]) -> QuerySet[Episode]:
    """Return episodes with those merged into them, and with the summaries of the turns that all these came of."""
    named = episodes.order_by().values("pk")
    merged = Episode.objects.filter(merged_into__in=named).values("pk")
    turns = TurnEpisode.objects.filter(Q(episode__in=named) | Q(episode__in=merged)).values("turn")
    derived = Episode.objects.filter(is_derived=True, turns__in=turns).values("pk")
    return Episode.objects.filter(Q(pk__in=named) | Q(pk__in=merged) | Q(pk__in=derived))


def _ids_of(episodes: QuerySet[Episode]) -> set[str]:
    return set(episodes.order_by().values_list("pk", flat=True))


def _conversations(episodes: Collection[str], named: QuerySet[Conversation]) -> set[int]:
    """Find the conversations that are named, and those that some episodes came of."""
    read = TurnEpisode.objects.filter(episode__in=episodes).values("turn__conversation")
    found = Conversation.objects.filter(Q(pk__in=read) | Q(pk__in=named.values("pk")))
    return set(found.values_list("pk", flat=True))


def _beside(conversations: Collection[int]) -> set[str]:
    """Find the facts of some conversations that keep exact words, which may be those of a turn that goes."""
    return _ids_of(Episode.objects.filter(turns__conversation__in=conversations).exclude(verbatim="").distinct())


def _hold_episodes(ids: Collection[str], *, named: Collection[str]) -> list[DoomedEpisode]:
    """Lock episodes in one statement: in a second one the ids would begin anew, and the order with them."""
    rows = Episode.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    found = rows.values("id", "user", "content_hash", "session", "is_derived")
    return [DoomedEpisode(**row, is_named=row["id"] in named) for row in found]


def _hold_conversations(ids: Collection[int]) -> list[int]:
    held = Conversation.objects.select_for_update().filter(pk__in=ids)
    return list(held.order_by("pk").values_list("pk", flat=True))
