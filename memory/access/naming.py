"""Memories named by an id, or by the beginning of one that no other has (R7)."""

from typing import TypeVar

from django.db.models import QuerySet

from memory.access.visibility import Viewer, visible_beliefs, visible_episodes
from memory.domain.ids import is_episode_id, is_whole
from memory.models import Belief, Episode

_FEW = 6

Memory = TypeVar("Memory", Episode, Belief)


class SeveralFit(LookupError):
    """More than one id begins so; `ids` are a few of them, which the message does not tell: not every key may read."""

    def __init__(self, *, beginning: str, ids: list[str]) -> None:
        super().__init__(f"More than one id begins with {beginning}: give more of it.")
        self.ids = ids


def find_beginning(*, among: QuerySet[Memory], beginning: str) -> Memory | None:
    """Find the one memory whose id begins so, None if there is none; raise SeveralFit if there are more."""
    if is_whole(beginning):
        return among.filter(pk=beginning).first()
    found = list(among.filter(pk__startswith=beginning).order_by("pk")[:_FEW])
    if len(found) > 1:
        raise SeveralFit(beginning=beginning, ids=[one.pk for one in found])
    return found[0] if found else None


def whole_id(*, name: str, viewer: Viewer) -> str:
    """Return the id that begins so among what a viewer may see, the beginning itself where there is none."""
    if is_whole(name):
        return name
    found: Episode | Belief | None
    if is_episode_id(name):
        found = find_beginning(among=visible_episodes(viewer=viewer).only("pk"), beginning=name)
    else:
        found = find_beginning(among=visible_beliefs(viewer=viewer).only("pk"), beginning=name)
    return found.pk if found else name
