"""B22: a cycle is undone: what it touched goes back to what it was, and its episodes are held.

Rows of evidence and lineage are put aside, where they are read by nothing but what tells how things stood before.
Beliefs stay: those that were born in the cycle as invalidated ones, so that what was believed then can still be told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import QuerySet

from memory.consolidation.held import hold_episodes
from memory.consolidation.touched import Standing, Touched, find_built_on, find_touched, read_standings, undoing_of
from memory.domain.identity import Actor, cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, IllegalTransitionError, JobState
from memory.history.attribution import attribute_changes
from memory.history.before import left_by, stood_before
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import change_status, lock_beliefs, lock_workspace
from memory.models import Belief, Cycle, Evidence, Lineage, StructuralJob, UndoneEvidence, UndoneLineage
from memory.models.cycles import UNDONE
from memory.redaction.service import redact_for

log = structlog.get_logger(__name__)

_NAMED = 5  # beliefs that a refusal names of each cycle


class CannotBeUndone(ValueError):
    """Something stands in the way; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
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


@transaction.atomic
def undo_cycle(*, cycle_id: str, actor: Actor, now: datetime, reason: str = "") -> Undone:
    """Take back all that an ended cycle did; raise CannotBeUndone where that cannot be, Cycle.DoesNotExist for no id.

    Later cycles that built on it go first, the newest before the others. What a person did since stays done, but that
    nothing lives that was born in the cycle.
    """
    cycle = _hold(cycle_id)
    touched = find_touched(cycle=cycle)
    beliefs = lock_beliefs(touched.all)
    _check_nothing_built_on(cycle, touched)
    said = redact_for(workspace_id=cycle.workspace_id, text=reason)
    undoing = _Undoing(cycle=cycle, actor=actor, now=now, reason=f"{undoing_of(cycle.pk)}: {said}".removesuffix(": "))
    standings = read_standings(cycle=cycle, beliefs=beliefs)
    before = _read_before(cycle, touched, standings)
    held = hold_episodes(cycle=cycle)
    evidence = _put_aside(Evidence.objects.filter(cycle=cycle), UndoneEvidence, now)
    lineage = _put_aside(Lineage.objects.filter(cycle=cycle), UndoneLineage, now)
    _refuse_open_jobs(cycle)
    for belief in beliefs:
        undoing.set_back(belief, standings[belief.pk], before.get(belief.pk), is_born=belief.pk in touched.born)
    undoing.recompute(beliefs, before)
    cycle.undone_at, cycle.undone_by = now, str(actor)
    cycle.save(update_fields=["undone_at", "undone_by"])
    log.info("cycle_undone", cycle=cycle.pk, workspace=cycle.workspace_id, beliefs=len(beliefs), held=held)
    return Undone(
        cycle=cycle,
        restored=len(touched.older),
        invalidated=len(touched.born),
        evidence=evidence,
        lineage=lineage,
        held=held,
    )


def _hold(cycle_id: str) -> Cycle:
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


def _check_nothing_built_on(cycle: Cycle, touched: Touched) -> None:
    if later := find_built_on(cycle=cycle, touched=touched):
        told = "; ".join(f"{key} changed {_name(beliefs)}" for key, beliefs in later.items())
        raise CannotBeUndone(f"Later cycles built on {cycle.pk}: {told}. Undo those first, in this order.")


def _name(beliefs: Sequence[str]) -> str:
    more = f" and {len(beliefs) - _NAMED} more" if len(beliefs) > _NAMED else ""
    return ", ".join(beliefs[:_NAMED]) + more


def _read_before(cycle: Cycle, touched: Touched, standings: Mapping[str, Standing]) -> Mapping[str, Any]:
    """Read how the older beliefs stood that the cycle changed.

    Those whose status it set cannot be set back where the cycle is from before there was a history.
    """
    before = stood_before(beliefs=touched.older, actor=cycle_actor(cycle.pk))
    changed = {key for key in touched.older if standings[key].found}
    if unknown := sorted(changed - before.keys()):
        raise CannotBeUndone(
            f"What {_name(unknown)} was before {cycle.pk} is not recorded: it is older than the history."
        )
    return before


def _put_aside(rows: QuerySet[Any], aside: type[Any], now: datetime) -> int:
    """Move rows to where those of undone cycles are kept; return how many."""
    names = [field.attname for field in aside._meta.concrete_fields if field.name not in ("id", "undone_at")]
    aside.objects.bulk_create(aside(undone_at=now, **row) for row in rows.order_by("pk").values(*names))
    deleted, _ = rows.delete()
    return deleted


def _refuse_open_jobs(cycle: Cycle) -> None:
    """End the structural changes that the cycle decided and that nobody has made yet."""
    decided = StructuralJob.objects.open().filter(decided_in=cycle)
    decided.update(state=JobState.REFUSED, refusal=UNDONE, lease_owner="", leased_until=None, not_before=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Undoing:
    """One undoing on its way: whose it is, and what the history says of it."""

    cycle: Cycle
    actor: Actor
    now: datetime
    reason: str

    def set_back(self, belief: Belief, standing: Standing, before: Any | None, *, is_born: bool) -> None:
        """Set a belief's status back to what the cycle found, unless a person has spoken since."""
        if is_born:
            self._invalidate(belief, standing)
        elif standing.found and not standing.is_by_person and belief.status != standing.found:
            was_archived = belief.status == BeliefStatus.ARCHIVED
            self._change(belief, standing.found, before.status_reason if before else "")
            if was_archived:  # B14: as if a person had restored it, so that no gate archives it in the next breath
                belief.restored_by_person_at = self.now
                belief.save(update_fields=["restored_by_person_at"])

    def _invalidate(self, belief: Belief, standing: Standing) -> None:
        """Leave nothing alive that was born in the cycle; what a person forgot or put away stays so."""
        stays = standing.is_by_person and belief.status not in LIVE
        if not stays and belief.status != BeliefStatus.INVALIDATED:
            self._change(belief, BeliefStatus.INVALIDATED, self.reason)

    def _change(self, belief: Belief, new: BeliefStatus, status_reason: str) -> None:
        try:
            change_status(
                belief=belief, new=new, reason=self.reason, actor=self.actor, now=self.now, status_reason=status_reason
            )
        except IllegalTransitionError as error:
            raise CannotBeUndone(f"{belief.pk} cannot go back to what {self.cycle.pk} found: {error}.") from error

    def recompute(self, beliefs: Sequence[Belief], before: Mapping[str, Any]) -> None:
        """Let beliefs hold as long as before, and compute all else from the evidence that is left (C4)."""
        attribute_changes(actor=self.actor, reason=self.reason)
        after = left_by(beliefs=before.keys(), actor=cycle_actor(self.cycle.pk))
        for belief in beliefs:
            if belief.pk in before and belief.pk in after:
                _set_validity_back(belief, before[belief.pk], after[belief.pk])
        recompute_beliefs(beliefs=beliefs, now=self.now)


def _set_validity_back(belief: Belief, before: Any, after: Any) -> None:
    """Let a belief hold for as long as before a cycle, where it is the cycle that said otherwise."""
    for name in ("valid_from", "valid_until"):
        was, became = getattr(before, name), getattr(after, name)
        if was != became and getattr(belief, name) == became:
            setattr(belief, name, was)
    belief.save(update_fields=["valid_from", "valid_until"])
