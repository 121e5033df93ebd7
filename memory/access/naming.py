"""Memories named by an id, or by the beginning of one that no other has (R7)."""

from typing import TypeVar

from django.db.models import QuerySet

from memory.access.keys import grants
from memory.access.visibility import viewer_of, visible_beliefs, visible_episodes
from memory.domain.ids import is_episode_id, is_turn_id, is_whole
from memory.models import ApiKey, Belief, Episode, Permission

_FEW = 6

Memory = TypeVar("Memory", Episode, Belief)


class SeveralFit(LookupError):
    """More than one id begins so; `ids` are a few of them, which the message does not tell: not every key may read."""

    def __init__(self, *, beginning: str, ids: list[str]) -> None:
        super().__init__(f"More than one id begins with {beginning}: give more of it.")
        self.ids = ids


class NeedsWholeId(PermissionError):
    """Who may not read gave but the beginning of an id: by trying, it would find and forget what it never saw."""

    def __init__(self) -> None:
        super().__init__("A key that may not read names a memory by its whole id.")


def find_beginning(*, among: QuerySet[Memory], beginning: str) -> Memory | None:
    """Find the one memory whose id begins so, None if there is none; raise SeveralFit if there are more."""
    if is_whole(beginning):
        return among.filter(pk=beginning).first()
    found = list(among.filter(pk__startswith=beginning).order_by("pk")[:_FEW])
    if len(found) > 1:
        raise SeveralFit(beginning=beginning, ids=[one.pk for one in found])
    return found[0] if found else None


def whole_id(*, name: str, key: ApiKey) -> str:
    """Return the id that begins so among what a key may see, the beginning itself where there is none.

    A turn, which soon has another id, is named by its whole one. Raises SeveralFit, and NeedsWholeId for a key that may
    not read.
    """
    if is_whole(name) or is_turn_id(name):
        return name
    if not grants(key=key, permission=Permission.READ):
        raise NeedsWholeId
    viewer = viewer_of(key=key)
    found: Episode | Belief | None
    if is_episode_id(name):
        found = find_beginning(among=visible_episodes(viewer=viewer).only("pk"), beginning=name)
    else:
        found = find_beginning(among=visible_beliefs(viewer=viewer).only("pk"), beginning=name)
    return found.pk if found else name
