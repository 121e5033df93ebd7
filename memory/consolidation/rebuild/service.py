"""Beliefs are made again from what was recorded, aside; only what differs from how they stand is written (B22)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import transaction

from memory.consolidation.rebuild.acts import read_acts
from memory.consolidation.rebuild.record import Record, read_record
from memory.consolidation.rebuild.repair import decide_anew, give_up, repair
from memory.consolidation.rebuild.replay import replay
from memory.consolidation.rebuild.stock import Difference, Stock, compare, take_stock
from memory.ledger.transactions import lock_workspace
from memory.models import Belief, Cycle, StructuralJob, Workspace

log = structlog.get_logger(__name__)


class CycleIsOpen(ValueError):
    """Beliefs are neither rebuilt nor erased while a cycle works on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What came of replaying the recorded cycles."""

    beliefs: int  # that recorded cycles made
    cycles: int
    evidence: int  # rows of these beliefs that count
    differences: list[Difference]
    released: int = 0  # episodes that wait for consolidation again
    decided_anew: int = 0  # structural changes left to the next cycle


@transaction.atomic
def rebuild_beliefs(
    *,
    workspace: Workspace,
    now: datetime,
    is_dry_run: bool = False,
    on_cycle: Callable[[int], object] = lambda total: None,
) -> Rebuilt:
    """Make a workspace's beliefs again from its recorded cycles and write what differs; no model is asked.

    A dry run writes nothing. `on_cycle` hears after each cycle of how many there are. Raise CycleIsOpen while one is.
    """
    _hold_still(workspace)
    record = read_record(workspace=workspace)
    stands = take_stock(beliefs=record.made.keys() | record.others)
    recorded, unrepeated = _replay_aside(record, on_cycle)
    tombstones = Belief.objects.for_workspace(workspace.pk).tombstones().values_list("pk", flat=True)
    differences = compare(stands=stands, recorded=recorded, tombstones=set(tombstones))
    released = decided_anew = 0
    if differences and not is_dry_run:
        repair(differences=differences, now=now)
        released = give_up(lost={difference.id for difference in differences if difference.is_lost}, stood=stands)
        decided_anew = decide_anew(unrepeated=unrepeated)
        log.info("beliefs_rebuilt", workspace=workspace.pk, differences=len(differences), released=released)
    return Rebuilt(
        beliefs=len(record.made),
        cycles=len(record.cycles),
        evidence=len(stands.evidence),
        differences=differences,
        released=released,
        decided_anew=decided_anew,
    )


def rebuild_some(
    *, workspace: Workspace, beliefs: Collection[str], fallen: Sequence[StructuralJob], now: datetime
) -> frozenset[str]:
    """Let some beliefs alone stand as the record has it that is left after a loss; return those that did not.

    Changes of structure that fell with the loss, and those that cannot be repeated, are left to the next cycle.
    """
    if not beliefs:
        return frozenset()
    _hold_still(workspace)
    record = read_record(workspace=workspace)
    stands = take_stock(beliefs=record.made.keys() | record.others)
    recorded, unrepeated = _replay_aside(record, lambda total: None)
    tombstones = Belief.objects.for_workspace(workspace.pk).tombstones().values_list("pk", flat=True)
    found = compare(stands=stands, recorded=recorded, tombstones=set(tombstones))
    differences = [difference for difference in found if difference.id in beliefs]
    repair(differences=differences, now=now, is_due=True)
    give_up(lost={difference.id for difference in differences if difference.is_lost}, stood=stands)
    decide_anew(unrepeated=[*fallen, *(job for job in unrepeated if job.belief_id in beliefs)])
    return frozenset(difference.id for difference in differences)


def check_no_cycle_open(*, workspace: Workspace) -> None:
    """Raise CycleIsOpen while a cycle of the workspace is; the caller holds the workspace's lock."""
    under_way = Cycle.objects.for_workspace(workspace.pk).open().first()
    if under_way is not None:
        raise CycleIsOpen(f"Cycle {under_way.pk} is {under_way.state}; wait for it to end, or cancel it.")


def _hold_still(workspace: Workspace) -> None:
    """Keep cycles, gates and curators from the workspace's beliefs until the transaction ends."""
    lock_workspace(workspace.pk)
    check_no_cycle_open(workspace=workspace)
    locked = Belief.objects.for_workspace(workspace.pk).select_for_update(no_key=True).order_by("pk")
    list(locked.values_list("pk"))


def _replay_aside(record: Record, on_cycle: Callable[[int], object]) -> tuple[Stock, list[StructuralJob]]:
    """Replay, look at what came of it, and let all be as it was."""
    acts = read_acts(record=record)
    aside = transaction.savepoint()
    try:
        unrepeated = replay(record=record, acts=acts, on_cycle=lambda: on_cycle(len(record.cycles)))
        return take_stock(beliefs=record.made.keys() | record.others), unrepeated
    finally:
        transaction.savepoint_rollback(aside)
