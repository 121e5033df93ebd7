"""B22: a cycle that somebody cancels stops as if over budget: what is complete is applied, the rest goes back."""

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from memory.consolidation.finish import close_cycle
from memory.domain.identity import Actor
from memory.domain.lifecycle import CycleState
from memory.models import ClusterJob, Cycle, StructuralJob
from memory.models.cycles import OPEN_CYCLE_STATES

CANCELLED = "cancelled"


class CycleHasEnded(ValueError):
    """A cycle that is over cannot be cancelled."""


@transaction.atomic
def cancel_cycle(*, cycle_id: str, actor: Actor) -> Cycle:
    """Let a cycle start no more work; one that nobody has taken up ends at once, a running one within a call's time.

    Calls that are under way are waited for and stay in the ledger, so that the next cycle does not pay them again.
    """
    cycle: Cycle = Cycle.objects.select_for_update().get(pk=cycle_id)
    if cycle.state not in OPEN_CYCLE_STATES:
        raise CycleHasEnded(f"Cycle {cycle.pk} has ended as {cycle.state}.")
    if not cycle.cancelled_by:
        _stop(cycle, str(actor))
    cycle.refresh_from_db()
    return cycle


def _stop(cycle: Cycle, actor: str) -> None:
    # No working time is left from where it was seen last, so that an attempt that takes it over has none either.
    Cycle.objects.filter(pk=cycle.pk).update(cancelled_by=actor, budget_spent=CANCELLED, deadline_at=F("seen_at"))
    if cycle.state == CycleState.QUEUED:
        close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.CANCELLED, reason=f"by {actor}")
        return
    # A job that waits for a model server would keep the cycle open for as long.
    for jobs in (ClusterJob.objects, StructuralJob.objects):
        jobs.filter(cycle=cycle, not_before__gt=Now()).update(not_before=Now())
