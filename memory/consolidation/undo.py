"""Undo a cycle: beliefs stand as if it had never been, and its episodes are held (B22, C4).

`undo_cycle` puts aside what evidence and lineage the cycle left, and has all beliefs made again from what is recorded
without it. What was born in it stays as an invalidated belief. `find_cycle_effects` tells what a cycle touched,
`find_dependent_cycles` who built on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from memory.consolidation.rebuild import lock_all_beliefs, stand_as_recorded
from memory.consolidation.undone import quarantine_episodes, read_again, undo_reason
from memory.domain.errors import EngramError
from memory.domain.identity import REBUILD_NAMES, Actor, ActorKind, cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, JobState, Reason
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import Author, change_status, lock_beliefs, lock_workspace
from memory.models import (
    Belief,
    BeliefEvent,
    Cycle,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    LineageKind,
    RevokedEvidence,
    RevokedLineage,
    StructuralJob,
    Transition,
)
from memory.models.cycles import UNDONE
from memory.redaction.service import redact_for

log = structlog.get_logger(__name__)
_NAMED_BELIEFS = 5  # beliefs that a refusal names of each cycle


@transaction.atomic
def undo_cycle(*, cycle_id: str, actor: Actor, now: datetime, reason: str = "") -> UndoResult:
    """Take back all that an ended cycle did; raise CannotBeUndone where that cannot be, Cycle.DoesNotExist for no id.

    Later cycles that built on it go first, the newest before the others. What a person did since stays done, but that
    nothing lives that was born in the cycle.
    """
    cycle = _lock_cycle(cycle_id)
    lock_all_beliefs(workspace=cycle.workspace)
    touched = find_cycle_effects(cycle=cycle)
    _check_no_dependent_cycles(cycle, touched)
    said = redact_for(workspace_id=cycle.workspace_id, text=reason)
    author = Author(actor=actor, reason=f"{undo_reason(cycle.pk)}: {said}".removesuffix(": "), now=now)

    held = quarantine_episodes(cycle=cycle)
    said_since = set(Evidence.objects.filter(belief__in=touched.born).values_list("episode_id", flat=True))
    evidence = _move_to_undone(Evidence.objects.filter(cycle=cycle), RevokedEvidence, now)
    _move_to_undone(Evidence.objects.filter(belief__in=touched.born), RevokedEvidence, now)
    lineage = _move_to_undone(Lineage.objects.filter(cycle=cycle), RevokedLineage, now)
    _refuse_open_jobs(cycle)
    cycle.undone_at, cycle.undone_by = now, str(actor)
    cycle.save(update_fields=["undone_at", "undone_by"])

    _invalidate(touched.born, author)
    unknown = stand_as_recorded(workspace=cycle.workspace, author=author)
    _check_recorded(cycle, touched.older & unknown)
    read_again(episodes=said_since)
    log.info("cycle_undone", cycle=cycle.pk, workspace=cycle.workspace_id, beliefs=len(touched.all), held=held)
    return UndoResult(
        cycle=cycle,
        restored=len(touched.older),
        invalidated=len(touched.born),
        evidence=evidence,
        lineage=lineage,
        held=held,
    )


def _lock_cycle(cycle_id: str) -> Cycle:
    """Hold a cycle and its workspace, in which none can open meanwhile, and see that it can be undone at all."""
    lock_workspace(Cycle.objects.values_list("workspace_id", flat=True).get(pk=cycle_id))
    cycle: Cycle = Cycle.objects.select_for_update(no_key=True).get(pk=cycle_id)
    if cycle.finished_at is None:
        raise CannotBeUndone(f"Cycle {cycle.pk} is still {cycle.state}: cancel it, or let it end.")
    if cycle.undone_at is not None:
        raise CannotBeUndone(f"Cycle {cycle.pk} was undone already, by {cycle.undone_by}.")
    if other := Cycle.objects.for_workspace(cycle.workspace_id).open().first():
        raise CannotBeUndone(f"Cycle {other.pk} is {other.state}: cancel it, or let it end, and undo {cycle.pk} then.")
    return cycle


def _check_no_dependent_cycles(cycle: Cycle, touched: CycleEffects) -> None:
    if later := find_dependent_cycles(cycle=cycle, touched=touched):
        told = "; ".join(f"{key} changed {_list_ids(beliefs)}" for key, beliefs in later.items())
        raise CannotBeUndone(f"Later cycles built on {cycle.pk}: {told}. Undo those first, in this order.")


def _list_ids(beliefs: Sequence[str]) -> str:
    more = f" and {len(beliefs) - _NAMED_BELIEFS} more" if len(beliefs) > _NAMED_BELIEFS else ""
    return ", ".join(beliefs[:_NAMED_BELIEFS]) + more


def _check_recorded(cycle: Cycle, unknown: Collection[str]) -> None:
    """Raise CannotBeUndone where the cycle changed the status of beliefs of which nobody knows what they were."""
    changed = Transition.objects.filter(belief__in=unknown, actor=str(cycle_actor(cycle.pk)))
    if lost := sorted(set(changed.values_list("belief_id", flat=True))):
        raise CannotBeUndone(
            f"What {_list_ids(lost)} was before {cycle.pk} is not recorded: it is older than the history."
        )


def _move_to_undone(rows: QuerySet[Any], aside: type[Any], now: datetime) -> int:
    """Move rows to where those of undone cycles are kept; return how many."""
    names = [field.attname for field in aside._meta.concrete_fields if field.name not in ("id", "undone_at")]
    aside.objects.bulk_create(aside(undone_at=now, **row) for row in rows.order_by("pk").values(*names))
    deleted, _ = rows.delete()
    return deleted


def _refuse_open_jobs(cycle: Cycle) -> None:
    """End the structural changes that the cycle decided and that nobody has made yet."""
    decided = StructuralJob.objects.open().filter(decided_in=cycle)
    decided.revoke(state=JobState.REFUSED, refusal=UNDONE)


def _invalidate(born: Collection[str], author: Author) -> None:
    """Leave nothing alive that was born in the cycle; what a person put away or replaced since stays so."""
    beliefs = lock_beliefs(born)
    rows = Transition.objects.filter(belief__in=born).exclude(actor__in=REBUILD_NAMES).order_by("pk")
    last_by = dict(rows.values_list("belief_id", "actor"))
    for belief in beliefs:
        is_by_cycle = last_by.get(belief.pk, f"{ActorKind.CYCLE} ").startswith(f"{ActorKind.CYCLE} ")
        if belief.status != BeliefStatus.INVALIDATED and (belief.status in LIVE or is_by_cycle):
            change_status(
                belief=belief,
                new=BeliefStatus.INVALIDATED,
                reason=author.reason,
                actor=author.actor,
                now=author.now,
            )
    author.sign()
    recompute_beliefs(beliefs=beliefs, now=author.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """A cycle that was undone, and how many of what went back."""

    cycle: Cycle
    restored: int  # older beliefs, back where they were
    invalidated: int  # beliefs that were born in it
    evidence: int
    lineage: int
    held: int

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in ("restored", "invalidated", "evidence", "lineage", "held")}


class CannotBeUndone(EngramError, ValueError):
    """Something stands in the way; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEffects:
    """The beliefs that a cycle founded, and the older ones that gained evidence, or changed status or structure."""

    born: frozenset[str]
    older: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Return the ids of both."""
        return self.born | self.older


def find_cycle_effects(*, cycle: Cycle) -> CycleEffects:
    """Find the beliefs that a cycle touched, by the rows it left."""
    born = frozenset(Belief.objects.filter(created_in=cycle).values_list("pk", flat=True))
    found = set(Evidence.objects.filter(cycle=cycle).values_list("belief_id", flat=True))
    for pair in Lineage.objects.filter(cycle=cycle).values_list("parent_id", "child_id"):
        found.update(pair)
    # What a reading said has ended was closed or challenged, whether or not it was evidence as well (F3).
    ended = JobVerdict.objects.filter(job__cycle=cycle, ends_belief=True).values("belief")
    # Whatever a cycle archives or brings back has its decision, which an index finds.
    decided = GateDecision.objects.filter(cycle=cycle).values("belief")
    # What held until its day was closed without any of these, as was what a later word settled (C1).
    dated = Belief.objects.for_workspace(cycle.workspace_id).exclude(valid_until=None).values("pk")
    superseded = Lineage.objects.filter(child__in=found, kind=LineageKind.SUPERSESSION).values("parent")
    successors = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    concerned = Q(belief__in=decided) | Q(belief__in=ended) | Q(belief__in=dated)
    concerned |= Q(belief__in=superseded) | Q(belief__in=successors) | Q(reason=Reason.REASON_ENDED)
    moved = Transition.objects.filter(concerned, actor=str(cycle_actor(cycle.pk)))
    found.update(moved.values_list("belief_id", flat=True))
    # What was to take the place of a closed belief holds since then, though nothing new was said of it (C2).
    begun = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    events = BeliefEvent.objects.filter(pgh_obj__in=begun, pgh_context__actor=str(cycle_actor(cycle.pk)))
    found.update(events.values_list("pgh_obj", flat=True))
    return CycleEffects(born=born, older=frozenset(found - born))


def find_dependent_cycles(*, cycle: Cycle, touched: CycleEffects) -> dict[str, list[str]]:
    """Return by later cycle, the newest first, which of a cycle's beliefs it changed further; undone ones left out."""
    later = Cycle.objects.for_workspace(cycle.workspace_id).filter(opened_at__gt=cycle.opened_at, undone_at=None)
    changed: dict[str, set[str]] = defaultdict(set)
    for cycle_id, belief_id in _read_changes(touched.all):
        changed[cycle_id].add(belief_id)
    for cycle_id, belief_id, twin_id in _carried_out_later(cycle):
        changed[cycle_id].update(filter(None, (belief_id, twin_id)))
    newest_first: QuerySet[Cycle] = later.filter(pk__in=changed).order_by("-opened_at", "-pk")
    return {key: sorted(changed[key]) for key in newest_first.values_list("pk", flat=True)}


def _read_changes(beliefs: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield which cycle gave which of some beliefs evidence, another status or structure."""
    evidence = Evidence.objects.filter(belief__in=beliefs, cycle__isnull=False, base_weight__gt=0)
    yield from evidence.values_list("cycle_id", "belief_id").distinct()
    for side in ("parent", "child"):
        rows = Lineage.objects.filter(**{f"{side}__in": beliefs}, cycle__isnull=False)
        yield from rows.values_list("cycle_id", f"{side}_id")
    moved = Transition.objects.filter(belief__in=beliefs, actor__startswith=f"{ActorKind.CYCLE} ")
    for actor, belief_id in moved.values_list("actor", "belief_id"):
        yield actor.split()[1], belief_id


def _carried_out_later(cycle: Cycle) -> Iterator[tuple[str, str, str | None]]:
    """Yield which cycle made a change that this one had decided, and of which beliefs."""
    jobs = StructuralJob.objects.filter(decided_in=cycle, state=JobState.APPLIED).exclude(cycle=cycle)
    yield from jobs.values_list("cycle_id", "belief_id", "twin_id")
