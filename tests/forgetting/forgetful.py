"""Somebody who has things forgotten, and what must hold afterwards."""

from datetime import timedelta
from typing import Any

from memory.consolidation.rebuild import rebuild_beliefs
from memory.domain.identity import Actor, ActorKind
from memory.forgetting import Forgotten, forget_belief, forget_episode
from memory.ledger.confidence import find_drift
from memory.models import Belief, Cycle, Episode
from tests.consolidation.world import World

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)


def forget(world: World, memory: Episode | Belief, **given: Any) -> Forgotten:
    """Have a memory forgotten now; no belief may drift, and a rebuilding may find nothing to do."""
    told: dict[str, Any] = {"actor": LENA, "now": world.now, "reason": "private"} | given
    if isinstance(memory, Episode):
        forgotten = forget_episode(episode=memory, **told)
    else:
        forgotten = forget_belief(belief=memory, **told)
    all_is_sound(world)
    return forgotten


def all_is_sound(world: World) -> None:
    """Assert that numbers follow from the evidence, and that beliefs stand as was recorded (B4, B22)."""
    assert find_drift(workspace=world.workspace)[1] == []
    rebuilt = rebuild_beliefs(workspace=world.workspace, now=world.now, is_dry_run=True)
    assert rebuilt.differences == []


def none_follows() -> bool:
    """Tell whether all cycles have ended, and none is to follow at once."""
    return not (Cycle.objects.open() | Cycle.objects.filter(has_backlog=True)).exists()


def episode_of(text: str) -> Episode:
    return Episode.objects.get(text=text)
