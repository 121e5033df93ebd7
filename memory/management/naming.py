"""Memories as a command line names them: by an id, or by the beginning of one that no other has."""

import re

from memory.domain.ids import IdKind, is_episode_id
from memory.management.failures import usage_error
from memory.models import Belief, Episode

_ID = re.compile(rf"(?:{IdKind.EPISODE}|{IdKind.BELIEF})_[0-9a-f]{{0,12}}")
_NAMED = 5  # that an ambiguous beginning is told to fit


def named_memory(text: str) -> Episode | Belief:
    """Find the one memory whose id begins so."""
    if not _ID.fullmatch(text):
        raise usage_error(f"{text!r} names no memory: ep_… or bl_… is expected.")
    model: type[Episode] | type[Belief] = Episode if is_episode_id(text) else Belief
    memories: list[Episode | Belief] = list(
        model._default_manager.filter(pk__startswith=text).order_by("pk")[: _NAMED + 1]
    )
    if not memories:
        raise usage_error(f"There is no {text}.")
    if len(memories) > 1:
        more = " and more" if len(memories) > _NAMED else ""
        raise usage_error(f"{text} fits several: {', '.join(memory.pk for memory in memories[:_NAMED])}{more}.")
    return memories[0]
