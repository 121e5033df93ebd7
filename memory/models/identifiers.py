"""Ids are drawn by chance, and kept so that they sort by bytes."""

import secrets
from typing import Any

from django.db import models

from memory.domain.ids import IdKind


def draw_id(kind: IdKind) -> str:
    """Draw a new id such as `ep_3f9a1c0b77de`."""
    return f"{kind}_{secrets.token_hex(6)}"


def new_episode_id() -> str:
    return draw_id(IdKind.EPISODE)


def new_belief_id() -> str:
    return draw_id(IdKind.BELIEF)


def new_cycle_id() -> str:
    return draw_id(IdKind.CYCLE)


class IdField(models.CharField[str, str]):
    """Primary key of at most 15 characters, sorted by bytes so that locks are taken in one order everywhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(primary_key=True, max_length=15, db_collation="C", editable=False)
        super().__init__(*args, **kwargs)


def draw_unused_id(kind: IdKind, model: type[models.Model]) -> str:
    """Draw an id that no row has; ids are never reused, so one that collides is drawn again."""
    drawn = draw_id(kind)
    while model._default_manager.filter(pk=drawn).exists():
        drawn = draw_id(kind)
    return drawn
