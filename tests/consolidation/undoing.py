"""What stands before a cycle and after it was undone, to be held against each other."""

from datetime import timedelta
from typing import Any

from memory.consolidation.undo import UndoResult, undo_cycle
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, Cycle, Evidence, Lineage
from tests.consolidation.restructuring import OLD
from tests.consolidation.world import World

LENA = Actor(kind=ActorKind.PERSON, name="lena")
TOMA = Actor(kind=ActorKind.PERSON, name="toma")

_COLUMNS = (
    "statement", "subject", "predicate", "context", "timeframe", "scope", "status", "status_reason", "alpha", "beta",
    "additive_confidence", "evidence_count", "peak_confidence", "storage_strength", "prediction_error",
    "last_reinforced_at", "archive_due_at", "lineage_depth", "is_pinned", "embedding__is_active",
)  # fmt: skip

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

_KILNS = [f"Potter's log {n}: the kiln burnt for 5 hours." for n in range(1, 4)]

Snapshot = dict[str, tuple[dict[str, Any], list[Any], list[Any]]]


def snapshot(world: World) -> Snapshot:
    """Return what is believed, on what evidence and out of what, by belief."""
    beliefs = Belief.objects.filter(workspace=world.workspace).order_by("pk")
    return {row["pk"]: (row, _evidence(row["pk"]), _lineage(row["pk"])) for row in beliefs.values("pk", *_COLUMNS)}


def _evidence(belief: str) -> list[Any]:
    rows = Evidence.objects.filter(belief=belief).order_by("episode_id")
    return list(rows.values_list("episode_id", "verdict", "base_weight", "is_founding", "basis", "cycle_id"))


def _lineage(belief: str) -> list[Any]:
    return list(Lineage.objects.filter(child=belief).order_by("pk").values_list("parent_id", "kind", "cycle_id"))


def kept(world: World, before: Snapshot) -> Snapshot:
    """Return today's snapshot of the beliefs that an older one has, having seen that no other one is left alive."""
    today = snapshot(world)
    others = {key: row["status"] for key, (row, _, _) in today.items() if key not in before}
    assert set(others.values()) <= {BeliefStatus.INVALIDATED.value}
    assert not Evidence.objects.filter(belief__in=others).exists()
    return {key: today[key] for key in before}


def undo(world: World, cycle: Cycle, *, actor: Actor = LENA) -> UndoResult:
    """Undo a cycle now, and assert what must hold afterwards whatever it did."""
    undone = undo_cycle(cycle_id=cycle.pk, actor=actor, now=world.now, reason="it was a test")
    world.check(undone.cycle)
    return undone


def created(world: World) -> Cycle:
    """Run a cycle that founds a belief."""
    world.statements["kiln"] = OLD
    world.directions.place(OLD, {"kiln": 1.0})
    world.say_all(_KILNS, about="kiln")
    return world.cycle()


def reinforced(world: World) -> Cycle:
    """Run a cycle that gives the one belief one support more."""
    world.say(f"Potter's log {len(world.verdicts)}: 5 hours again.", about="kiln", likeness=0.8)
    return world.cycle(after=DAY)
