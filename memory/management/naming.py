"""Memories as a command line names them: by an id, or by the beginning of one that no other has."""

import re

from memory.access import AmbiguousId, find_by_prefix
from memory.domain.ids import IdKind, beginning_pattern, is_episode_id
from memory.management.failures import usage_error
from memory.models import Belief, Episode

_ID = re.compile(beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, fewest=0))
_NAMED = 5  # that an ambiguous beginning is told to fit


def named_memory(text: str) -> Episode | Belief:
    """Find the one memory whose id begins so."""
    if not _ID.fullmatch(text):
        raise usage_error(f"{text!r} names no memory: ep_… or bl_… is expected.")
    try:
        memory = _find(text)
    except AmbiguousId as several:
        more = " and more" if len(several.ids) > _NAMED else ""
        raise usage_error(f"{text} fits several: {', '.join(several.ids[:_NAMED])}{more}.") from None
    if memory is None:
        raise usage_error(f"There is no {text}.")
    return memory


def _find(text: str) -> Episode | Belief | None:
    if is_episode_id(text):
        return find_by_prefix(among=Episode._default_manager.all(), beginning=text)
    return find_by_prefix(among=Belief._default_manager.all(), beginning=text)
