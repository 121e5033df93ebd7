"""Public ids: a prefix that names the kind of thing, and twelve hexadecimal digits."""

import secrets
from typing import Any

from django.db import models


def draw_id(prefix: str) -> str:
    """Draw a new id such as `ep_3f9a1c0b77de`."""
    return f"{prefix}_{secrets.token_hex(6)}"


def new_episode_id() -> str:
    return draw_id("ep")


def new_belief_id() -> str:
    return draw_id("bl")


def new_cycle_id() -> str:
    return draw_id("cy")


class IdField(models.CharField[str, str]):
    """Primary key of at most 15 characters, sorted by bytes so that locks are taken in one order everywhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(primary_key=True, max_length=15, db_collation="C", editable=False)
        super().__init__(*args, **kwargs)


def draw_unused_id(prefix: str, model: type[models.Model]) -> str:
    """Draw an id that no row has; ids are never reused, so one that collides is drawn again."""
    drawn = draw_id(prefix)
    while model._default_manager.filter(pk=drawn).exists():
        drawn = draw_id(prefix)
    return drawn
